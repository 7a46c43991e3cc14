"""What the commands get from the composition root, as they may not build it themselves."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import typer

if TYPE_CHECKING:  # the composition root reads settings before the kernels are imported, and it imports this
    from graphsvc.graph import Kernel
    from graphsvc.service import GraphService


class OpenService(Protocol):
    """Opens the use cases on the store behind a URL, for as long as the block lasts."""

    def __call__(self, url: str, *, create: bool) -> AbstractContextManager[GraphService]:
        """create: whether a store that does not exist yet is made. Raises InvalidInput, StoreUnavailable, LogDamaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """open_service: see there. kernel: the search of a name, ``jit`` or ``reference``."""

    open_service: OpenService
    kernel: Callable[[str], Kernel]


def composition(ctx: typer.Context) -> Composition:
    """What the composition root handed over."""
    found = ctx.obj
    assert isinstance(found, Composition)
    return found
