"""The frame of every HTML report: one file that asks for nothing and runs only its own script.

    page = Page(
        template="run.html.j2",          # extends base.html.j2, in templates/
        title="parity: 3 findings",
        context={"verdict": …},          # what the template is given
        scripts=("page.js", "run.js"),   # of assets/, concatenated in one function scope
        index=…,                         # JSON that the script reads when it starts
        details=(Detail(…), …),          # more of it, read when it is opened
    )
    write(page, Path("report.html"))

Templates escape everything. Text that comes from a record is shown with the filter `visible`
(`visible(lines=True)` in preformatted text), in attributes with `spelled`: control and
bidirectional characters are named there. `metric` and `plural` are those of `report.numbers`.

The policy forbids inline style attributes, event handlers, requests and HTML from strings
(Trusted Types): scripts build elements, by `element` of page.js. There `await unpack("index")`
gives the index as the only one of `values`, and `await detail(n, perChunk, read)` the n-th detail,
where `read(value, reader)` puts back what `Detail` holds beside its JSON; `data-per-chunk` of the
body says how many stand together. Without JavaScript the elements that scripts fill are empty, and
what stands in `<noscript>` is shown.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import itertools
import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from parity import __version__
from parity.errors import UserError
from parity.record.encoding import dumps
from parity.report.html.characters import spelled, visible
from parity.report.numbers import metric, plural

PER_CHUNK = 100
"""So many details are compressed together, and decoded when one of them is opened."""

STYLES = ("page.css", "report.css")


@dataclass(frozen=True)
class Detail:
    """Data that is decoded when it is asked for.

    Attributes:
        text: JSON.
        doubles: numbers that it leaves out, in an order that the script knows.
        data: bytes, likewise.
    """

    text: str
    doubles: array[float] = field(default_factory=lambda: array("d"))
    data: bytes = b""


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a page is made of.

    Attributes:
        template: name of a file in templates/.
        title: of the document, plain text.
        context: what the template is given.
        scripts: names of files in assets/.
        styles: likewise, of style sheets.
        index: what `dumps` takes; None for none.
        details: in the order in which `detail(n)` counts them.
    """

    template: str
    title: str
    context: Mapping[str, Any]
    scripts: tuple[str, ...] = ()
    styles: tuple[str, ...] = STYLES
    index: Any = None
    details: Iterable[Detail] = ()


@dataclass(frozen=True)
class Chunk:
    """Compressed data in the page.

    Attributes:
        id: of its element: "index", "details-0", "details-1", …
        data: base64 of gzip.
    """

    id: str
    data: str


def render(page: Page) -> str:
    """The page as HTML."""
    style, script = _assets(page.styles), _script(page.scripts)
    return (
        _templates()
        .get_template(page.template)
        .render(
            **page.context,
            title=page.title,
            version=__version__,
            policy=policy(style, script),
            style=Markup(style),
            script=Markup(script),
            chunks=list(_chunks(page)),
            per_chunk=PER_CHUNK,
        )
    )


def write(page: Page, file: Path) -> None:
    """Write the page.

    Raises:
        UserError: the file cannot be written.
    """
    check_writable(file)
    text = render(page)
    try:
        file.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UserError(f"{file}: cannot be written ({error.strerror})") from None


def check_writable(file: Path) -> None:
    """See that a page can be written there, before the work that it tells of is done.

    Raises:
        UserError: it is a folder, or lies in none.
    """
    if file.is_dir():
        raise UserError(f"{file}: is a folder", hint=f"name a file in it: {file / 'report.html'}")
    if not file.absolute().parent.is_dir():
        raise UserError(f"{file}: cannot be written (no folder {file.parent})")


def policy(style: str, script: str) -> str:
    """The Content-Security-Policy: this style sheet and this script, and nothing else.

    Source: W3C Content Security Policy Level 3, sections 6 and 8; Trusted Types.
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src 'sha256-{_digest(style)}'",
            f"script-src 'sha256-{_digest(script)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def packed(details: Sequence[Detail]) -> str:
    """Details compressed together; the same for the same ones.

    Base64 of gzip of: the number of bytes of the text and that of doubles, as little-endian uint32;
    the text, a JSON list; the doubles, little-endian, all first bytes before all second ones and so
    on, since exponents resemble each other and the rest does not; the data.
    """
    text = f"[{','.join(detail.text for detail in details)}]".encode()
    doubles = np.concatenate([np.frombuffer(detail.doubles) for detail in details], dtype="<f8")
    planes = doubles.view(np.uint8).reshape(-1, 8).T
    head = struct.pack("<II", len(text), len(doubles))
    parts = (head, text, planes.tobytes(), *(detail.data for detail in details))
    return base64.b64encode(gzip.compress(b"".join(parts), 9, mtime=0)).decode()


def _chunks(page: Page) -> Iterator[Chunk]:
    if page.index is not None:
        yield Chunk("index", packed([Detail(dumps(page.index))]))
    details = iter(page.details)
    for number in itertools.count():
        some = list(itertools.islice(details, PER_CHUNK))
        if not some:
            return
        yield Chunk(f"details-{number}", packed(some))


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _assets(names: tuple[str, ...]) -> str:
    folder = files("parity.report.html") / "assets"
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


@cache
def _script(names: tuple[str, ...]) -> str:
    return f"'use strict';\n(() => {{\n{_assets(names)}}})();\n"


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("parity.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "visible": visible,
        "spelled": spelled,
        "metric": metric,
        "plural": plural,
    }
    return environment
