"""The use cases of the graph service: check, publish, retire, import, export, describe, status."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from threading import Lock

import numpy as np

from graphsvc.collecting import uncollected
from graphsvc.columns import Columns, columns_of
from graphsvc.domain.answers import Description, Imported, Published, Retired, Status
from graphsvc.domain.canonical import digest_of
from graphsvc.domain.errors import (
    InvalidInput,
    LogDamaged,
    Overloaded,
    RevisionAhead,
    StaleVersion,
    UnknownAgent,
    VersionConflict,
    Violation,
)
from graphsvc.domain.limits import LimitPolicy, Limits
from graphsvc.domain.model import AgentVersion, Declaration, EntryKind, LogEntry, NewEntry
from graphsvc.domain.names import AgentRef, Scope
from graphsvc.domain.redaction import Reader
from graphsvc.domain.report import Report
from graphsvc.graph import Graph, Kernel
from graphsvc.judge import judge
from graphsvc.kernels import jit
from graphsvc.locking import ReadWriteLock
from graphsvc.store.port import Log, SnapshotState, Store, Writing

DEFAULT_PAGE_SIZE = 100
MAX_PAGE_SIZE = 1_000
DEFAULT_PATIENCE_S = 8.0
"""Less than a server's default deadline, so that a caller that waits in vain is told why."""
_FOLD_BATCH = 65_536
_EXPORT_BATCH = 500


