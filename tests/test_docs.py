"""The documentation: what it says can be run, and the site asks nothing of anybody."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

import numpy as np
import pytest

import mixwidget
from mixwidget.cli.arguments import PARSERS
from mixwidget.methods.registry import all_methods, forget
from mixwidget.metrics import METRICS
from tools.docs_methods import methods_page, metrics_page
from tools.oldest import oldest
from tools.project import ROOT, read_project

if TYPE_CHECKING:
    from playwright.sync_api import Browser

DOCS = ROOT / "docs"


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a page that are not indented (into a tab)."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_the_quickstart_runs() -> None:
    scope: dict[str, Any] = {}
    for number, code in enumerate(blocks("quickstart.md", "python")):
        exec(compile(code, f"quickstart.md, block {number}", "exec"), scope)
    view = scope["view"]
    assert isinstance(view, mixwidget.MixView)
    view.close()


def test_many_texts_as_described() -> None:
    scope: dict[str, Any] = {}
    for number, code in enumerate(blocks("many-texts.md", "python")):
        exec(compile(code, f"many-texts.md, block {number}", "exec"), scope)
    assert [one.index for one in scope["failed"]] == [2]
    assert scope["words"].index.nlevels == 2


def test_what_the_page_on_choosing_says() -> None:
    (code,) = blocks("choosing.md", "python")
    scope: dict[str, Any] = {}
    exec(code, scope)
    text = (DOCS / "choosing.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", text.partition("```python")[0])) - {"focus", "benchmark"}
    assert named <= set(scope["table"].index)


@pytest.mark.parametrize("page", ["own-model.md", "verdict.md"])
def test_pages_that_run_as_written(page: str) -> None:
    scope: dict[str, Any] = {}
    for number, code in enumerate(blocks(page, "python")):
        exec(compile(code, f"{page}, block {number}", "exec"), scope)


def test_the_page_on_language_models_runs() -> None:
    from tests.lib import tiny

    model, tokenizer = tiny.model("llama", "CausalLM"), tiny.tokenizer()
    tokenizer.chat_template = "{% for m in messages %}[CLS] {{ m['content'] }} {% endfor %}"
    scope: dict[str, Any] = {"model": model, "tokenizer": tokenizer}
    (code,) = blocks("language-models.md", "python")
    exec(compile(code, "language-models.md", "exec"), scope)
    e = scope["e"]
    assert e.matrix.shape == (len(e.dependence), len(e.tokens))
    assert e.by("sentences").names[:2] == ["Anna has the red box.", "Tom has the blue one."]


def test_the_page_on_language_models_names_methods() -> None:
    text = (DOCS / "language-models.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    ids = {entry.id for entry in all_methods()}
    assert {"attn_lrp", "alti", "blank_out", "shapley", "context_cite"} <= named & ids


def test_the_plan_for_classes_names_notebooks_that_are_there() -> None:
    named = set(re.findall(r"`(\d\d_\w+)`", (DOCS / "teaching.md").read_text(encoding="utf-8")))
    assert named == {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}


@pytest.mark.parametrize("page", [*DOCS.rglob("*.md"), *ROOT.glob("*.md")], ids=lambda p: p.name)
def test_links_and_pictures_are_in_the_repository(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|href)="([^"]+)"', text)
    missing = [
        link
        for link in links
        if not urlparse(link).scheme
        and not link.startswith("#")
        and not (page.parent / link.partition("#")[0]).exists()
    ]
    assert not missing


def test_a_method_can_be_added_as_described() -> None:
    (code,) = blocks("api/extend.md", "python")
    try:
        exec(code, {})
        model, tokenizer = mixwidget.demo.load()
        e = mixwidget.explain(model, "not bad", "last_token", tokenizer=tokenizer)
        assert e.scores.tolist() == [0, 0, 0, 1]
    finally:
        forget("last_token")


def test_captum_gives_the_same_numbers() -> None:
    text = (DOCS / "coming-from.md").read_text(encoding="utf-8")
    theirs, ours = re.findall(r"^    ```python\n(.*?)^    ```", text, re.DOTALL | re.MULTILINE)[-2:]
    model, tokenizer = mixwidget.demo.load()
    inputs = tokenizer("not bad at all", return_tensors="pt")
    scope: dict[str, Any] = {"model": model, "tokenizer": tokenizer, "inputs": inputs}
    exec(dedent(theirs), scope)
    exec(dedent(ours), scope)
    scores = scope["scores"][0].detach().numpy()
    np.testing.assert_allclose(scores / scores.sum(), scope["e"].scores, atol=1e-5)


def test_the_commands_are_commands() -> None:
    lines = [line for block in blocks("command-line.md", "sh") for line in block.splitlines()]
    tried = 0
    for line in lines:
        words = shlex.split(line.partition("| ")[2] or line, comments=True)
        if words[:1] != ["mixwidget"]:
            continue
        command = words[1] if words[1] in PARSERS else "explain"
        PARSERS[command]().parse_args(words[2:] if words[1] in PARSERS else words[1:])
        tried += 1
    assert tried >= 8


@pytest.mark.parametrize("page", [DOCS / "install.md", ROOT / "README.md"], ids=lambda p: p.name)
def test_the_versions_are_those_of_the_package(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    bounds = dict(
        re.match(r"([\w-]+)>=(\d+(?:\.\d+)*)", line).groups()  # type: ignore[union-attr]
        for line in read_project()["project"]["dependencies"]
    )
    bounds["python"] = read_project()["project"]["requires-python"].removeprefix(">=")
    rows = re.findall(r"^\| ([\w]+) \| (\d[\d.]*)", text, re.MULTILINE)
    named = {name.lower().replace("pytorch", "torch"): version for name, version in rows}
    assert {"python", "torch", "transformers", "anywidget", "ipywidgets"} <= set(named)
    for name, version in named.items():
        assert [*bounds[name].split("."), "0"][:2] == [*version.split("."), "0"][:2], name


def test_the_readme_names_every_notebook() -> None:
    named = set(re.findall(r"\]\(notebooks/([\w.]+)\)", (ROOT / "README.md").read_text()))
    assert named == {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}


def test_every_public_name_is_described() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "api").glob("*.md"))
    packages = {"demo": "mixwidget.demo.load", "metrics": "mixwidget.metrics."}
    for name in mixwidget.__all__:
        named = re.escape(packages[name]) if name in packages else rf":::.*\.{name}$"
        assert re.search(named, pages, re.MULTILINE), name


def test_pages_from_the_registry() -> None:
    page = methods_page()
    for entry in all_methods():
        assert f"### `{entry.id}` {{ #{entry.id} }}" in page
        assert entry.formula in page
        assert f"({entry.link})" in page
        for param in entry.params:
            assert f"| `{param.name}` |" in page
    assert page == methods_page()
    assert all(f"[`{id}`]" in metrics_page() for id in METRICS)


def test_oldest_versions() -> None:
    assert oldest("torch>=2.6") == "torch==2.6.*"
    assert oldest("pandas>=2.2.2") == "pandas==2.2.*"
    assert oldest("ipywidgets>=8,<9") == "ipywidgets==8.0.*"
    with pytest.raises(SystemExit, match="no lower bound"):
        oldest("torch")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_the_site_needs_no_network(site: Path) -> None:
    loads = re.compile(
        r'<(?:script|img|iframe|source)[^>]*\ssrc="([^"]+)"|<link[^>]*href="([^"]+)"'
    )
    pages = list(site.rglob("*.html"))
    assert len(pages) >= 14
    for page in pages:
        for match in loads.finditer(page.read_text(encoding="utf-8")):
            url = match.group(1) or match.group(2)
            assert not urlparse(url).netloc, f"{page.name} loads {url}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", style.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_formulas_are_drawn_by_the_browser(site: Path) -> None:
    page = (site / "method-table.html").read_text(encoding="utf-8")
    assert page.count('display="block"') >= len(all_methods())
    assert "arithmatex" not in page
    shown = re.sub(r"<[^>]*>", "", page.partition("<article")[2].partition("</article>")[0])
    assert "\\" not in shown, "TeX is left over"


@pytest.mark.slow
def test_docstrings_are_text_and_not_markup(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"<(s|unk|mask|pad|bos|eos|n|d)>", text), page.name


@pytest.mark.browser
def test_the_site_from_disk(site: Path, browser: Browser) -> None:
    """Opened as files: it asks nobody, search finds, and a phone's width is enough."""
    outside: list[str] = []
    errors: list[str] = []
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.on("request", lambda request: outside.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((site / "index.html").as_uri())
    page.click(".md-search__input")
    page.keyboard.type("value zeroing")
    found = page.locator(".md-search-result__item a").first
    found.wait_for(timeout=20_000)
    for name in ("quickstart.html", "api/core.html"):
        page.goto((site / name).as_uri())
        page.click(".md-header .md-logo")
        assert page.url == (site / "index.html").as_uri()
    page.set_viewport_size({"width": 400, "height": 800})
    for path in sorted(site.rglob("*.html")):
        page.goto(path.as_uri())
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{path.name} is {wide} pixels too wide"
    context.close()
    assert not [url for url in outside if urlparse(url).scheme not in ("file", "data", "blob")]
    assert not errors
