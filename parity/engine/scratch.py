"""A folder for as long as a host lives, and an end to those of hosts that were killed."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import filelock

_PREFIX = "parity-"
_LOCK = "lock"
_FILES = "files"


class Scratch:
    """A new folder; those of the same user whose hosts are dead are removed first.

    A host locks its place before it makes the folder in it. The system lets go of the lock when the
    host dies, however it does. So a folder whose lock can be taken has no host any more, and a
    place without a folder may have one that is about to lock it.

    Attributes:
        folder: empty, for this user alone.
    """

    def __init__(self) -> None:
        self._place = Path(tempfile.mkdtemp(prefix=_PREFIX))
        _sweep(self._place)
        self._lock = filelock.FileLock(self._place / _LOCK, thread_local=False)
        self._lock.acquire()
        self.folder = self._place / _FILES
        self.folder.mkdir()

    def remove(self) -> None:
        """Remove the folder; from any thread."""
        self._lock.release()
        shutil.rmtree(self._place, ignore_errors=True)


def _sweep(own: Path) -> None:
    """Remove what hosts of the owner's have left beside its place."""
    for folder in own.parent.glob(f"{_PREFIX}*/{_FILES}"):
        place = folder.parent
        with suppress(OSError):  # locked, or just swept by another host
            if place.lstat().st_uid != own.lstat().st_uid:
                continue
            with filelock.FileLock(place / _LOCK, timeout=0):
                shutil.rmtree(folder, ignore_errors=True)
                if not folder.exists():  # else a dying worker wrote to it: left to the next sweep
                    shutil.rmtree(place, ignore_errors=True)
