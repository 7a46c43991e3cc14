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

_NOT_THERE = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


@contextmanager
def _opened(folder: Path | str, flags: int = 0, dir_fd: int | None = None) -> Iterator[int]:
    """A folder as a descriptor."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | flags, dir_fd=dir_fd)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _make(folder: Path) -> None:
    """Make a folder and all above it, each of them durable."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    # Whoever made it may not have come to this yet.
    with _opened(folder.parent) as parent:
        os.fsync(parent)


class FolderContent(ContentStore):
    """A content store in a folder; `content.port` says what each method does. The folder is made when it is first written to.

    Links are never followed below it: they could lead out of the store.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()

    def _file(self, blob: Blob) -> Path:
        return self._folder / blob.digest[:2] / blob.digest[2:]

    @contextmanager
    def _shelf(self, blob: Blob) -> Iterator[int]:
        """The folder that a blob's file lies in, as a descriptor."""
        with _opened(self._folder) as whole, _opened(blob.digest[:2], os.O_NOFOLLOW, whole) as shelf:
            yield shelf

    @override
    def put(self, data: bytes) -> Blob:
        blob = blob_of(data)
        try:
            _make(self._folder)
            (self._folder / blob.digest[:2]).mkdir(mode=0o700, exist_ok=True)
            with _opened(self._folder) as whole:
                os.fsync(whole)
            with self._shelf(blob) as shelf:
                # What is there already is read, not trusted: a damaged file is replaced by the right bytes.
                if self._read(blob, shelf) != data:
                    self._write(blob, shelf, data)
                os.fsync(shelf)
        except OSError as error:
            raise ContentUnavailable(f"{error.strerror or error}") from error
        return blob

    def _write(self, blob: Blob, shelf: int, data: bytes) -> None:
        scratch = f".{secrets.token_hex(16)}"
        try:
            descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=shelf)
            with os.fdopen(descriptor, "wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            os.replace(scratch, blob.digest[2:], src_dir_fd=shelf, dst_dir_fd=shelf)
        except OSError:
            if scratch in os.listdir(shelf):
                os.unlink(scratch, dir_fd=shelf)
            raise

    def _read(self, blob: Blob, shelf: int) -> bytes | None:
        """The bytes of the blob's file, None where there is no file or it can not be the right one."""
        try:
            descriptor = os.open(blob.digest[2:], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=shelf)
        except OSError as error:
            if isinstance(error, _NOT_THERE) or _is_link(blob.digest[2:], shelf):
                return None
            raise
        with os.fdopen(descriptor, "rb") as found:
            # What is not as large as it should be is not read: it could be of any size.
            standing = os.fstat(found.fileno())
            return found.read() if stat.S_ISREG(standing.st_mode) and standing.st_size == blob.size else None

    @override
    def has(self, blob: Blob) -> bool:
        try:
            with self._shelf(blob) as shelf:
                found = os.stat(blob.digest[2:], dir_fd=shelf, follow_symlinks=False)
        except _NOT_THERE:
            return False
        except OSError as error:
            raise ContentUnavailable(f"{error.strerror or error}") from error
        return stat.S_ISREG(found.st_mode) and found.st_size == blob.size

    @override
    def get(self, blob: Blob) -> bytes:
        try:
            with self._shelf(blob) as shelf:
                data = self._read(blob, shelf)
        except _NOT_THERE as error:
            if not self._folder.is_dir():
                # A volume that is not mounted has lost nothing.
                raise ContentUnavailable("the folder of the content store is not there") from error
            raise ContentDamaged(blob.digest) from error
        except OSError as error:
            raise ContentUnavailable(f"{error.strerror or error}") from error
        if data is None or blob_of(data) != blob:
            raise ContentDamaged(blob.digest)
        return data

    @override
    def erase(self, blob: Blob) -> None:
        try:
            with self._shelf(blob) as shelf:
                os.unlink(blob.digest[2:], dir_fd=shelf)
                os.fsync(shelf)
        except FileNotFoundError:
            return
        except OSError as error:
            raise ContentUnavailable(f"{error.strerror or error}") from error


def _is_link(name: str, shelf: int) -> bool:
    return stat.S_ISLNK(os.stat(name, dir_fd=shelf, follow_symlinks=False).st_mode)
