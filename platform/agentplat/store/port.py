"""What the store promises. One suite of tests holds SQLite and PostgreSQL to this page.

Everything happens inside a transaction: `reading()` sees one state of the database, `writing()` becomes visible whole and durable
when the block ends without an exception, or not at all. Every method raises StoreUnavailable when the database does not answer.
Times are whole milliseconds since 1970, UTC; waits and leases are measured by the database's clock where several hosts share one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from agentplat.domain.access import Grant, Person, Token
from agentplat.domain.acts import Act
from agentplat.domain.approvals import Approval
from agentplat.domain.artifacts import Artifact, Blob, Declassification
from agentplat.domain.budgets import Budget, Holder, Unit
from agentplat.domain.chains import ChainLimits
from agentplat.domain.deliveries import Backlog, NewOutcome, Outcome, Reconciliation, SetAside
from agentplat.domain.insights import LoggedRun, Progress, RunFilter, Totals
from agentplat.domain.labels import Labels
from agentplat.domain.outbox import Claim, Entry, EntryKind
from agentplat.domain.registry import Agent, Content, Declared, KeptReport, Source, Version
from agentplat.domain.runs import DriverKind, NewRun, Run
from agentplat.domain.scopes import Ref
from agentplat.domain.steps import Body, Closing, Resumed, StepKind, Waiting
from agentplat.domain.trail import Step
from agentplat.store.pipeline_port import Pipelines, Proposals
from agentplat.store.work_port import Contracts, Spaces, Tickets, Workspaces


class Registry(Protocol):
    """Agents, their versions and reports."""

    def find(self, ref: Ref) -> Agent | None:
        """The agent, if any version of it was ever published."""

    def by_id(self, agent_id: int) -> Agent:
        """The agent of an id that the store gave out."""

    def hold(self, ref: Ref) -> Agent:
        """The agent, created if need be, held against every other writer until the transaction ends."""

    def page(self, scopes: Collection[str], after: Ref | None, size: int) -> list[Agent]:
        """Agents of these scopes and below, by scope, then name, from behind `after`."""

    def named(self, name: str, scopes: Collection[str], size: int) -> list[Agent]:
        """Agents of this name in these scopes and below, by scope; at most so many."""

    def last_number(self, agent: Agent) -> int:
        """The highest number of the agent's versions, 0 where there is none."""

    def add(self, agent: Agent, number: int, content: Content, publisher: Person, published_at: int) -> None:
        """Store a version and make it the agent's published one."""

    def retire(self, agent: Agent) -> None:
        """Leave the agent without a published version."""

    def pause(self, agent: Agent, paused: bool) -> None:
        """Mark the agent as paused, or no longer."""

    def version(self, agent: Agent, number: int) -> Version | None:
        """One version."""

    def versions(self, agent: Agent, below: int | None, size: int) -> list[Version]:
        """Versions with a number under `below`, newest first."""

    def paused_among(self, refs: Collection[Ref]) -> set[Ref]:
        """Those of the agents that are paused."""

    def listeners(self, event: str) -> list[Agent]:
        """Agents whose published version the event starts, by scope, then name."""

    def sources(self, events: Collection[str], scopes: Collection[str]) -> list[Source]:
        """Published agents of these scopes and below that emit one of the events, by event, then scope, then name."""

    def declared(self, scopes: Collection[str], size: int) -> list[Declared]:
        """What the published versions of agents of these scopes and below declare, by scope, then name."""

    def hearers(self, events: Collection[str], scopes: Collection[str]) -> list[tuple[str, Ref]]:
        """Published agents of these scopes and below that one of the events starts, by event, then scope, then name."""

    def keep_report(self, agent_id: int, number: int, report: KeptReport) -> None:
        """Keep a report with its version, in place of the one before."""

    def report(self, agent: Agent, number: int) -> KeptReport:
        """The report kept with a version that is there."""

    def late(self, publisher: Person, scopes: Collection[str], size: int) -> list[tuple[Agent, int, KeptReport]]:
        """Reports that came late, of published versions of this publisher in these scopes and below, newest version first."""


