"""The loop inside a worker that executes artifacts: files in, outcomes out.

It has never traced the program, nor imported its code: what it computes is what the file says. It
imports neither JAX nor TensorFlow unless the path does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from parity.errors import Unsupported
from parity.paths import Exported, Probe
from parity.worker import artifact
from parity.worker.process import (
    Post,
    answer_all,
    failure,
    memory_limit,
    operands,
    path_named,
    seen,
    unsupported,
)
from parity.worker.protocol import pack_all


class Reader:
    """Holds the operands between the requests of one case.

    Args:
        post: where it tells its stage and writes what is too large for a message.
    """

    def __init__(self, post: Post) -> None:
        self._announce = post.announce
        self._folder = post.folder
        self._operands: tuple[np.ndarray, ...] = ()

    def operands(self, request: Mapping[str, Any]) -> None:
        """Take the operands that the next requests are about; answers nothing."""
        self._operands = operands(request)

    def load(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Import what reading needs, outside the path's time limit."""
        self._announce("start")
        try:
            path = _exported(request["path"])
            if unsupported(request["path"]) is None:
                path.prepare()
        except Exception as error:  # noqa: BLE001 - an import may fail in any way; it becomes a row
            return {"failure": vars(failure(error, "load"))}
        return {"failure": None}

    def execute(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Execute an artifact, in at most so much more memory than now."""
        probe = Probe(self._announce, request["options"], request.get("warm", 0.0))
        probe.current = "load"
        try:
            path = _exported(request["path"])
            reason = unsupported(request["path"])
            if reason is not None:
                raise Unsupported(reason)
            with memory_limit(request["memory"]):
                outputs = artifact.execute(path, request["artifact"], self._operands, probe)
        except Exception as error:  # noqa: BLE001 - whatever a path raises is that path's result
            return {"failure": vars(failure(error, probe.current))} | seen(probe)
        packed = pack_all(outputs, self._folder)
        return {"outputs": packed, "shards": {}, "failure": None} | seen(probe)


def _exported(name: str) -> Exported:
    path = path_named(name)
    if not isinstance(path, Exported):
        raise Unsupported(f"{name} executes no artifacts here")
    return path


def serve(channel: Any) -> None:
    """Answer requests until the channel closes.

    Args:
        channel: execnet's; the first message is as for `worker.serve`.
    """
    begin = channel.receive()
    os.environ["JAX_ENABLE_X64"] = str(int(begin["x64"]))  # for paths that import JAX
    reader = Reader(Post(begin))
    channel.send({"environment": {}, "pid": os.getpid()})
    answer_all(
        channel, {"operands": reader.operands, "load": reader.load, "execute": reader.execute}
    )
