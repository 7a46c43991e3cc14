"""A platform in this process with a real database and a real graph service, and people who use it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from agentplat.content.folder import FolderContent
from agentplat.courier import Courier
from agentplat.domain.access import OPERATOR, Access, Grant, Role
from agentplat.domain.outbox import Backoff
from agentplat.domain.scopes import Ref
from agentplat.domain.shown import ShownReport
from agentplat.loop_check import GraphAddress, open_loop_check
from agentplat.signing import Signer, make_key, read_key, write_public
from agentplat.store.sql import SqlStore, open_store
from agentplat.usecases.catalogue import Patience, UseCases, build_use_cases
from opentelemetry.sdk.trace import TracerProvider

from graphsvc.domain.limits import Limits
from tests.agentplat.graph_host import AUDIENCE, ISSUER, GraphHost

PATIENCE_S = 60.0
"""How long a test waits for what must happen before it fails; far above what a busy machine needs."""

BACKOFF = Backoff(first_s=0.02, longest_s=0.2)


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Returns once the condition holds. Fails the test when it does not in time."""
    end = time.monotonic() + PATIENCE_S
    pause = Event()
    while not holds():
        assert time.monotonic() < end, f"in {PATIENCE_S:g} s it did not happen that {what}"
        pause.wait(0.02)


def ref(text: str) -> Ref:
    """A reference from its text."""
    scope, _, name = text.partition(":")
    return Ref(scope, name)


def manifest(agent: str, emits: Sequence[Any] = (), listens: Sequence[str] = (), **spec: Any) -> str:
    """A manifest of this agent; JSON is YAML."""
    scope, _, name = agent.partition(":")
    company, _, area = scope.partition("/")
    metadata = {"name": name, "company": None if company == "*" else company, "area": area or None}
    whole = {"apiVersion": "agentplat/v1", "kind": "Agent", "metadata": metadata}
    return json.dumps({**whole, "spec": {"emits": list(emits), "listens": list(listens), **spec}})


def manifests(*texts: str) -> str:
    """Several manifests in one text."""
    return "\n---\n".join(texts)


@dataclass(frozen=True, kw_only=True)
class World:
    """What a test works with."""

    store: SqlStore
    graph: GraphHost
    cases: UseCases

    def person(self, name: str, *grants: str) -> Access:
        """Somebody with grants such as author=acme/platform, with these and no others from now on."""
        who = ref(name)
        wanted = frozenset(Grant(Role(grant.split("=", 1)[0]), grant.split("=", 1)[1]) for grant in grants)
        with self.store.writing() as work:
            person = work.people.find(who) or work.people.add(who, 1)
            assert person is not None
            for grant in work.people.grants(person) - wanted:
                work.people.revoke(person, grant)
            for grant in wanted:
                work.people.grant(person, grant)
        return Access(person, wanted)

    def token(self, access: Access) -> str:
        """A new token of a person."""
        assert access.person is not None
        with self.store.reading() as work:
            count = len(work.people.tokens(access.person))
        return self.cases.manage_tokens.make(OPERATOR, access.person.ref, f"token {count}", None)[0]

    def publish(
        self, access: Access, agent: str, emits: Sequence[Any] = (), listens: Sequence[str] = (), **spec: Any
    ) -> ShownReport:
        """Publish one version."""
        [publication] = self.cases.publish_version(access, manifest(agent, emits, listens, **spec), "test.yaml")
        return publication.report

    def graph_up(self) -> None:
        """Start the graph service and wait until it is reached: a connection that failed is not tried again at once."""
        self.graph.start()
        probe = manifest("*:probe")
        wait_until(lambda: self.cases.preview_version(OPERATOR, probe, "probe")[0].body is not None, "the graph service is reached")

    def settled(self) -> bool:
        """Whether nothing waits in the outbox."""
        with self.store.reading() as work:
            return work.outbox.sizes() == (0, 0)

    @contextmanager
    def courier(self) -> Iterator[Courier]:
        """A courier that runs until the block ends."""
        running = Courier(self.cases.deliver_outbox, BACKOFF, 0.02)
        running.start()
        try:
            yield running
        finally:
            assert running.stop(PATIENCE_S)

    def deliver_all(self) -> None:
        """Let a courier work until nothing waits."""
        with self.courier():
            wait_until(self.settled, "everything was delivered")


@contextmanager
def use_cases(store: SqlStore, folder: Path, target: str, verify_s: float, call_s: float = PATIENCE_S) -> Iterator[UseCases]:
    """Use cases on a store that ask a graph service with the key in the folder."""
    signer = Signer(key=read_key(folder / "agentplat.key.pem"), issuer=ISSUER, audience=AUDIENCE)
    graph = open_loop_check(GraphAddress(target=target), signer)
    try:
        patience = Patience(verify_s=verify_s, check_s=verify_s, call_s=call_s, backoff=BACKOFF, lease_s=PATIENCE_S)
        yield build_use_cases(store, FolderContent(folder / "content"), graph, patience)
    finally:
        graph.close()


@contextmanager
def world(
    url: str, folder: Path, limits: Limits | None = None, up: bool = True, tracing: TracerProvider | None = None
) -> Iterator[World]:
    """A world on a migrated database; its graph service answers unless `up` is False."""
    key = folder / "agentplat.key.pem"
    if not key.exists():
        make_key(key)
    write_public(read_key(key), folder / "agentplat.pub.pem", folder / "agentplat.jwks.json")
    graph = GraphHost(folder, folder / "agentplat.pub.pem", limits or Limits(), tracing)
    store = open_store(url)
    try:
        with use_cases(store, folder, graph.address, PATIENCE_S) as cases:
            if up:
                graph.start()
            yield World(store=store, graph=graph, cases=cases)
    finally:
        graph.stop()
        store.close()
