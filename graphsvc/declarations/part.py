"""What a reader in columns finds at a time."""

from __future__ import annotations

from typing import NamedTuple

from graphsvc.columns import Columns, Longs
from graphsvc.domain.errors import Violation


class Part(NamedTuple):
    """Some of a file's versions. lines: of each of them, from 1 and ascending. refused: lines without one, with what is wrong."""

    lines: Longs
    columns: Columns
    refused: list[tuple[int, tuple[Violation, ...]]]
