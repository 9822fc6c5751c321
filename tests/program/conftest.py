"""Specs of programs made of text, as case files would give them."""

import hashlib

import pytest

from parity.program import source
from parity.program.spec import OperandSpec, ProgramSpec


@pytest.fixture
def spec(tmp_path):
    """`spec(text, "module:function", operands, …)`: text, if any, goes into module.py."""

    def make(text, name, operands, *, op="callable", attributes=None, **fields):
        known = {"callable" if op == "callable" else "module": name, "folder": str(tmp_path)}
        if text is not None:
            file = tmp_path / f"{name.partition(':')[0]}.py"
            file.write_text(text)
            known["sources"] = {file.name: hashlib.sha256(text.encode()).hexdigest()}
        specs = tuple(OperandSpec(name, *rest) for name, rest in operands.items())
        return ProgramSpec(op, specs, known | (attributes or {}), **fields)

    yield make
    source.use({})  # nothing of these files is found by the next test
