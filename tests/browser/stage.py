"""What the pages are looked at with: a platform on a real socket, people with different access, agents that start each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentplat.domain.access import Access
from agentplat.domain.approvals import Approval
from agentplat.domain.runs import Run
from agentplat.domain.scopes import Ref
from agentplat.store.migrating import migrate

from graphsvc.domain.limits import Limits
from tests.agentplat.chains import Bench
from tests.agentplat.http import Api, api
from tests.agentplat.tool_records import Shop, shop
from tests.agentplat.world import World, manifest, manifests, world

MARKUP = "<script>alert(1)</script>&\"'"
HEBREW = "בודק קוד"
MIXED = "abc אבג 123 دهو"
LOOKALIKE = "dеveloper"  # the second letter is Cyrillic
LONG = "n" * 256
HOSTILE = (MARKUP, HEBREW, MIXED, LOOKALIKE, LONG)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """author may publish in acme, reader reads acme/platform alone, admin everything."""

    api: Api
    folder: Path
    author: Access
    reader: Access
    admin: Access

    @property
    def world(self) -> World:
        """The platform behind the pages."""
        return self.api.world

    @property
    def url(self) -> str:
        """Where the pages are."""
        return f"http://{self.api.address}"

    @property
    def bench(self) -> Bench:
        """Carries and dispatches runs in this process."""
        return Bench(store=self.world.store, folder=self.folder)

    @property
    def shop(self) -> Shop:
        """Calls tools in runs, with the Gate in front."""
        return shop(self.world.store, self.folder)

    def chain(self) -> Run:
        """The hop-0 run of a chain of the developer that went round until the last hop."""
        self.world.cases.publish_version(self.author, DEVELOPER, "test.yaml")
        run = self.bench.run(Ref("acme/platform", "developer"), {"patch": "+1", "change_summary": "more"})
        self.bench.settle()
        return run

    def question(self, text: str = "100") -> Approval:
        """A question of a run that waits for an approval."""
        agent = Ref("acme/support", "payer")
        self.bench.settle()
        self.shop.publish(agent)
        run = self.shop.waits(self.shop.open(agent), 1, "pay", {"text": text})
        with self.world.store.reading() as work:
            found = work.approvals.of_call(run.id, 1)
        assert found is not None
        return found


def people(here: World) -> tuple[Access, Access, Access]:
    """Author, reader and admin."""
    author = here.person("acme:author", "author=acme")
    reader = here.person("acme:reader", "viewer=acme/platform")
    admin = here.person("*:admin", "admin=*", "approver=*")
    return author, reader, admin


DEVELOPER = manifest(
    "acme/platform:developer",
    [{"event": "change.proposed", "context": "change", "artifacts": ["patch", "change_summary"]}],
    ["change.rejected", "ticket.triaged", "test.failed"],
    instructions="When this run starts by ticket.triaged, read triage_summary first.\nPublish the change as patch.\n",
)
REVIEWER = manifest(
    "acme/platform:reviewer", ["change.rejected", {"event": "change.approved", "artifacts": ["review"]}], ["change.proposed"]
)
TRIAGE = manifest("acme/support:triage", [{"event": "ticket.triaged", "artifacts": ["triage_summary"]}], ["ticket.opened"])
TESTER = manifest("acme/quality:tester", ["test.failed", "test.passed"], ["change.proposed"])
ECHO = manifest("acme/platform:echo", ["echo.heard"], ["echo.heard"])
RELEASER = manifest("acme/platform:releaser", ["release.made"], ["change.approved", "test.passed"])


def catalogue(here: World, author: Access) -> None:
    """A company whose developer, reviewer and tester start each other."""
    for text in (TRIAGE, REVIEWER, TESTER, RELEASER, ECHO):
        here.cases.publish_version(author, text, "test.yaml")


def hostile(here: World, admin: Access) -> None:
    """Agents and events with names that would do harm if they could."""
    texts = []
    for i, name in enumerate(HOSTILE):
        event, following = f"{name[:240]}!{i}", f"{HOSTILE[(i + 1) % len(HOSTILE)][:240]}!{(i + 1) % len(HOSTILE)}"
        texts.append(manifest(f"hostile/{name.replace('/', '-')}:{name}", [event], [following], instructions=MARKUP))
    here.cases.publish_version(admin, manifests(*texts), "hostile.yaml")


@contextmanager
def staged(folder: Path, limits: Limits | None = None) -> Iterator[Stage]:
    """A stage on SQLite with a graph service that answers."""
    url = f"sqlite:///{folder / 'agentplat.db'}"
    migrate(url)
    with world(url, folder, limits) as here, api(here) as served:
        author, reader, admin = people(here)
        catalogue(here, author)
        yield Stage(api=served, folder=folder, author=author, reader=reader, admin=admin)
