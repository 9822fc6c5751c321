"""Text for people, in which nothing is invisible and nothing reorders what stands around it.

`assets/page.js` has the same rules for what scripts show.
"""

from __future__ import annotations

import re

from markupsafe import Markup, escape

_ALWAYS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u3164\uffa0"  # shown as nothing
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # widthless, bidirectional
    "\ud800-\udfff"  # halves of surrogate pairs, which UTF-8 lacks
    "\U000e0000-\U000e0fff"  # tags and variation selectors
)
_INVISIBLE = re.compile(f"[{_ALWAYS}]")
_HARMLESS = re.compile(r"[ -~]*")
_INVISIBLE_IN_LINE = re.compile(f"[{_ALWAYS}\t\n]")


def is_invisible(character: str) -> bool:
    """Whether a character shows nothing, or changes how others are shown."""
    return _INVISIBLE_IN_LINE.match(character) is not None


def named(character: str) -> str:
    """A character's code point: `U+202E`."""
    return f"U+{ord(character):04X}"


def visible(text: object, *, lines: bool = False) -> Markup:
    """Escaped text, apart from the direction of its surroundings, control characters by name.

    Args:
        text: any.
        lines: whether line breaks and tabs stay what they are, for preformatted text.
    """
    safe = str(escape(text))
    if _HARMLESS.fullmatch(safe):
        return Markup(safe)
    pattern = _INVISIBLE if lines else _INVISIBLE_IN_LINE
    marked = pattern.sub(_marked, safe)  # escaping adds none of these
    return Markup(f"<bdi>{marked}</bdi>")


def spelled(text: object) -> str:
    """Text for attributes and titles, which hold no markup: `⟨U+202E⟩` for such characters."""
    return _INVISIBLE_IN_LINE.sub(lambda match: f"⟨{named(match.group())}⟩", str(text))


def _marked(match: re.Match[str]) -> str:
    return f'<span class="cp">{named(match.group())}</span>'