class Outbox(Protocol):
    """Entries on their way to the graph service."""

    def append(self, agent: Agent, kind: EntryKind, number: int, actor: Person, owner: str, lease_s: float) -> Entry:
        """Add an entry behind the agent's others. It begins under a lease of its owner, who will try first."""

    def entry(self, entry_id: int) -> Entry:
        """The entry as it stands."""

    def claim_head(self, agent_id: int, owner: str, lease_s: float) -> Claim | None:
        """Lease the agent's first unsettled entry, due or not; None if there is none, it is set aside, or another holds it."""

    def due(self) -> bool:
        """Whether `claim_due` would find an entry just now."""

    def claim_due(self, owner: str, lease_s: float) -> Claim | None:
        """Lease a due entry that is first of its agent and that nobody holds; None if there is none."""

    def deliver(self, claim: Claim, revision: int | None) -> bool:
        """Settle a claimed entry as delivered; False when somebody else settled it before."""

    def postpone(self, claim: Claim, wait_s: float, reason: str) -> None:
        """Give a claimed entry back, one attempt older, due after the wait."""

    def set_aside(self, claim: Claim, reason: str) -> bool:
        """Stop the agent's deliveries at a claimed entry until somebody resumes them; False when it was settled before."""

    def resume(self, agent_id: int, skip: bool) -> Entry | None:
        """Let a set-aside entry be tried again, or skip it; None when the agent has none."""

    def release(self, agent_id: int, owner: str) -> None:
        """Let go of the agent's entries that the owner still holds."""

    def hasten(self) -> None:
        """Make every waiting entry due now."""

    def unsettled(self, agent_ids: Collection[int]) -> dict[int, Entry]:
        """The first unsettled entry of each agent that has one."""

    def publication(self, agent_id: int, number: int) -> Entry:
        """The entry that carries this version."""

    def sizes(self) -> tuple[int, int]:
        """How many entries wait and how many are set aside."""


class People(Protocol):
    """People, their grants and tokens."""

    def find(self, ref: Ref) -> Person | None:
        """The person of this name."""

    def by_id(self, person_id: int) -> Person:
        """The person of an id that the store gave out."""

    def add(self, ref: Ref, created_at: int) -> Person | None:
        """Store a person; None when the name is taken in that scope."""

    def page(self, scopes: Collection[str], after: Ref | None, size: int) -> list[Person]:
        """People whose home is in these scopes or below, by scope, then name, from behind `after`."""

    def grants(self, person: Person) -> frozenset[Grant]:
        """The person's present grants."""

    def grant(self, person: Person, grant: Grant) -> bool:
        """Add a grant; False when it was there."""

    def revoke(self, person: Person, grant: Grant) -> bool:
        """Take a grant away; False when it was not there."""

    def tokens(self, person: Person) -> list[Token]:
        """The person's tokens, oldest first."""

    def add_token(self, person: Person, name: str, sha256: str, created_at: int, expires_at: int | None) -> Token | None:
        """Store a token's hash; None when the person has a token of that name."""

    def revoke_token(self, person: Person, name: str, revoked_at: int) -> bool:
        """Make a token invalid for good; False when the person has no valid token of that name."""

    def holder(self, sha256: str, now: int, session: str | None = None) -> Person | None:
        """The person whose token has this hash and is neither expired nor revoked.

        session: the hash of a session that was opened with it, and that must not have been ended; None for the token itself.
        """

    def end_session(self, session: str, until: int, now: int) -> None:
        """End the session with this hash for good; ended already, it stays so. until: when it would have ended by itself."""


class Acts(Protocol):
    """The record of who did what."""

    def record(self, at: int, actor: Person | None, act: str, subject: Ref, details: Mapping[str, Any]) -> None:
        """Add an act on an agent or a person."""

    def page(self, scopes: Collection[str], before: int | None, size: int) -> Sequence[Act]:
        """Acts on subjects of these scopes and below, newest first, with an id under `before`."""


