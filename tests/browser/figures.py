"""The figures of the widget's form, measured on the page where it stands."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

from tests.browser.driver import Sheet

VIEWS = ("text", "graph", "layers", "map", "multiples", "compare", "faithfulness", "heads")

# A control is no token; what is hidden, tucked away or inside closed details does not count.
_MEASURE = """(root) => {
  const frame = root.getBoundingClientRect();
  const seen = (e) => {
    const b = e.getBoundingClientRect(), s = getComputedStyle(e);
    return b.width > 1 && b.height > 1 && s.visibility !== "hidden" && +s.opacity > 0.05 &&
      !e.closest("[hidden], .mix-hidden") &&
      !(e.closest("details:not([open])") && !e.closest("summary"));
  };
  const all = [...root.querySelectorAll("*")].filter(seen);
  const tokens = all.filter((e) => e.matches("[data-part=token]"));
  const controls = all.filter((e) => e.matches("button, select, input, textarea, summary, a"));
  const paper = Object.assign(document.createElement("canvas"), { width: 1, height: 1 })
    .getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    paper.clearRect(0, 0, 1, 1);
    paper.fillStyle = colour;
    paper.fillRect(0, 0, 1, 1);
    return [...paper.getImageData(0, 0, 1, 1).data];
  };
  const ground = (e) => {
    for (let at = e; at; at = at.parentElement ?? at.getRootNode().host) {
      const colour = rgba(getComputedStyle(at).backgroundColor);
      if (colour[3] > 250) return colour;
    }
    return [255, 255, 255, 255];
  };
  const light = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((v) => v / 255)
      .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (e) => {
    const pair = [light(rgba(getComputedStyle(e).color)), light(ground(e))].sort((a, b) => b - a);
    return (pair[0] + 0.05) / (pair[1] + 0.05);
  };
  const worded = all.filter((e) => !e.closest("svg, canvas, option, select") &&
    [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()));
  const side = (e) => {
    const b = e.getBoundingClientRect(), l = e.closest("label")?.getBoundingClientRect();
    return Math.max(Math.min(b.width, b.height), l ? Math.min(l.width, l.height) : 0);
  };
  const cut = all.filter((e) => !e.closest("svg, details") && e.clientWidth > 20 &&
    e.scrollWidth > e.clientWidth + 2 && getComputedStyle(e).textOverflow !== "ellipsis" &&
    !e.matches("input, select, textarea") &&
    ["hidden", "auto", "scroll", "clip"].includes(getComputedStyle(e).overflowX));
  const over = all.filter((e) => !e.closest("svg, canvas, details") &&
    (e.getBoundingClientRect().right > frame.right + 2 ||
      e.getBoundingClientRect().left < frame.left - 1));
  const named = (e) => `${e.className} ${(e.textContent || e.ariaLabel || "").slice(0, 20)}`;
  return {
    first: tokens.length ? tokens[0].getBoundingClientRect().top - frame.top : null,
    height: frame.height,
    controls: controls.length,
    disabled: controls.filter((e) => e.disabled || e.ariaDisabled === "true").map(named),
    faint: worded.filter((e) => contrast(e) < 4.5).map(named),
    small: controls.filter((e) => e.type !== "range" && side(e) < 24).map(named),
    cut: cut.map(named),
    over: over.map(named),
    page: document.documentElement.scrollWidth - innerWidth,
  };
}"""


def measured(page: Page) -> dict[str, Any]:
    return dict(page.locator(".mixwidget").first.evaluate(_MEASURE))


def faults(page: Page) -> dict[str, list[str]]:
    """What is greyed, faint, small, cut off or wider than the widget; nothing where all is well."""
    found = measured(page)
    names = ("disabled", "faint", "small", "cut", "over")
    return {name: found[name] for name in names if found[name]}


def walk(sheet: Sheet) -> None:
    """Through each view of the first widget: it is drawn, and the figures hold."""
    for view in VIEWS:
        sheet.view(view)
        panel = sheet.root().locator(f".mix-view-{view}")
        sheet.until(panel.is_visible, f"{view} is shown")
        sheet.ready()
        sheet.page.wait_for_timeout(250)
        assert faults(sheet.page) == {}, view
        assert sheet.root().evaluate("e => /[ĠĊÃ]/.test(e.innerText)") is False
    sheet.view("text")
