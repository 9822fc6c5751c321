"""A case file as plain data that still knows its lines and columns.

The text is composed to nodes by ruamel.yaml (YAML 1.2, which reads `1e-5` and `010` as numbers) and
turned into plain data here, because the limits on aliases, the check for duplicate keys and the
refusal of tags all need the nodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from parity.casefile.discover import SUFFIXES
from parity.casefile.problem import Location, Problem
from parity.errors import CaseFileError

MAX_BYTES = 2**20
MAX_NODES = 200_000

_TAGS = {
    f"tag:yaml.org,2002:{name}"
    for name in ("map", "seq", "str", "int", "float", "bool", "null", "timestamp", "merge")
}
_INFINITIES = {".inf", "+.inf", "-.inf"}


@dataclass(frozen=True)
class Document:
    """A parsed case file.

    Attributes:
        file: as it is shown in messages, relative to the working directory where that is above it.
        data: the file as dicts, lists and scalars.
        root: the nodes it was built from.
    """

    file: Path
    data: dict[str, Any]
    root: MappingNode

    def place(self, at: Location, *, key: bool = False) -> tuple[int, int]:
        """1-based line and column of a location, or of the deepest part of it that exists.

        Args:
            at: keys and indices from the root.
            key: the place of the last key instead of that of its value.
        """
        node: Node = self.root
        mark = node.start_mark
        for depth, part in enumerate(at):
            found = _child(node, part)
            if found is None:
                break
            name, node = found
            last = depth == len(at) - 1
            mark = name.start_mark if key and last and name is not None else node.start_mark
        return mark.line + 1, mark.column + 1

    def has(self, at: Location) -> bool:
        """Whether the file has this location."""
        node: Node = self.root
        for part in at:
            found = _child(node, part)
            if found is None:
                return False
            node = found[1]
        return True

    def error(self, *problems: Problem) -> CaseFileError:
        """One error for all problems: the first in file order, which carries the others.

        Missing keys come last: they are often the shadow of a misspelt one.
        """
        placed = sorted(
            (self._placed(problem) for problem in problems),
            key=lambda error: (error.what.startswith("missing key"), error.line, error.col),
        )
        first, others = placed[0], tuple(placed[1:])
        if not others:
            return first
        return CaseFileError(
            f"{first.what} (and {len(others)} more)",
            file=self.file,
            line=first.line,
            col=first.col,
            hint=first.hint,
            others=others,
        )

    def _placed(self, problem: Problem) -> CaseFileError:
        at = problem.at
        if problem.instead is not None and not self.has(at):
            at = problem.instead
        line, col = self.place(at, key=problem.key)
        return CaseFileError(problem.what, file=self.file, line=line, col=col, hint=problem.hint)


def read(path: Path) -> Document:
    """Read and parse one case file; nothing in it is executed or constructed.

    Raises:
        CaseFileError: unreadable, larger than `MAX_BYTES`, not UTF-8, not YAML, more than
            `MAX_NODES` nodes once aliases are expanded, a duplicate key, a tag, or not a mapping.
    """
    file = shown(path)
    return parse(_decode(_bytes(path, file), file), file)


def parse(text: str, file: Path) -> Document:
    """Parse the text of a case file.

    Args:
        text: all of it.
        file: as messages name it.

    Raises:
        CaseFileError: as for `read`.
    """
    try:
        root = YAML(typ="safe", pure=True).compose(text)
        if root is None:
            raise CaseFileError("the file is empty", file=file, hint="parity new prints a template")
        if not isinstance(root, MappingNode):
            raise _at(root, "a case file is a mapping of fields, such as name: and op:", file)
        data = _Builder(file).build(root)
    except ReaderError as error:
        line, col = _line_col(text[: error.position])
        what = f"a control character is not allowed (got U+{ord(text[error.position]):04X})"
        raise CaseFileError(what, file=file, line=line, col=col) from None
    except MarkedYAMLError as error:
        raise _syntax(error, file) from None
    except RecursionError:
        raise CaseFileError("lists or mappings are nested too deeply", file=file) from None
    return Document(file, data, root)


def shown(path: Path) -> Path:
    """A path as messages show it: relative to the working directory where that is above it."""
    absolute, here = Path(path).absolute(), Path.cwd()
    return absolute.relative_to(here) if absolute.is_relative_to(here) else Path(path)


class _Builder:
    """Nodes to plain data, counting every node that an alias repeats."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._count = 0
        self._open: set[int] = set()
        self._scalars = YAML(typ="safe", pure=True).constructor

    def build(self, node: Node) -> Any:
        self._count += 1
        if self._count > MAX_NODES:
            what = f"more than {MAX_NODES:,} nodes once aliases are expanded"
            raise _at(node, what, self._file, hint="put large arrays into an .npy file")
        if str(node.tag) not in _TAGS:
            what = f"tags are not allowed (got {_short_tag(node)})"
            raise _at(node, what, self._file, hint="case files are plain data")
        if isinstance(node, ScalarNode):
            return self._scalar(node)
        if id(node) in self._open:
            raise _at(node, "an alias may not stand inside its own anchor", self._file)
        self._open.add(id(node))
        if isinstance(node, SequenceNode):
            data: Any = [self.build(item) for item in node.value]
        else:
            assert isinstance(node, MappingNode)  # the third kind of node
            data = self._mapping(node)
        self._open.remove(id(node))
        return data

    def _mapping(self, node: MappingNode) -> dict[str, Any]:
        data: dict[str, Any] = {}
        first: dict[str, Node] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                raise _at(key, "a key must be a name (got a list or mapping)", self._file)
            name = str(key.value)
            if name in first:
                before = first[name].start_mark
                what = (
                    f"duplicate key '{name}' (first at line {before.line + 1}, "
                    f"column {before.column + 1})"
                )
                raise _at(key, what, self._file, hint="keep one of the two")
            first[name] = key
            data[name] = self.build(value)
        return data

    def _scalar(self, node: ScalarNode) -> Any:
        try:
            value = self._scalars.construct_object(node)
        except ValueError as error:
            raise _at(node, f"cannot be read as a value ({error})", self._file) from None
        if isinstance(value, float) and math.isinf(value) and node.value.lower() not in _INFINITIES:
            what = f"a number beyond the range of float64 (got {node.value})"
            raise _at(node, what, self._file, hint="write .inf if infinity is meant")
        return value