class Runs(Protocol):
    """Runs, their leases and trails.

    Every change of a run takes the run as its writer knows it and gives it as it is then. The change is refused with LeaseLost when
    the run has another owner, has ended, or has another last step than the writer knows: who lost a lease cannot write.
    """

    def open(self, new: NewRun, at: int) -> Run | None:
        """Store a run with its labels, input and opening step; None where its delivery has opened a run already (R-15)."""

    def find(self, run_id: int) -> Run | None:
        """The run."""

    def some(self, run_ids: Collection[int]) -> dict[int, Run]:
        """Those of these runs that there are, by id in the order given; at most a thousand are asked about."""

    def last_steps(self, run_ids: Collection[int]) -> dict[int, Step]:
        """The last step of each of these runs, by run; at most a thousand are asked about."""

    def delivered(self, source_run_id: int, event: str, agent_id: int) -> Run | None:
        """The run that this delivery opened."""

    def of_chain(self, chain: int, size: int) -> list[Run]:
        """The first runs of a chain, its hop 0 among them, by id."""

    def page(self, scopes: Collection[str], before: int | None, size: int) -> list[Run]:
        """Runs of agents of these scopes and below with an id under `before`, newest first."""

    def readable_among(self, run_ids: Collection[int], scopes: Collection[str]) -> set[int]:
        """Those of the runs whose agents are of these scopes or below."""

    def labels(self, run_ids: Collection[int]) -> Labels:
        """All labels that any of the runs has."""

    def leasable(self, drivers: Collection[DriverKind], scopes: Collection[str] | None = None, host: str | None = None) -> bool:
        """Whether `lease` would find a run just now."""

    def lease(
        self,
        drivers: Collection[DriverKind],
        owner: str,
        lease_s: float,
        scopes: Collection[str] | None = None,
        host: str | None = None,
    ) -> Run | None:
        """Hold the oldest run with one of the drivers that is queued, or whose holder let its lease run out; None if there is none.

        It is running from then on and counts one attempt more. owner: a text that nobody else has. scopes: only runs of agents of
        these scopes and below; None for all. host: a run that needs work trees is taken only for the host that
        holds its repositories, and never for None.
        """

    def renew(self, run: Run, lease_s: float) -> bool:
        """Hold the run for so long from now; False where it is no longer held by its owner."""

    def release(self, run: Run) -> None:
        """Give a held run back in order, queued and one attempt younger; does nothing where it is not held any more."""

    def append(self, run: Run, bodies: Sequence[Body], at: int) -> Run:
        """Add steps behind the last one. Raises LeaseLost."""

    def take_on(self, run: Run, labels: Labels) -> Run:
        """Join labels to the run's (A-8)."""

    def wait(self, run: Run, waiting: Waiting, at: int) -> Run:
        """Let the run wait and nobody hold it. Raises LeaseLost."""

    def resume(self, run: Run, resumed: Resumed, at: int) -> Run:
        """Queue a waiting run. Raises LeaseLost."""

    def close(self, run: Run, closing: Closing, at: int) -> Run:
        """End the run: its closing step and its state, at once, and what was set aside for it comes back (A-15, D-6).

        A finished one is then to be dispatched. Raises LeaseLost.
        """

    def ask_to_cancel(self, run: Run, by: Person, at: int) -> None:
        """Note that a person wants the run to be cancelled; its holder sees it when it next reads the run."""

    def trail(self, run_id: int, after: int = 0, size: int | None = None, kinds: Collection[StepKind] | None = None) -> list[Step]:
        """The steps behind a number, in order; at most `size` of them, and only of some kinds, where that is given.

        Raises TrailDamaged where one is of no known kind.
        """

    def input(self, run_id: int) -> tuple[Blob, bool] | None:
        """What the run's opener wrote, and whether it was erased; None where there was nothing."""


class Artifacts(Protocol):
    """What runs published, by reference."""

    def publish(self, run: Run, name: str, blob: Blob, labels: Labels, at: int) -> Artifact:
        """Keep an artifact of the run. Its bytes must be durable already."""

    def of_run(self, run_id: int) -> dict[str, Artifact]:
        """The run's artifacts by name."""

    def find(self, run_id: int, name: str) -> Artifact | None:
        """One artifact of a run."""

    def guard(self, digests: Collection[str]) -> None:
        """Keep everybody else who guards one of these from going on until the transaction ends.

        Whoever names bytes in the database and whoever takes bytes away does so first: bytes could go that are just being named.
        """

    def erase(self, artifact: Artifact, by: Person, at: int) -> bool:
        """Note that a person took the artifact's content away; False where somebody had already."""

    def erase_input(self, run: Run, by: Person, at: int) -> bool:
        """Note that a person took away what the run's opener wrote; False where there was nothing, or somebody had already."""

    def is_needed(self, digest: str) -> bool:
        """Whether an artifact or an input that was not erased has bytes of this digest."""

    def declassify(self, artifact: Artifact, label: str, reason: str, by: Person, at: int, expires_at: int) -> Declassification:
        """Note that until a moment the artifact is read without a label. The database refuses the labels of a place."""

    def declassifications(self, artifact: Artifact) -> list[Declassification]:
        """All such acts on the artifact, those that have ended too, oldest first."""


