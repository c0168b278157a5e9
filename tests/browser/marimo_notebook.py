"""The notebook that test_marimo.py opens, as a user of marimo would write it."""

import marimo

app = marimo.App(width="full")


@app.cell
def _():
    import marimo as mo

    from mixwidget import MixView
    from tests.browser.cells import hostile_view, slow_method

    slow_method()
    return MixView, hostile_view, mo


@app.cell
def _(mo):
    again = mo.ui.button(label="run again", value=0, on_click=lambda count: count + 1)
    again  # noqa: B018
    return (again,)


@app.cell
def _(MixView, again, mo):
    again.value  # noqa: B018
    view = MixView(method="attention_rollout")
    shown = mo.ui.anywidget(view)
    mo.vstack([shown, shown])
    return shown, view


@app.cell
def _(mo, shown):
    mo.plain_text(f"kernel: layer {shown.value['layer']}, method {shown.value['method']}.")
    return


@app.cell
def _(mo, view):
    lower = mo.ui.button(label="to layer 1", on_click=lambda _: setattr(view, "layer", 1))
    lower  # noqa: B018
    return


@app.cell
def _(hostile_view):
    hostile_view()
    return


if __name__ == "__main__":
    app.run()
