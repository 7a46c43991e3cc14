"""Collecting what is wrong with an input, so that all of it is told at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from graphsvc.domain.errors import InvalidInput, Violation, phrase

MAX_LISTED = 100
"""Most violations listed; the rest is counted, so that a hopeless file does not drown its reader."""


class Faults:
    """The violations found so far."""

    def __init__(self) -> None:
        self._listed: list[Violation] = []
        self._more = 0

    def __len__(self) -> int:
        return len(self._listed) + self._more

    def add(self, violations: Iterable[Violation]) -> None:
        """Keep these violations, or only count them where enough are listed."""
        for violation in violations:
            if len(self._listed) < MAX_LISTED:
                self._listed.append(violation)
            else:
                self._more += 1

    def refuse(self, field: str, place: str, reason: str, remedy: str) -> None:
        """Keep one violation."""
        self.add([Violation(field=field, place=place, reason=reason, remedy=remedy)])

    def extend(self, others: Faults) -> None:
        """Keep what another collection holds."""
        self.add(others._listed)
        self._more += others._more

    def sort(self, key: Callable[[Violation], tuple[int, ...]]) -> None:
        """Put the listed violations in order."""
        self._listed.sort(key=key)

    def raise_if_any(self) -> None:
        """Raises InvalidInput with what was collected; its last violation says how many more there are."""
        if not self._listed:
            return
        if self._more:
            reason, remedy = phrase("and %(count)s more faults", count=self._more), "mend those listed, then look again"
            raise InvalidInput([*self._listed, Violation(field="input", reason=reason, remedy=remedy)])
        raise InvalidInput(self._listed)
