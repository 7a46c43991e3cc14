"""Who may read what. Every answer is cut down to its reader here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from graphsvc.domain.names import Scope

_INSTALLATION = Scope()


@dataclass(frozen=True, slots=True)
class Reader:
    """Whoever an answer is for: the scopes they may read, each with everything below it."""

    scopes: frozenset[Scope]

    @property
    def reads_everything(self) -> bool:
        """Whether the reader may read the whole installation."""
        return _INSTALLATION in self.scopes

    def may_read(self, scope: Scope) -> bool:
        """Whether one of the reader's scopes contains this one."""
        return _INSTALLATION in self.scopes or scope in self.scopes or Scope(scope.company) in self.scopes

    def within(self, wider: Reader) -> bool:
        """Whether this reader reads nothing that the other may not."""
        return all(wider.may_read(scope) for scope in self.scopes)


EVERYTHING = Reader(frozenset({_INSTALLATION}))


def reader_of(scopes: Iterable[Scope]) -> Reader:
    """A reader of these scopes."""
    return Reader(frozenset(scopes))


def barrier_stops(source: Scope, target: Scope) -> bool:
    """Whether data labelled with the source's scope may not go to the target (A-9).

    Area data may go to its area, its company and the installation; company data to the company, its areas and the installation.
    """
    if source.company is None or target.company is None:
        return False
    if source.company != target.company:
        return True
    return source.area is not None and target.area not in (None, source.area)
