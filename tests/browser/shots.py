"""Pictures of every page, to be looked at: python -m tests.browser.shots FOLDER [NAME…] makes them anew in all languages.

Each page comes in English, Portuguese and Hebrew at a desk's width; in Hebrew also on a phone, and in English also dark. With
names, only pages whose name begins with one of them. Whatever else is wrong, a page wider than its window is named at the end.
``python -m tests.browser.shots --docs`` makes the pictures of `docs/studio` anew.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentplat.domain.access import Access
from agentplat.domain.scopes import Ref
from agentplat.domain.tickets import Status
from agentplat.studio.manifests import as_yaml
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.agentplat.delegation_records import Desk
from tests.agentplat.offices import ROLES
from tests.agentplat.proposals import proposal, sub_ticket
from tests.agentplat.run_records import agent_of
from tests.agentplat.world import manifest
from tests.browser.conftest import CHROMIUMS
from tests.browser.hall import SCOPE, Hall, furnish
from tests.browser.stage import HEBREW, Stage, hostile, staged
from tests.browser.visits import signed_in

DEVELOPER = "/agents/acme%2Fplatform%3Adeveloper"
FAULTY = """\
apiVersion: agentplat/v1
kind: Agent
metadata:
  name: faulty
  company: acme
spec:
  emit: [a]
  listens: 7
