"""What mkdocs calls while it builds the documentation: see mkdocs.yml."""

from __future__ import annotations

import html
import io
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from mixwidget.methods import mathml
from tools.docs_methods import commands_part, methods_page, metrics_page

ROOT = Path(__file__).resolve().parent.parent
# Written by whoever makes the measurements; the site is complete without them.
OPTIONAL = {"methods.md", "benchmarks.md", "faithfulness.md", "tables.md"}
PICTURES = {  # file: what is drawn of the demo sentence
    "assets/text.svg": ("attcat", "text"),
    "assets/map.svg": ("alti", "map"),
    "assets/layers.svg": ("alti", "layers"),
}


def on_config(config: Any) -> Any:
    """Leave out of the menu what is not there."""
    there = {
        path.relative_to(config.docs_dir).as_posix() for path in Path(config.docs_dir).rglob("*.md")
    }
    config.nav = [_kept(section, there) for section in config.nav]
    return config


def _kept(section: dict[str, list[Any]], there: set[str]) -> dict[str, list[Any]]:
    missing = OPTIONAL - there
    return {
        title: [page for page in pages if _path(page) not in missing]
        for title, pages in section.items()
    }


def _path(page: Any) -> str:
    """Of an entry of the menu: "page.md", or {title: "page.md"}."""
    return page if isinstance(page, str) else str(next(iter(page.values())))


def on_files(files: Files, config: Any) -> Files:
    """Add the pages and pictures that come from the code."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    commands = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    made: dict[str, str | bytes] = {
        "method-table.md": methods_page(),
        "metrics.md": metrics_page(),
        "changelog.md": changelog,
        "notebooks.md": notebooks_page(),
        "command-line.md": f"{commands}\n{commands_part()}",
        **pictures(),
    }
    for name, content in made.items():
        old = files.get_file_from_path(name)
        if old is not None:
            files.remove(old)
        files.append(File.generated(config, name, content=content))
    return files


def notebooks_page() -> str:
    """Each notebook by the title and the sentence it opens with."""
    import nbformat

    lines = [
        "# Notebooks",
        "",
        "Nine notebooks for a class or for oneself, each read in ten minutes, with questions and "
        "exercises ([solutions](solutions.md)). They run offline, the last with a small chat model "
        "of PyPI, all others with the embedded model; a cell in each shows the same with a model "
        "of the hub. They are in the folder `notebooks` of a checkout, and `make demo` opens "
        "JupyterLab there.",
        "",
        "| | | file |",
        "|---|---|---|",
    ]
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        title, purpose, *_ = nbformat.read(path, as_version=4).cells[0].source.split("\n\n")
        words = " ".join(purpose.split())
        lines.append(f"| **{title.removeprefix('# ')}** | {words} | `{path.name}` |")
    return "\n".join(lines) + "\n"


def pictures() -> dict[str, bytes]:
    """Figures of the demo sentence, the same bytes every time."""
    import matplotlib

    from mixwidget import demo, explain

    model, tokenizer = demo.load()
    made = {}
    with matplotlib.rc_context({"svg.hashsalt": "mixwidget"}):
        for name, (method, kind) in PICTURES.items():
            figure = explain(model, demo.SENTENCE, method, tokenizer=tokenizer).plot(kind)
            buffer = io.BytesIO()
            figure.savefig(buffer, format="svg", metadata={"Date": None})
            made[name] = buffer.getvalue()
    return made


_MATH = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """TeX as MathML, which browsers draw by themselves: no script, no fonts, no network."""
    return _MATH.sub(_mathml, content)


def on_post_page(output: str, **_: Any) -> str:
    """The logo leads to a page: from the disk a folder would be shown as a list of files."""
    return _LOGO.sub(r'<a href="\1/index.html"', output)


_LOGO = re.compile(r'<a href="(/?\.\.?)"(?= title="[^"]*" class="md-\w+__button md-logo")')


def _mathml(found: re.Match[str]) -> str:
    tex = html.unescape(found.group(3)).strip()
    return mathml(tex, display="block" if found.group(2) == "[" else "inline")
