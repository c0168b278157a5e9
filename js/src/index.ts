import type { AnyModel, Render } from "@anywidget/types";

type State = { tokens: string[] };

/** Paint the tokens; a place for the views to stand on. */
function paint(root: HTMLElement, model: AnyModel<State>): void {
  root.replaceChildren(
    ...(model.get("tokens") ?? []).map((text, index) => {
      const token = document.createElement("span");
      token.dataset.part = "token";
      token.dataset.index = String(index);
      token.textContent = text;
      return token;
    }),
  );
}

const render: Render<State> = ({ model, el, signal }) => {
  const root = document.createElement("div");
  root.className = "mixwidget";
  root.dataset.state = "ready";
  el.append(root);

  const update = () => paint(root, model);
  const stop = () => model.off("change:tokens", update);
  model.on("change:tokens", update);
  signal?.addEventListener("abort", stop);
  update();
  return stop;
};

export default () => ({ render });