class GraphService:
    """The graph of one installation. Safe to use from many threads; several services may share one store.

    Every method raises the leaves of `domain.errors` and nothing else on purpose. What a caller may do is decided before.
    """

    def __init__(
        self,
        store: Store,
        policy: LimitPolicy,
        kernel: Kernel = jit.search,
        *,
        patience_s: float = DEFAULT_PATIENCE_S,
        snapshot: SnapshotState | None = None,
    ) -> None:
        """Load the log: what comes after the snapshot where it fits the log, the whole otherwise. patience_s: how long a
        publication waits for those before it."""
        self._store, self._policy, self._kernel, self._patience_s = store, policy, kernel, patience_s
        self._graph = Graph.of_state(snapshot) if snapshot and _fits(snapshot, store) else Graph()
        self.loaded_from = self._graph.revision
        self._lock = ReadWriteLock()
        self._publishing = Lock()
        with uncollected():
            self._graph.apply(store.read(self._graph.revision))  # in one go: nobody reads yet
            self.catch_up()

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    @property
    def revision(self) -> int:
        """The revision that the graph in memory is at."""
        return self._graph.revision

    def state(self, keep: Callable[[SnapshotState], None]) -> None:
        """Hand the graph to somebody who keeps it; publications wait meanwhile."""
        with self._lock.reading():
            state = self._graph.state()
            if self._graph.revision:
                keep(SnapshotState({**state.meta, "entry": _entry_digest(self._store, self._graph.revision)}, state.arrays))

    def catch_up(self) -> int:
        """Fold what other services appended to the log; returns the revision reached."""
        with self._turn():
            self._fold(self._store)
            return self._graph.revision

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Be the only one here who changes the graph. Raises Overloaded when the ones before take too long."""
        if not self._publishing.acquire(timeout=self._patience_s):
            raise Overloaded("too many publications wait for their turn; try again later")
        try:
            yield
        finally:
            self._publishing.release()

    def _fold(self, log: Log) -> None:
        head = log.head()
        if head < self._graph.revision:
            raise LogDamaged(f"the log ends at {head}, but revision {self._graph.revision} was read from it before")
        if head == self._graph.revision:
            return
        entries = log.read(self._graph.revision)
        while batch := list(islice(entries, _FOLD_BATCH)):
            self._apply(batch)

    def _apply(self, entries: Sequence[LogEntry]) -> None:
        with self._lock.writing():
            self._graph.apply(entries)

    def _reach(self, revision: int) -> None:
        if revision > self._graph.revision:
            head = self.catch_up()
            if revision > head:
                raise RevisionAhead(revision, head)

    def check(
        self,
        agent: AgentRef,
        declaration: Declaration,
        reader: Reader,
        *,
        max_loops: int | None = None,
        max_visits: int | None = None,
        at_least_revision: int = 0,
    ) -> Report:
        """What this declaration would close as the agent's version; nothing is stored."""
        limits = self._policy.apply(max_loops, max_visits)
        self._reach(at_least_revision)
        with self._lock.reading():
            return judge(self._graph, agent, declaration, reader, limits, self._kernel, self._graph.revision)

    def publish(
        self, version: AgentVersion, reader: Reader, *, max_loops: int | None = None, max_visits: int | None = None
    ) -> Published:
        """Store a version and answer with the report on the very revision that it creates (G-22).

        Raises VersionConflict for other content under a known number, StaleVersion for a new number below the current one.
        """
        limits = self._policy.apply(max_loops, max_visits)
        with self._turn():
            with self._store.writing() as log:
                self._fold(log)
                known = self._known(log, version, self._graph.last_number(version.agent))
                head = self._graph.revision
                revision = head if known else head + 1
                report = judge(self._graph, version.agent, version.declaration, reader, limits, self._kernel, revision)
                entries = [] if known else log.append([_publication(version)])
            self._apply(entries)
        return Published(revision=known.revision if known else revision, created=not known, report=report)

    def _known(self, log: Writing, version: AgentVersion, last: int) -> LogEntry | None:
        """The entry of this very version, or None where it is new. last: the agent's newest number."""
        if version.number > last:
            return None
        entry = log.find(version.agent, version.number)
        if entry is None:
            raise StaleVersion(version.agent.text, version.number, last)
        if entry.declaration != version.declaration:
            raise VersionConflict(version.agent.text, version.number)
        return entry

    def retire(self, agent: AgentRef, number: int = 0) -> Retired:
        """Take an agent out of the graph. A retired agent stays so: the call then changes nothing. Raises UnknownAgent.

        number: retire only while this version is the published one, 0 for whichever is. A repeated call that comes after a newer
        version then leaves that version alone.
        """
        with self._turn():
            with self._store.writing() as log:
                self._fold(log)
                if self._graph.last_number(agent) == 0:
                    raise UnknownAgent
                current = self._graph.published(agent)
                meant = current is not None and number in (0, current.number)
                entries = (
                    log.append([NewEntry(EntryKind.RETIRE, agent, current.number, Declaration())]) if current and meant else []
                )
            self._apply(entries)
            return Retired(revision=self._graph.revision, created=bool(entries))

    def import_versions(self, versions: Iterable[AgentVersion]) -> Imported:
        """Store many versions, all or none. Number 0 stands for the next one, where the content differs from the current version.

        Raises VersionConflict and StaleVersion as `publish` does.
        """
        with self._turn(), uncollected():
            with self._store.writing() as log:
                self._fold(log)
                new, unchanged = self._new_entries(log, versions)
                entries = log.append(new) if new else []
            self._apply(entries)
            return Imported(revision=self._graph.revision, created=len(entries), unchanged=unchanged)

    def import_columns(self, columns: Columns) -> Imported:
        """The same for versions in columns, every agent given once. What is published already costs next to nothing."""
        with self._turn(), uncollected():
            with self._store.writing() as log:
                self._fold(log)
                fresh = np.flatnonzero(~self._graph.holds(columns))
                new, unchanged = self._new_entries(log, columns.taken(fresh).versions())
                entries = log.append(new) if new else []
            self._apply(entries)
            unchanged += columns.size - fresh.size
            return Imported(revision=self._graph.revision, created=len(entries), unchanged=unchanged)

    def _new_entries(self, log: Writing, versions: Iterable[AgentVersion]) -> tuple[list[NewEntry], int]:
        new: list[NewEntry] = []
        staged: dict[AgentRef, NewEntry] = {}
        unchanged = 0
        versions = iter(versions)
        while chunk := list(islice(versions, _FOLD_BATCH)):
            for version, last in zip(chunk, self._graph.last_numbers([version.agent for version in chunk]), strict=True):
                entry = self._new_entry(log, version, staged.get(version.agent), last)
                if entry is None:
                    unchanged += 1
                else:
                    new.append(entry)
                    staged[version.agent] = entry
        return new, unchanged

    def _new_entry(self, log: Writing, version: AgentVersion, staged: NewEntry | None, stored: int) -> NewEntry | None:
        """stored: the agent's newest number in the graph."""
        last = staged.number if staged else stored
        if version.number == 0:
            current = staged or (self._graph.published(version.agent) if stored else None)
            if current and current.declaration == version.declaration:
                return None
            return _publication(AgentVersion(version.agent, last + 1, version.declaration))
        if staged is None:
            return None if self._known(log, version, stored) else _publication(version)
        if version.number > last:
            return _publication(version)
        if version.number < last:
            raise StaleVersion(version.agent.text, version.number, last)
        if version.declaration != staged.declaration:
            raise VersionConflict(version.agent.text, version.number)
        return None

    def export(
        self, reader: Reader, scopes: Sequence[Scope] = (), *, at_least_revision: int = 0
    ) -> tuple[int, Iterator[AgentVersion]]:
        """The revision, and every published version of these scopes (of all where none is given) that the reader may read."""
        self._reach(at_least_revision)
        asked = scopes or [Scope()]
        with self._lock.reading():
            revision, listed = self._graph.revision, self._graph.agents()
        return revision, self._exported(
            listed, lambda agent: reader.may_read(agent.scope) and any(scope.contains(agent.scope) for scope in asked)
        )

    def _exported(self, listed: list[tuple[int, int]], wanted: Callable[[AgentRef], bool]) -> Iterator[AgentVersion]:
        """These versions, made a few at a time: what was replaced since they were listed is taken from the log."""
        for at in range(0, len(listed), _EXPORT_BATCH):
            found: list[tuple[AgentRef, int, AgentVersion | None]] = []
            with self._lock.reading():
                for node, number in listed[at : at + _EXPORT_BATCH]:
                    agent = self._graph.agent_at(node)
                    if wanted(agent):
                        found.append((agent, number, self._graph.version_at(node, number)))
            for agent, number, version in found:
                yield version or self._of_the_log(agent, number)

    def _of_the_log(self, agent: AgentRef, number: int) -> AgentVersion:
        entry = self._store.find(agent, number)
        if entry is None:
            raise LogDamaged(f"version {number} of {agent} was read from the log before, and is not in it any more")
        return AgentVersion(agent, number, entry.declaration)

    def describe(
        self, agent: AgentRef, reader: Reader, *, page_size: int = 0, page_token: str = "", at_least_revision: int = 0
    ) -> Description:
        """One agent and its neighbours. Raises UnknownAgent alike for one that is not there and one the reader may not read."""
        if not 0 <= page_size <= MAX_PAGE_SIZE:
            reason, remedy = f"is {page_size}", f"use 1 to {MAX_PAGE_SIZE}, or 0 for {DEFAULT_PAGE_SIZE}"
            raise InvalidInput([Violation(field="page_size", reason=reason, remedy=remedy)])
        after_back, after_ahead = _read_page_token(page_token)
        self._reach(at_least_revision)
        with self._lock.reading():
            version = self._graph.published(agent)
            if version is None or not reader.may_read(agent.scope):
                raise UnknownAgent
            size, emitted = page_size or DEFAULT_PAGE_SIZE, [emit.event for emit in version.declaration.emits]
            back, more_back = self._graph.neighbours(agent, version.declaration.listens, reader, after_back, size, back=True)
            ahead, more_ahead = self._graph.neighbours(agent, emitted, reader, after_ahead, size, back=False)
            revision = self._graph.revision
        ends = (page[-1].agent.order if page else after for page, after in ((back, after_back), (ahead, after_ahead)))
        token = _write_page_token(*ends) if more_back or more_ahead else ""
        return Description(version=version, started_by=back, starts=ahead, next_page_token=token, revision=revision)

    def status(self, reader: Reader) -> Status:
        """The revision and the limits; sizes for readers of the whole installation."""
        with self._lock.reading():
            sizes = self._graph.sizes() if reader.reads_everything else None
            revision = self._graph.revision
        return Status(revision=revision, default_limits=self._policy.default, ceilings=self._policy.ceiling, sizes=sizes)