class Approvals(Protocol):
    """What people were asked about calls, and what they said (A-14)."""

    def ask(self, run_id: int, call: int, tool: str, order: Blob, at: int) -> None:
        """Ask about a call, once. order: what exactly would run; its bytes must be durable already."""

    def of_call(self, run_id: int, call: int) -> Approval | None:
        """The question about a call."""

    def find(self, approval_id: int) -> Approval | None:
        """One question."""

    def page(self, scopes: Collection[str], undecided: bool, before: int | None, size: int) -> list[Approval]:
        """Questions about runs of agents of these scopes and below with an id under `before`, newest first.

        undecided: only those that a waiting run still waits for.
        """

    def decide(self, approval: Approval, granted: bool, by: Person, reason: str | None, at: int) -> bool:
        """Keep a person's answer; False where there is one already."""


class Budgets(Protocol):
    """What is counted for scopes, agents and runs, and what is set aside for calls under way (A-15, A-16)."""

    def hold(self, holders: Sequence[Holder], units: Sequence[Unit], own: Mapping[Unit, int]) -> list[Budget]:
        """The budgets of these holders and units, by holder in their order; nobody else changes them until the transaction ends.

        One that is not there is made without a ceiling, that of the last holder with the one that `own` has for its unit.
        """

    def reserve(self, run_id: int, call: int, amounts: Mapping[Unit, int], budgets: Sequence[Budget]) -> None:
        """Set the amounts aside in budgets that this transaction holds."""

    def open_calls(self, run_id: int) -> dict[int, dict[Unit, int]]:
        """What is set aside for calls of the run, by call and unit."""

    def set_aside(self, run_id: int, delegator_run_id: int, amounts: Mapping[Unit, int], budgets: Sequence[Budget]) -> None:
        """Set the amounts aside for a delegated run, in budgets that this transaction holds, until it ends (D-6).

        `Runs.close` gives back what it did not spend. What it delegated itself and goes on stays set aside where this was.
        """

    def escrowed(self, run_id: int) -> dict[Unit, int]:
        """What was set aside for a delegated run, by unit; its ceilings are never set higher."""

    def settle(self, run_id: int, call: int, took: Mapping[Unit, int]) -> dict[Unit, int]:
        """Turn what is set aside for a call into what it took, by unit; a unit that `took` lacks took all. What was settled now."""

    def set_ceiling(self, holder: Holder, unit: Unit, ceiling: int | None) -> None:
        """Set or lift a ceiling."""

    def of(self, holders: Sequence[Holder]) -> list[Budget]:
        """The budgets that these holders have, by holder in their order, then by unit."""


class Chains(Protocol):
    """The limits of chains, and how many runs each has."""

    def limits(self) -> ChainLimits:
        """The limits in force, which are kept here and nowhere else (R-7)."""

    def set_limits(self, limits: ChainLimits) -> None:
        """Set the limits for every worker."""

    def take(self, chain: int, most: int) -> bool:
        """Count one more run of a chain, unless it has `most` already (R-12). Undone with the transaction."""

    def size(self, chain: int) -> int:
        """How many runs of a chain were counted, its hop 0 included."""


