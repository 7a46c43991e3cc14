"""Every refusal of the graph service, as a tree with fields; `rpc.status` gives each leaf its gRPC status.

Messages are for callers: they never carry a name the caller may not read, a path of the server or a traceback.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


class Phrase(str):
    """A text in English that remembers how it was made, so that whoever shows it can word it in another language.

    template: with ``%(name)s`` where the values go. values: names and numbers as they are; other phrases to be worded themselves.
    A text without values is its own template, and needs to be a phrase only where it is a value.
    """

    template: str
    values: Mapping[str, object]


def phrase(template: str, /, **values: object) -> Phrase:
    """A phrase with these values."""
    made = Phrase(template % values if values else template)
    made.template, made.values = template, values
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One fault in an input.

    field: the faulty field as its author knows it, such as ``emits[2].event``.
    place: where it stands: ``file:line:column``, ``file:line`` or empty when the input has no places.
    reason: what is wrong. remedy: what would be right. Both are phrases where something stands in them.
    """

    field: str
    reason: str
    remedy: str
    place: str = ""

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        return f"{where}{self.field}: {self.reason}; {self.remedy}"


class GraphError(Exception):
    """Base of everything that the graph service refuses on purpose."""


class InvalidInput(GraphError):
    """The input breaks a rule; carries every violation found, at least one. Nothing was stored."""

    def __init__(self, violations: Iterable[Violation]) -> None:
        self.violations = tuple(violations)
        super().__init__("\n".join(map(str, self.violations)))


class VersionConflict(GraphError):
    """A version number of an agent was sent again with other content."""

    def __init__(self, agent: str, number: int) -> None:
        self.agent, self.number = agent, number
        super().__init__(
            f"version {number} of {agent} is already published with other content; publish the content under a new number"
        )


class StaleVersion(GraphError):
    """A new version number is below the agent's current one."""

    def __init__(self, agent: str, number: int, current: int) -> None:
        self.agent, self.number, self.current = agent, number, current
        super().__init__(
            f"version {number} of {agent} is below its current version {current};"
            f" to go back, publish the old content under a number above {current}"
        )


class RevisionAhead(GraphError):
    """`at_least_revision` asks for a revision that the log has not reached."""

    def __init__(self, wanted: int, head: int) -> None:
        self.wanted, self.head = wanted, head
        super().__init__(f"revision {wanted} was asked for, but the log ends at {head}; ask again with a revision that was seen")


class UnknownAgent(GraphError):
    """No such agent, or none that this reader may read: the two are one answer."""

    def __init__(self) -> None:
        super().__init__("there is no such agent, or it is outside your access")


class Unauthenticated(GraphError):
    """No token or certificate, or one that is not valid here."""


class AccessDenied(GraphError):
    """The caller is known, but its grants do not cover what it asks for."""


class Overloaded(GraphError):
    """Too much at once, or too large; what was accepted before is still finished."""


class StoreUnavailable(GraphError):
    """The store did not answer; nothing that was not acknowledged is lost by trying again."""

    def __init__(self) -> None:
        super().__init__("the store of the graph service does not answer; try again later")


class DeadlinePassed(GraphError):
    """The caller's deadline, or the server's default one, passed before the work was done."""


class LogDamaged(GraphError):
    """The log itself breaks its promises (a gap, a digest that does not match): an operator must look."""