def _child(node: Node, part: str | int) -> tuple[Node | None, Node] | None:
    """The key node (None in a list) and value node of one key or index."""
    if isinstance(node, MappingNode):
        for key, value in node.value:
            if isinstance(key, ScalarNode) and key.value == part:
                return key, value
    elif isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.value):
        return None, node.value[part]
    return None


def _bytes(path: Path, file: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise CaseFileError(f"cannot be read ({error.strerror})", file=file) from None
    if len(raw) > MAX_BYTES:
        what = f"larger than {MAX_BYTES:,} bytes, the most a case file may have"
        raise CaseFileError(what, file=file, hint="put large arrays into an .npy file")
    return raw


def _decode(raw: bytes, file: Path) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, col = _line_col(raw[: error.start].decode("utf-8", "replace"))
        what = f"not UTF-8 (got byte 0x{raw[error.start]:02x})"
        hint = "save the file as UTF-8"
        raise CaseFileError(what, file=file, line=line, col=col, hint=hint) from None


def _line_col(before: str) -> tuple[int, int]:
    """1-based line and column of the character after a text."""
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def _syntax(error: MarkedYAMLError, file: Path) -> CaseFileError:
    problem = error.problem or "cannot be parsed"
    what = f"not YAML: {error.context + ', ' if error.context else ''}{problem}"
    hint = None
    if "\\t" in problem:
        what, hint = "not YAML: a tab may not indent a line", "indent with spaces"
    elif "another document" in problem:
        what, hint = "more than one YAML document", "write one file per case file"
    elif file.suffix not in SUFFIXES:
        hint = f"a case file ends in {' or '.join(SUFFIXES)}; is this one?"
    mark = error.problem_mark or error.context_mark
    return CaseFileError(what, file=file, line=mark.line + 1, col=mark.column + 1, hint=hint)


def _at(node: Node, what: str, file: Path, *, hint: str | None = None) -> CaseFileError:
    mark = node.start_mark
    return CaseFileError(what, file=file, line=mark.line + 1, col=mark.column + 1, hint=hint)


def _short_tag(node: Node) -> str:
    return str(node.tag).replace("tag:yaml.org,2002:", "!!")
