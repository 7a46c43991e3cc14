"""Finished parts of an audit on disk. A part that was not written whole, or of another audit, is as good as none."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np

from graphsvc.audit.shortest import Found
from graphsvc.audit.view import View
from graphsvc.domain.canonical import digest_of
from graphsvc.domain.errors import InvalidInput, Violation

_FORM = 2
"""Grows when parts get another form or another meaning."""


class Parts:
    """The parts of one audit: of one graph, for one reader, with the same scopes and limits."""

    def __init__(self, folder: Path, view: View) -> None:
        """folder: made where it is not there yet. Raises InvalidInput where it cannot be written."""
        limits = view.limits.as_json()
        flags = [np.packbits(flags).tobytes().hex() for flags in (view.readable, view.asked)]
        name = digest_of([_FORM, view.tenant.digest, limits, *flags])
        self._folder = folder / f"audit-{name[:32]}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _refusal(error) from None

    def _path(self, number: int) -> Path:
        return self._folder / f"part-{number:06}.npz"

    def read(self, number: int) -> Found | None:
        """A part, or None where it is not there whole."""
        try:
            # Opened here, because the library leaves a file open that turns out to be none of its own.
            with self._path(number).open("rb") as stream, np.load(stream, allow_pickle=False) as kept:
                return Found(kept["lengths"], kept["ends"], kept["loops"])
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def write(self, number: int, found: Found) -> None:
        """Keep a part. Raises InvalidInput where it cannot be written."""
        path = self._path(number)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        try:
            with partial.open("wb") as stream:
                np.savez(stream, lengths=found.lengths, ends=found.ends, loops=found.loops)
            partial.replace(path)
        except OSError as error:
            raise _refusal(error) from None


def _refusal(error: OSError) -> InvalidInput:
    reason = f"cannot be written: {error.strerror or error}"
    return InvalidInput([Violation(field="--resume", reason=reason, remedy="name a folder that can be written to")])
