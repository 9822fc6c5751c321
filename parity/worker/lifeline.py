"""Ties a worker's life to its host's; imports nothing that takes time."""

from __future__ import annotations

import ctypes
import os
import signal
import sys


def die_with(host: int) -> None:
    """On Linux, be killed when the host dies, whatever this process is doing then.

    Args:
        host: its process id, which is this one's parent.
    """
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
        if os.getppid() != host:  # it died before it was asked for
            os._exit(1)
