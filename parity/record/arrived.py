"""Outcomes of a case that still runs, so that a run that is killed loses no more than one path."""

from __future__ import annotations

import hashlib
import zlib

import execnet

from parity.casefile.case import Case
from parity.record.cases import case_as_dict
from parity.record.encoding import dumps
from parity.worker.protocol import (
    Failure,
    PathOutcome,
    pack_all,
    pack_shards,
    unpack_all,
    unpack_shards,
)


def pack_outcome(outcome: PathOutcome) -> bytes:
    """What a path made of a case: nested builtins without code, compressed."""
    flat = {
        "outputs": pack_all(outcome.outputs),
        "shards": pack_shards(outcome.shards),
        "evidence": dict(outcome.evidence),
        "timings": dict(outcome.timings),
        "programs": dict(outcome.programs),
        "failure": None if outcome.failure is None else dict(vars(outcome.failure)),
        "artifact": outcome.artifact,
    }
    return zlib.compress(execnet.dumps(flat), 1)


def unpack_outcome(path: str, packed: bytes) -> PathOutcome:
    """The outcome that `pack_outcome` packed, bit for bit."""
    flat = execnet.loads(zlib.decompress(packed))
    return PathOutcome(
        path,
        outputs=unpack_all(flat["outputs"]),
        evidence=flat["evidence"],
        timings=flat["timings"],
        failure=None if flat["failure"] is None else Failure(**flat["failure"]),
        programs=flat["programs"],
        shards=unpack_shards(flat["shards"]),
        artifact=flat["artifact"],
    )


def case_digest(case: Case) -> str:
    """SHA-256 over a case as it is: outcomes of one that was edited since then are another's."""
    return hashlib.sha256(dumps(case_as_dict(case)).encode()).hexdigest()
