"""Every refusal of the platform, as a tree with fields; `api.problems` gives each leaf its HTTP status.

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

    field: the faulty field as its author knows it. place: ``file:line:column``, or empty when the input has no places.
    reason: what is wrong. remedy: what would be right. Both are phrases where something stands in them.
    """

    field: str
    reason: str
    remedy: str
    place: str = ""

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        return f"{where}{self.field}: {self.reason}; {self.remedy}"


class PlatformError(Exception):
    """Base of everything that the platform refuses on purpose. Its one argument is the message, a phrase where names are in it."""


class InvalidInput(PlatformError):
    """The input breaks a rule; carries every violation found, at least one. Nothing was stored."""

    def __init__(self, violations: Iterable[Violation]) -> None:
        self.violations = tuple(violations)
        super().__init__("\n".join(map(str, self.violations)))


class Unauthenticated(PlatformError):
    """No token, or one that is not valid here."""

    def __init__(self) -> None:
        super().__init__("send a valid token: Authorization: Bearer …")


class AccessDenied(PlatformError):
    """The caller's grants do not cover the act. Says the role and scope that would, whatever exists there."""

    def __init__(self, role: str, scope: str) -> None:
        self.role, self.scope = role, scope
        super().__init__(
            phrase("this needs the role %(role)s on the scope %(scope)s; ask an admin of that scope for it", role=role, scope=scope)
        )


class NotFound(PlatformError):
    """No such thing, or none that the caller may read: the two are one answer."""

    def __init__(self) -> None:
        super().__init__("there is no such thing, or it is outside your access")


class UnexpectedNumber(PlatformError):
    """The publisher expected another number for the new version. Nothing was stored."""

    def __init__(self, agent: str, expected: int, actual: int) -> None:
        self.agent, self.expected, self.actual = agent, expected, actual
        said = (
            "the next version of %(agent)s has number %(actual)s, not %(expected)s;"
            " somebody published meanwhile: look at the current version, then publish again"
        )
        super().__init__(phrase(said, agent=agent, actual=actual, expected=expected))


class Conflict(PlatformError):
    """The act does not fit the present state; the message says why and what would fit."""


class Refused(PlatformError):
    """A guard refuses to start work. The message is its reason, which whoever asked gets word for word; nothing was written."""


class LeaseLost(PlatformError):
    """Somebody else holds the run, or it went on without the writer. Nothing was written; whoever finds this out stops at once."""

    def __init__(self, run_id: int) -> None:
        self.run_id = run_id
        said = "run %(run)s is held by another worker or has moved on; take it again before writing to it"
        super().__init__(phrase(said, run=run_id))


class RunCancelled(PlatformError):
    """Somebody asked for the run to be cancelled; nothing more is done in it."""

    def __init__(self, run_id: int) -> None:
        self.run_id = run_id
        super().__init__(phrase("run %(run)s is cancelled; nothing more is done in it", run=run_id))


class TrailDamaged(PlatformError):
    """A stored step cannot be read as one. number: which, in its run."""

    def __init__(self, run_id: int, number: int) -> None:
        self.run_id, self.number = run_id, number
        said = "step %(number)s of the trail of run %(run)s was changed after it was written; verify the trail"
        super().__init__(phrase(said, number=number, run=run_id))


class ContentUnavailable(PlatformError):
    """The content store did not take or give bytes. reason: for the operator's log."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__("the content store does not answer; try again later")


class ContentDamaged(PlatformError):
    """The content store lost bytes, or has other bytes under their digest; they are not served (A-6)."""

    def __init__(self, digest: str) -> None:
        self.digest = digest
        said = "the content with the digest %(digest)s is lost or damaged and is not served; tell the operator"
        super().__init__(phrase(said, digest=digest))


class RunWaits(PlatformError):
    """The run waits for a person or a budget and is held by nobody; whoever drove it stops. It goes on from its trail."""

    def __init__(self, run_id: int, what: str) -> None:
        self.run_id, self.what = run_id, what
        super().__init__(phrase("run %(run)s waits for %(what)s", run=run_id, what=what))


class RunEnded(PlatformError):
    """The run has ended by what its driver did; whoever drove it stops. state: how."""

    def __init__(self, run_id: int, state: str) -> None:
        self.run_id, self.state = run_id, state
        super().__init__(phrase("run %(run)s is %(state)s by this; nothing more is done in it", run=run_id, state=state))


class ContractUnmet(PlatformError):
    """The run may not finish, as its contract asks for an output that was not accepted; the message says what would let it."""


class RunFailed(PlatformError):
    """A driver ends its run as failed. reason: for the closing step."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class TooLarge(PlatformError):
    """A request with more bytes than the server takes."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        super().__init__(phrase("the request is larger than %(most)s bytes; send less, or in several requests", most=most_bytes))


class Overloaded(PlatformError):
    """Too many requests; what was accepted before is still finished."""

    def __init__(self, retry_after_s: int) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(phrase("too many requests; try again in %(seconds)s s", seconds=retry_after_s))


class StoreUnavailable(PlatformError):
    """The database did not answer; nothing that was acknowledged is lost."""

    def __init__(self) -> None:
        super().__init__("the database of the platform does not answer; try again later")


class SchemaOutdated(PlatformError):
    """The database has an older schema than this software needs."""

    def __init__(self) -> None:
        super().__init__("the database has an older schema; run `agentplat migrate` once, then start again")


class GraphUnavailable(PlatformError):
    """The graph service did not answer: down, slow, overloaded or past its deadline. Trying later may help.

    reason: for the operator's log. down: whether nothing else would be answered either just now.
    """

    def __init__(self, reason: str, *, down: bool) -> None:
        self.reason, self.down = reason, down
        super().__init__("the graph service did not answer; try again later")


class GraphRefused(PlatformError):
    """The graph service refused for good: the same call will never succeed."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(phrase("the graph service refused: %(reason)s", reason=reason))


class ChildFailed(PlatformError):
    """A process that the platform runs itself did not start, or ended too often."""