"""
LOOKS = (("en", "light", 1200), ("pt", "light", 1200), ("he", "light", 1200), ("he", "light", 390), ("en", "dark", 1200))

DOCS: Mapping[str, tuple[str, tuple[str, str, int, int]]] = {
    "warning": ("agent", ("en", "light", 1200, 480)),
    "graph": ("graph", ("en", "light", 1200, 620)),
    "run-hebrew": ("run-last-hop", ("he", "light", 1200, 560)),
    "inbox-hebrew": ("workspace-inbox", ("he", "light", 1200, 900)),
    "proposal": ("proposal-newest", ("en", "light", 1200, 1280)),
    "approval-dark": ("approval", ("pt", "dark", 1000, 720)),
    "refusal-hebrew": ("publish-faults", ("he", "light", 1200, 620)),
}
"""The pictures of the docs: the page, its language, its colours, and how much of it."""

Act = Callable[[Page], None]


@dataclass(frozen=True, kw_only=True)
class Shot:
    """A page to look at. who: whose eyes; None for nobody. act: what is done there first."""

    name: str
    path: str
    who: Access | None
    act: Act | None = None


def _sent(button: str, **fields: str) -> Act:
    """Fill a form, past what the browser itself would keep back, and send it."""

    def act(page: Page) -> None:
        for name, value in fields.items():
            every = "(all, value) => all.forEach(one => { one.required = false; one.value = value; })"
            page.locator(f"main [name={name}]").evaluate_all(every, value)
        page.locator(button).last.click()
        page.wait_for_load_state()

    return act


def _publish(button: str, text: str) -> Act:
    return _sent(f"button[value={button}]", manifest=text)


def _first_pages(stage: Stage) -> list[Shot]:
    """Signing in, the inbox, agents, publishing, the graph."""
    author, reader, admin = stage.author, stage.reader, stage.admin
    loop = manifest("acme/platform:closer", ["change.approved"], ["release.made"], instructions="Close it.\n")
    denied = manifest("globex:other", ["a"])
    return [
        Shot(name="sign-in", path="/sign-in", who=None),
        Shot(name="sign-in-refused", path="/sign-in", who=None, act=_sent("main button", token="apt_wrong")),
        Shot(name="inbox", path="/inbox", who=admin),
        Shot(name="inbox-late", path="/inbox", who=author),
        Shot(name="agents", path="/agents", who=author),
        Shot(name="agents-hostile", path="/agents?scope=hostile", who=admin),
        Shot(name="agent", path=DEVELOPER, who=author),
        Shot(name="agent-own-event", path="/agents/acme%2Fplatform%3Aecho", who=author),
        Shot(name="version", path=f"{DEVELOPER}/versions/1", who=author),
        Shot(name="version-hidden", path=f"{DEVELOPER}/versions/1", who=reader),
        Shot(name="publish", path="/publish?agent=acme/platform:developer", who=author),
        Shot(name="publish-faults", path="/publish", who=author, act=_publish("publish", FAULTY)),
        Shot(name="publish-preview", path="/publish", who=author, act=_publish("preview", as_yaml(json.loads(loop)))),
        Shot(name="publish-denied", path="/publish", who=author, act=_publish("publish", denied)),
        Shot(name="published", path=f"/published?version=1+{SCOPE}:developer&version=1+{SCOPE}:reviewer", who=author),
        Shot(name="graph", path="/graph?scope=acme", who=author),
        Shot(name="graph-reader", path="/graph", who=reader),
        Shot(name="graph-300", path="/graph?scope=crowd", who=admin),
    ]


def _run_pages(stage: Stage, hall: Hall) -> list[Shot]:
    """Runs, approvals, monitoring, and faults."""
    author, reader, admin = stage.author, stage.reader, stage.admin
    return [
        Shot(name="runs", path="/runs", who=author),
        Shot(name="run", path="/runs/1", who=author),
        Shot(name="run-last-hop", path=f"/runs/{_last(stage)}", who=reader),
        Shot(name="run-stopped", path=f"/runs/{hall.stopped}", who=admin),
        Shot(name="approval", path="/approvals/1", who=admin),
        Shot(name="approval-changed", path="/approvals/1", who=admin, act=_sent("button[value=grant]", digest="0" * 64)),
        Shot(name="live", path="/monitoring/live?scope=acme", who=author),
        Shot(name="insights", path="/monitoring/insights", who=author),
        Shot(name="fault-404", path="/runs/999999", who=author),
        Shot(name="fault-403", path="/publish", who=reader, act=_sent("button[value=publish]", seal="forged")),
        Shot(name="fault-422", path="/graph?scope=a//b", who=author),
    ]


def _work_pages(author: Access, hall: Hall, newest: int) -> list[Shot]:
    """Workspaces and all that is in one."""
    own, changed = hall.path, _sent("#approve", digest="0" * 64)
    return [
        Shot(name="workspaces", path="/workspaces", who=author),
        Shot(name="workspaces-refused", path="/workspaces", who=author, act=_sent("main button", name=" ", scope="globex")),
        Shot(name="workspace-inbox", path=f"{own}/inbox", who=author),
        Shot(name="spaces", path=f"{own}/spaces", who=author),
        Shot(name="space", path=f"{own}/spaces/{hall.space.id}", who=author),
        Shot(name="space-refused", path=f"{own}/spaces/{hall.space.id}", who=author, act=_sent("#composer button", body=" ")),
        Shot(name="tickets", path=f"{own}/tickets", who=author),
        Shot(name="tickets-refused", path=f"{own}/tickets", who=author, act=_sent("main button", title=" ")),
        Shot(name="ticket", path=f"{own}/tickets/{hall.ticket}", who=author),
        Shot(name="ticket-tree", path=f"{own}/tickets/2", who=author),
        Shot(name="proposal", path=f"{own}/proposals/{hall.proposal}", who=author),
        Shot(name="proposal-newest", path=f"{own}/proposals/{newest}", who=author),
        Shot(name="proposal-changed", path=f"{own}/proposals/{hall.proposal}", who=author, act=changed),
        Shot(name="pipeline", path=f"{own}/pipelines/{hall.pipeline}", who=author),
        Shot(name="workspace-live", path=f"{own}/observability", who=author),
        Shot(name="workspace-insights", path=f"{own}/observability/insights", who=author),
    ]


def _last(stage: Stage) -> int:
    with stage.world.store.reading() as work:
        chain = work.runs.of_chain(1, 1_000)
    return next(run.id for run in chain if run.hop == 8 and run.agent.name == "developer")


def _fill(stage: Stage, hall: Hall) -> int:
    """More of what people would see: a delegation, words in other languages, a crowd, and a proposal, whose id is given."""
    together, own = stage.world.cases.together, hall.office.workspace
    workspace = together.workspaces.alone(stage.author, own)
    for name in ("lead", "builder", "writer"):
        stage.world.publish(stage.author, f"{SCOPE}:{name}", tools=["delegate_task"])
    space = together.spaces.create(stage.author, own, "export")
    desk = Desk(store=stage.world.store, folder=stage.folder, workspace=workspace, space=space)
    lead = desk.run("lead", desk.ticket("lead"))
    builder = desk.handed(lead, "builder", title="Build the export", description="Rows as a CSV file.")
    desk.finish(desk.handed(builder, "writer", title="לתאר את הייצוא (CSV)", description="Two pages."))
    for title, status in (("לתקן את הבנייה הלילית", Status.BLOCKED), ("Revisar o texto da página inicial", Status.IN_PROGRESS)):
        made = together.tickets.create(stage.author, own, title, "")
        together.tickets.change(stage.author, own, made.number, made.version, {"status": status.value})
    post = together.converse.post
    post(stage.author, own, hall.space.id, "שלום @reader, ראה בבקשה את #1 (acme/platform:developer) לפני 17:00.")
    post(stage.author, own, hall.space.id, "A <b>long</b> word: " + "n" * 200)
    together.spaces.create(stage.author, own, HEBREW)
    newest = hall.office.propose(_report()).kept.id
    for i in range(300):
        agent_of(stage.world.store, Ref("crowd", f"agent-{i}"), (f"crowd.{i}",), (f"crowd.{(i * 7 + 1) % 300}",))
    return newest


def _report() -> Mapping[str, Any]:
    """A proposal with somebody to hire."""
    steps = [
        sub_ticket("outline", title="Outline the report", description="Collect what changed since the last report, by customer."),
        sub_ticket("figures", needs=["outline"], title="Check the figures", description="Compare every figure with the ledger."),
        sub_ticket("draft", "newcomer", needs=["outline", "figures"], title="Write the draft", description="Two pages."),
    ]
    newcomer = json.loads(manifest(f"{SCOPE}:newcomer", driver={"kind": "scripted"}))
    goal = "Ship the quarterly report by Friday, with figures that add up."
    budget = {"money_microusd": 2_500_000, "tokens": 400_000, "tool_calls": 200}
    return proposal(steps, {**ROLES, "newcomer": newcomer}, goal=goal, budget=budget)


@contextmanager
def _opened(browser: Browser, stage: Stage, who: Access | None, look: tuple[str, str, int, int]) -> Iterator[BrowserContext]:
    """A browser of somebody. look: language, colours, width and height."""
    language, scheme, width, height = look
    options = {"locale": language, "viewport": {"width": width, "height": height}, "color_scheme": scheme}
    with browser.new_context(**options) as context:  # type: ignore[arg-type] # one of two words
        if who is not None:
            with signed_in(stage, who, language) as client:
                kept = [{"name": name, "value": value, "url": stage.url} for name, value in client.cookies.items()]
                context.add_cookies(kept)  # type: ignore[arg-type] # plain texts
        yield context


def _take(context: BrowserContext, stage: Stage, shot: Shot, file: Path, *, whole: bool = True) -> bool:
    """Take one picture; whether the page fits its window."""
    page = context.new_page()
    page.goto(stage.url + shot.path)
    if shot.act is not None:
        shot.act(page)
    page.screenshot(path=file, full_page=whole)
    fits: bool = page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.close()
    return fits


def _look(browser: Browser, stage: Stage, shots: list[Shot], folder: Path) -> list[str]:
    """Take all pictures; the names of those whose page is wider than its window."""
    wide = []
    for language, scheme, width in LOOKS:
        for who in dict.fromkeys(shot.who for shot in shots):
            with _opened(browser, stage, who, (language, scheme, width, 800)) as context:
                for shot in (one for one in shots if one.who == who):
                    name = f"{shot.name}-{language}{'-dark' if scheme == 'dark' else ''}{'-phone' if width < 400 else ''}"
                    wide += [] if _take(context, stage, shot, folder / f"{name}.png") else [name]
    return wide


def _document(browser: Browser, stage: Stage, shots: list[Shot], folder: Path) -> None:
    """Take the pictures of the docs."""
    named = {shot.name: shot for shot in shots}
    for file, (name, look) in DOCS.items():
        with _opened(browser, stage, named[name].who, look) as context:
            _take(context, stage, named[name], folder / f"{file}.png", whole=False)


def main(folder: str, *names: str) -> None:
    """Furnish a stage, and take the pictures."""
    if folder != "--docs":
        Path(folder).mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        stage = stack.enter_context(staged(Path(stack.enter_context(tempfile.TemporaryDirectory()))))
        hostile(stage.world, stage.admin)
        stage.chain()
        stage.question()
        hall = furnish(stage)
        newest = _fill(stage, hall)
        every = [*_first_pages(stage), *_run_pages(stage, hall), *_work_pages(stage.author, hall, newest)]
        found = next(filter(None, map(shutil.which, CHROMIUMS)), None)
        driven = stack.enter_context(sync_playwright())
        browser = driven.chromium.launch(executable_path=found, args=["--no-sandbox"])
        if folder == "--docs":
            _document(browser, stage, every, Path(__file__).parents[2] / "docs" / "studio")
        else:
            shots = [shot for shot in every if not names or shot.name.startswith(names)]
            print("\n".join(_look(browser, stage, shots, Path(folder))) or "every page fits its window")
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
