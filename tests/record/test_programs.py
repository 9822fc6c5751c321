"""What was compiled, and the ideal, as a record and the cache keep them."""

from __future__ import annotations

import dataclasses
import hashlib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parity.compare.result import CaseResult
from parity.compare.rows import Row
from parity.record.cache import Cache
from parity.record.store import Outputs, Store
from parity.worker.protocol import digest

MakeResult = Callable[..., tuple[CaseResult, Outputs]]
TEXT = "module @s0 {\n  stablehlo.add\n}"
SHA256 = hashlib.sha256(TEXT.encode()).hexdigest()


@pytest.fixture
def compiled(make_result: MakeResult) -> MakeResult:
    def make(name: str = "dot", ideal: Any = (1.0, 2.0)) -> tuple[CaseResult, Outputs]:
        result, outputs = make_result(name)
        truth = np.array(ideal)
        row = Row(
            case=result.case.id,
            path="f64",
            output="out",
            outcome="ok",
            dtype="float64",
            shape=truth.shape,
            count=truth.size,
            sha256=digest(truth),
            environment=result.environment,
            own_error=2.0**-40,
        )
        programs = {SHA256: zlib.compress(TEXT.encode())}
        result = dataclasses.replace(
            result, references=(row, *result.references), programs=programs
        )
        return result, {**outputs, ("f64", "out"): truth}

    return make


def kept(folder: Path, keep: str) -> Store:
    return Store(folder, version="1.0", keep=keep)


def test_a_text_is_kept_once_and_read_by_its_hash(tmp_path: Path, compiled: MakeResult) -> None:
    store = kept(tmp_path, "non-identical")
    store.add(*compiled("a"))
    store.add(*compiled("b"))
    assert store.results().program(SHA256) == TEXT
    assert store.results().program("0" * 64) is None
    (read, _) = store.results()
    assert read.references[0].own_error == 2.0**-40
    store.close()


def test_keep_none_keeps_no_text(tmp_path: Path, compiled: MakeResult) -> None:
    store = kept(tmp_path, "none")
    store.add(*compiled())
    assert store.results().program(SHA256) is None
    store.close()


@pytest.mark.parametrize(
    ("keep", "size", "there"),
    [
        ("non-identical", 2, True),
        ("non-identical", 2**16, False),
        ("all", 2**16, True),
        ("none", 2, False),
    ],
)
def test_the_ideal_of_identical_outputs_is_kept_where_it_is_small(
    tmp_path: Path, compiled: MakeResult, keep: str, size: int, there: bool
) -> None:
    store = kept(tmp_path, keep)
    result, outputs = compiled(ideal=np.arange(size) / 3)
    store.add(result, outputs)
    found = store.results().outputs(result.case.id, result.environment)
    assert (("f64", "out") in found) is there
    if there:
        assert found["f64", "out"].tolist() == outputs["f64", "out"].tolist()
    store.close()


def test_the_cache_gives_both_back(tmp_path: Path, compiled: MakeResult) -> None:
    result, outputs = compiled()
    with Cache(tmp_path) as cache:
        cache.put("key", result, {"jax": "1.0"}, outputs)
        hit = cache.get("key", result.case, result.environment)
        assert hit is not None
        assert hit.result.programs == result.programs
        assert [*hit.outputs] == [("f64", "out")]
        cache.clear()
        assert cache.get("key", result.case, result.environment) is None