def check_files(
    versions: Iterable[AgentVersion], agents: Sequence[AgentRef] | None, reader: Reader, limits: Limits, kernel: Kernel
) -> Iterator[Report]:
    """Reports on agents of a set of versions, each agent's own record being the version published; every agent where none is named.

    Raises UnknownAgent for an agent that the set does not have.
    """
    batches = iter(versions)
    return check_graph(
        graph_of(map(columns_of, iter(lambda: list(islice(batches, _FOLD_BATCH)), []))), agents, reader, limits, kernel
    )


def graph_of(parts: Iterable[Columns]) -> Graph:
    """The graph of versions that no log holds, every agent given once."""
    graph = Graph()
    graph.load(parts)
    return graph


def check_graph(
    graph: Graph, agents: Sequence[AgentRef] | None, reader: Reader, limits: Limits, kernel: Kernel
) -> Iterator[Report]:
    """Reports on agents of a graph as they are published; see `check_files`."""
    for agent in (graph.agent_at(node) for node, _ in graph.agents()) if agents is None else agents:
        version = graph.published(agent)
        if version is None:
            raise UnknownAgent
        yield judge(graph, agent, version.declaration, reader, limits, kernel, None)


def _entry_digest(log: Log, revision: int) -> str | None:
    """Of the entry with this revision, None where the log has none."""
    entry = next(iter(log.read(revision - 1)), None)
    if entry is None:
        return None
    values = [entry.revision, entry.kind.value, entry.agent.text, entry.number, entry.declaration.as_json()]
    return digest_of({"entry": values})


def _fits(snapshot: SnapshotState, log: Log) -> bool:
    """Whether the log is the one that the snapshot was folded from: its entry there is the same."""
    revision: int = snapshot.meta["revision"]
    return revision <= log.head() and snapshot.meta["entry"] == _entry_digest(log, revision)


def _publication(version: AgentVersion) -> NewEntry:
    return NewEntry(EntryKind.PUBLISH, version.agent, version.number, version.declaration)


Place = tuple[str, str]
"""Where a page ended: the name and the scope text of its last neighbour."""


def _write_page_token(*places: Place) -> str:
    return base64.urlsafe_b64encode(json.dumps(places).encode()).decode()


def _read_page_token(token: str) -> tuple[Place, Place]:
    if not token:
        return ("", ""), ("", "")
    try:
        (a, b), (c, d) = json.loads(base64.urlsafe_b64decode(token.encode()))
        if all(isinstance(text, str) for text in (a, b, c, d)):
            return (a, b), (c, d)
    except (binascii.Error, ValueError, TypeError):
        pass
    reason, remedy = "is not a token of this service", "send next_page_token of the page before, or leave it empty"
    raise InvalidInput([Violation(field="page_token", reason=reason, remedy=remedy)])
