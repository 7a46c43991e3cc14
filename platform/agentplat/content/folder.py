"""Content in a folder: one file for each digest, below a folder for the digest's first two characters (A-7)."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from typing_extensions import override

from agentplat.content.port import ContentStore
from agentplat.domain.artifacts import Blob, blob_of
from agentplat.domain.errors import ContentDamaged, ContentUnavailable


@contextmanager
def _reporting() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ContentUnavailable(f"{error.strerror or error}") from error


def _sync(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FolderContent(ContentStore):
    """A content store in a folder; `content.port` says what each method does. The folder is made when it is first written to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()

    def _file(self, blob: Blob) -> Path:
        return self._folder / blob.digest[:2] / blob.digest[2:]

    def _holds(self, blob: Blob) -> bool:
        try:
            self.get(blob)
        except ContentDamaged:
            return False
        return True

    @override
    def put(self, data: bytes) -> Blob:
        blob = blob_of(data)
        # What is there already is read, not trusted: a damaged file is replaced by the right bytes.
        if not self._holds(blob):
            with _reporting():
                self._write(self._file(blob), data)
        return blob

    def _write(self, file: Path, data: bytes) -> None:
        new = not file.parent.exists()
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if new:
            _sync(self._folder)
            _sync(self._folder.parent)
        scratch = file.parent / f".{secrets.token_hex(16)}"
        try:
            descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            scratch.replace(file)
        except OSError:
            scratch.unlink(missing_ok=True)
            raise
        _sync(file.parent)

    @override
    def has(self, blob: Blob) -> bool:
        try:
            found = self._file(blob).lstat()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise ContentUnavailable(f"{error.strerror or error}") from error
        return stat.S_ISREG(found.st_mode) and found.st_size == blob.size

    @override
    def get(self, blob: Blob) -> bytes:
        try:
            # A link could lead out of the store.
            descriptor = os.open(self._file(blob), os.O_RDONLY | os.O_NOFOLLOW)
            with os.fdopen(descriptor, "rb") as found:
                data = found.read()
        except OSError as error:
            if isinstance(error, (FileNotFoundError, IsADirectoryError)) or self._file(blob).is_symlink():
                raise ContentDamaged(blob.digest) from error
            raise ContentUnavailable(f"{error.strerror or error}") from error
        if blob_of(data) != blob:
            raise ContentDamaged(blob.digest)
        return data

    @override
    def erase(self, blob: Blob) -> None:
        with _reporting():
            self._file(blob).unlink(missing_ok=True)
            if self._file(blob).parent.exists():
                _sync(self._file(blob).parent)
