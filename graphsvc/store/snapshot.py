"""A snapshot of the graph in one file: a digest, a header in JSON, and the arrays as they lie in memory.

It only saves time. One that is damaged, that another release wrote, or that does not fit the log is left aside, and the graph is
folded from the log as if there were none (G-28).
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import BinaryIO

import numpy as np

from graphsvc.store.port import SnapshotState

_MAGIC = b"LWGRAPH2"
_DIGEST = 32
_CHUNK = 1 << 20
_LENGTH = 8


class SnapshotDamaged(Exception):
    """The file is not a snapshot that this release wrote and nobody changed. The message says what is wrong with it."""


class FileSnapshot:
    """A snapshot at a path. Its folder must exist."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> SnapshotState | None:
        """What the file holds, None where there is no file. Raises SnapshotDamaged."""
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SnapshotDamaged(f"can not be read: {error.strerror}") from error
        with file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise SnapshotDamaged("is not a snapshot of this release")
            digest = file.read(_DIGEST)
            if _digest_of_rest(file) != digest:
                raise SnapshotDamaged("does not have the content that its digest was made over")
            file.seek(len(_MAGIC) + _DIGEST)
            header = json.loads(file.read(int.from_bytes(file.read(_LENGTH), "big")))
            arrays = {}
            for name, kind, shape in header["arrays"]:
                arrays[name] = np.fromfile(file, np.dtype(kind), int(np.prod(shape, dtype=np.int64))).reshape(shape)
            return SnapshotState(header["meta"], arrays)

    def save(self, state: SnapshotState) -> None:
        """Put a state in place of what the file held; whoever reads meanwhile, or after a crash, finds the one or the other whole.

        Raises OSError where it can not be written.
        """
        partial = self._path.with_name(f"{self._path.name}.{secrets.token_hex(4)}.partial")
        try:
            # It holds the key that names are hashed with, so nobody else may read it.
            with os.fdopen(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b") as file:
                _write(file, state)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self._path)
        finally:
            partial.unlink(missing_ok=True)


def _write(file: BinaryIO, state: SnapshotState) -> None:
    listed = [(name, array.dtype.str, list(array.shape)) for name, array in state.arrays.items()]
    header = json.dumps({"meta": state.meta, "arrays": listed}).encode()
    file.write(_MAGIC + bytes(_DIGEST) + len(header).to_bytes(_LENGTH, "big") + header)
    for array in state.arrays.values():
        file.write(np.ascontiguousarray(array).data)
    file.seek(len(_MAGIC) + _DIGEST)
    digest = _digest_of_rest(file)
    file.seek(len(_MAGIC))
    file.write(digest)


def _digest_of_rest(file: BinaryIO) -> bytes:
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.digest()
