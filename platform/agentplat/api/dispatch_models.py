"""What goes over the wire of chains and their dispatch."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field

from agentplat.api.models import Wire
from agentplat.domain.chains import ChainLimits
from agentplat.domain.deliveries import Backlog, Outcome, Reconciliation, SetAside
from agentplat.domain.scopes import Ref
from agentplat.domain.times import iso
from agentplat.usecases.show_chain import ChainRun, Hearing, ShownChain, Stop

MOST_HOPS = 1_000
MOST_RUNS = 1_000_000


def _text(ref: Ref | None) -> str | None:
    return None if ref is None else ref.text


class LimitsOut(Wire):
    """hops: the last hop whose run still executes, and publishes nothing. runs: most runs of one chain."""

    hops: int
    runs: int

    @classmethod
    def of(cls, limits: ChainLimits) -> Self:
        """The limits on the wire."""
        return cls(hops=limits.hops, runs=limits.runs)


class LimitsIn(Wire):
    """The limits to set; what is left out stays as it is."""

    hops: int | None = Field(default=None, ge=1, le=MOST_HOPS)
    runs: int | None = Field(default=None, ge=1, le=MOST_RUNS)


class SetAsideOut(Wire):
    """A finished run that could not be handled. reason: the kind of fault; the dispatcher's log has all of it."""

    run: int
    agent: str
    attempts: int
    reason: str
    at: str

    @classmethod
    def of(cls, found: SetAside) -> Self:
        """The run on the wire."""
        return cls(run=found.run_id, agent=found.agent.text, attempts=found.attempts, reason=found.reason, at=iso(found.at))


class StatusOut(Wire):
    """waiting: finished runs not dispatched yet; failing: those of them that failed before; oldest: when the first one finished.

    listed: the first of those that were set aside. next: the `after` of the following page, null behind the last.
    """

    waiting: int
    failing: int
    oldest: str | None
    set_aside: int
    listed: list[SetAsideOut]
    next: int | None

    @classmethod
    def of(cls, backlog: Backlog, aside: list[SetAside], size: int) -> Self:
        """The state on the wire."""
        return cls(
            waiting=backlog.waiting,
            failing=backlog.failing,
            oldest=None if backlog.oldest is None else iso(backlog.oldest),
            set_aside=backlog.set_aside,
            listed=list(map(SetAsideOut.of, aside)),
            next=aside[-1].run_id if len(aside) == size else None,
        )


class ResumedOut(Wire):
    """A finished run that is tried again."""

    run: int


class ReconciliationOut(Wire):
    """Every run that finished in the period, under one heading each. proved: whether every one was handled.

    runs: by heading (dispatched, before, waiting, set_aside, unaccounted). outcomes: by kind. unmatched: deliveries and
    outcomes that do not name each other. examples: the first hundred runs of each heading that is no good end.
    """

    since: str
    until: str
    finished: int
    runs: dict[str, int]
    outcomes: dict[str, int]
    unmatched: int
    examples: dict[str, list[int]]
    proved: bool

    @classmethod
    def of(cls, since: int, until: int, found: Reconciliation) -> Self:
        """The account on the wire."""
        return cls(
            since=iso(since),
            until=iso(until),
            finished=found.finished,
            runs={account.value: found.counts[account] for account in sorted(found.counts)},
            outcomes={kind.value: found.outcomes[kind] for kind in sorted(found.outcomes)},
            unmatched=found.unmatched,
            examples={account.value: list(runs) for account, runs in found.examples.items()},
            proved=found.proved,
        )


class OutcomeOut(Wire):
    """What became of one listener. listener: null for a run that nobody hears, and outside the reader's access."""

    kind: str
    event: str | None
    listener: str | None
    run: int | None
    details: dict[str, Any]
    at: str

    @classmethod
    def of(cls, outcome: Outcome) -> Self:
        """The outcome on the wire."""
        return cls(
            kind=outcome.kind.value,
            event=outcome.event,
            listener=_text(outcome.listener),
            run=outcome.run_id,
            details=dict(outcome.details),
            at=iso(outcome.at),
        )


class ChainRunOut(Wire):
    """A run of a chain; outside the reader's access, hop and state alone. hop: null where an older worker opened the run."""

    run: int | None
    hop: int | None
    agent: str | None
    version: int | None
    state: str
    source_run: int | None
    event: str | None
    outcomes: list[OutcomeOut]

    @classmethod
    def of(cls, run: ChainRun) -> Self:
        """The run on the wire."""
        return cls(
            run=run.id,
            hop=run.hop,
            agent=_text(run.agent),
            version=run.version,
            state=run.state.value,
            source_run=run.source_run_id,
            event=run.event,
            outcomes=list(map(OutcomeOut.of, run.outcomes)),
        )


class StopOut(Wire):
    """A run whose events were withheld. loop: the agents that the chain went round, null for one outside the reader's access.

    warned: whether the loop was warned about when a version of it was published: yes, no or unknown.
    """

    run: int
    why: str
    events: list[str]
    limit: int | None
    loop: list[str | None] | None
    warned: str | None

    @classmethod
    def of(cls, stop: Stop) -> Self:
        """The stop on the wire."""
        return cls(
            run=stop.run_id,
            why=stop.why.value,
            events=list(stop.events),
            limit=stop.limit,
            loop=None if stop.loop is None else list(map(_text, stop.loop)),
            warned=None if stop.warned is None else stop.warned.value,
        )


class HearingOut(Wire):
    """Who listens to whom just now, among the agents of the chain; null outside the reader's access."""

    source: str | None
    event: str | None
    listener: str | None

    @classmethod
    def of(cls, hearing: Hearing) -> Self:
        """The edge on the wire."""
        return cls(source=_text(hearing.source), event=hearing.event, listener=_text(hearing.listener))


class ChainOut(Wire):
    """A chain. known: whether it is known which one. chain: its hop-0 run, null outside the reader's access. size: its runs.

    listens: who listens to whom, to be looked at before any limit is raised: a chain at its limit is usually a loop nobody wanted.
    """

    known: bool
    chain: int | None
    size: int
    limits: LimitsOut
    runs: list[ChainRunOut]
    stops: list[StopOut]
    listens: list[HearingOut]

    @classmethod
    def of(cls, shown: ShownChain) -> Self:
        """The chain on the wire."""
        return cls(
            known=shown.known,
            chain=shown.chain,
            size=shown.size,
            limits=LimitsOut.of(shown.limits),
            runs=list(map(ChainRunOut.of, shown.runs)),
            stops=list(map(StopOut.of, shown.stops)),
            listens=list(map(HearingOut.of, shown.hearings)),
        )
