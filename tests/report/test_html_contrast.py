"""Colours of the HTML reports against WCAG 2.2: 4.5:1 for text, 3:1 for lines and bars."""

import re
from importlib.resources import files

import pytest

CSS = (files("parity.report.html") / "assets" / "page.css").read_text(encoding="utf-8")
TEXT = [
    *((name, back) for back in ("back", "panel") for name in ("text", "dim", "accent")),
    *((name, back) for back in ("back", "panel") for name in ("bad", "good", "warn")),
    ("mark-text", "mark"),
    *(("cell-text", grade) for grade in ("equivalent", "divergent", "inaccurate", "mismatched")),
    ("text", "identical"),
    ("text", "unsupported"),
    ("failed-text", "failed"),
]
LINES = [
    *((f"line-{number}", "back") for number in range(6)),
    *(("bar", grade) for grade in ("identical", "equivalent", "divergent", "inaccurate")),
    ("bar", "mismatched"),
    ("focus", "back"),
]


def palette(scheme: str) -> dict[str, str]:
    light, dark = re.findall(r":root \{(.*?)\n *\}", CSS, re.DOTALL)[:2]
    found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light))
    return found if scheme == "light" else found | dict(re.findall(r"--([\w-]+): (#\w{6});", dark))


def luminance(color: str) -> float:
    """Source: WCAG 2.2, definition of relative luminance."""
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def test_the_formula_gives_the_known_extremes() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("pairs", "least"), [(TEXT, 4.5), (LINES, 3.0)])
def test_contrasts(scheme: str, pairs: list[tuple[str, str]], least: float) -> None:
    colors = palette(scheme)
    ratios = {pair: contrast(colors[pair[0]], colors[pair[1]]) for pair in pairs}
    assert {pair: round(ratio, 2) for pair, ratio in ratios.items() if ratio < least} == {}


def test_both_schemes_name_the_same_colours() -> None:
    light, dark = re.findall(r":root \{(.*?)\n *\}", CSS, re.DOTALL)[:2]
    names = re.compile(r"--([\w-]+): #")
    assert set(names.findall(light)) == set(names.findall(dark))
