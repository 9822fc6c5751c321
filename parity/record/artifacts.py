"""Artifacts in a record: folders of `worker.artifact`, each one blob."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from pathlib import Path

from parity.errors import UserError
from parity.record.opening import read

SHA256 = "artifact_sha256"
"""The evidence that names the artifact of a row."""


def pack(folder: Path) -> bytes:
    """A folder as a gzipped tar, without owners and times."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as tar,
    ):
        for file in sorted(folder.rglob("*")):
            tar.add(file, file.relative_to(folder).as_posix(), recursive=False, filter=_bare)
    return packed.getvalue()


def unpack(packed: bytes, folder: Path) -> None:
    """Write what `pack` packed into a folder; nothing leaves it.

    Raises:
        UserError: it is damaged, or would leave the folder; it cannot be written.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            tar.extractall(folder, filter="data")
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, OSError) as error:
        raise UserError(f"{folder}: the artifact cannot be written there: {error}") from error


def fetch(record: Path, sha256: str, folder: Path) -> bool:
    """Write an artifact of a record into a folder; says whether the record has it.

    Raises:
        UserError: it is not a record, or the folder cannot be written.
    """
    db = read(record)
    row = db.execute("SELECT data FROM artifacts WHERE sha256 = ?", (sha256,)).fetchone()
    if row is not None:
        unpack(row[0], folder)
    return row is not None


def digest(packed: bytes) -> str:
    """SHA-256 over a packed artifact."""
    return hashlib.sha256(packed).hexdigest()


def _bare(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    info.mode = 0o755 if info.isdir() else 0o644
    return info