class Deliveries(Protocol):
    """Finished runs on their way to their listeners, and what became of each delivery."""

    def due(self) -> bool:
        """Whether `take` would find a run just now."""

    def take(self) -> Run | None:
        """The finished run that has waited longest for its dispatch and that nobody else holds, held until the transaction ends.

        None where there is none. A run that failed before is passed over until its wait is over, one that was set aside always. One
        whose outcomes are stored already is marked and passed over too.
        """

    def opened(self, source_run_id: int) -> dict[tuple[str, int], int]:
        """The runs that deliveries of a run have opened, whoever made them: ids by event and listener."""

    def settle(self, run_id: int, outcomes: Sequence[NewOutcome]) -> None:
        """Store what became of every delivery of a held run, at least one, and mark the run as dispatched."""

    def fail(self, run_id: int) -> int | None:
        """Count an attempt that failed, and how many there were; None where the run was dispatched or set aside meanwhile."""

    def postpone(self, run_id: int, wait_s: float) -> None:
        """Pass the run over for so many seconds."""

    def put_aside(self, run_id: int, reason: str) -> None:
        """Pass the run over until somebody resumes it."""

    def resume(self, run_id: int) -> bool:
        """Let a run that was set aside be tried again; False where it is not set aside."""

    def outcomes(self, run_ids: Collection[int]) -> list[Outcome]:
        """What became of the deliveries of these runs, by run, then in their order."""

    def backlog(self, scopes: Collection[str]) -> Backlog:
        """What waits of runs of agents of these scopes and below."""

    def set_aside(self, scopes: Collection[str], after: int, size: int) -> list[SetAside]:
        """Runs that were set aside, by id, from behind `after`."""

    def reconcile(self, scopes: Collection[str], since: int, until: int) -> Reconciliation:
        """The account over the runs that finished from `since` until just before `until`."""


class Insights(Protocol):
    """Runs looked at together."""

    def log(self, which: RunFilter, before: int | None, size: int) -> list[LoggedRun]:
        """Runs that were opened before the run `before`, newest first; none where there is no such run."""

    def under_way(self, scopes: Collection[str], size: int) -> list[LoggedRun]:
        """Runs of agents of these scopes and below that have not ended, oldest first."""

    def stopped(self, scopes: Collection[str], size: int) -> list[LoggedRun]:
        """Runs of agents of these scopes and below that wait for a budget, oldest first."""

    def last_ended(self, scopes: Collection[str]) -> Mapping[Ref, int]:
        """When the last run of each agent of these scopes and below ended."""

    def totals(self, which: RunFilter) -> Totals:
        """What the runs came to."""

    def spent(self, run_ids: Collection[int]) -> dict[int, dict[Unit, int]]:
        """What each of the runs cost so far, by unit; what cost nothing is left out."""

    def progress(self, run_ids: Collection[int], newer_than: int) -> list[Progress]:
        """How far all runs are that are queued or running, these, and those with a higher id, by id."""

    def newest(self) -> int:
        """The highest id of a run, 0 where there is none."""

    def waiting(self) -> set[int]:
        """All runs that wait."""


class Work(Protocol):
    """One transaction."""

    @property
    def registry(self) -> Registry:
        """Agents, versions, reports."""

    @property
    def outbox(self) -> Outbox:
        """Entries on their way."""

    @property
    def people(self) -> People:
        """People, grants, tokens."""

    @property
    def acts(self) -> Acts:
        """Who did what."""

    @property
    def runs(self) -> Runs:
        """Runs and trails."""

    @property
    def artifacts(self) -> Artifacts:
        """What runs published."""

    @property
    def approvals(self) -> Approvals:
        """What people are asked."""

    @property
    def budgets(self) -> Budgets:
        """What is spent and set aside."""

    @property
    def chains(self) -> Chains:
        """Limits and sizes of chains."""

    @property
    def deliveries(self) -> Deliveries:
        """What becomes of finished runs."""

    @property
    def insights(self) -> Insights:
        """Runs looked at together."""

    @property
    def workspaces(self) -> Workspaces:
        """Workspaces and repositories."""

    @property
    def tickets(self) -> Tickets:
        """Tickets and who is involved."""

    @property
    def spaces(self) -> Spaces:
        """Spaces, messages, and where runs work."""

    @property
    def contracts(self) -> Contracts:
        """What outputs must look like."""

    @property
    def proposals(self) -> Proposals:
        """Proposals and their revisions."""

    @property
    def pipelines(self) -> Pipelines:
        """Pipelines and their steps."""


class Store(Protocol):
    """The database."""

    def reading(self) -> AbstractContextManager[Work]:
        """A transaction that only reads."""

    def writing(self) -> AbstractContextManager[Work]:
        """A transaction that commits on leaving and rolls back on an exception."""

    def check(self) -> None:
        """Raises StoreUnavailable when the database does not answer, SchemaOutdated when it needs migrating."""

    def close(self) -> None:
        """Release connections and files. Calling it twice does nothing."""
