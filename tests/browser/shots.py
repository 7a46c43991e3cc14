"""Pictures of every page, to be looked at: python -m tests.browser.shots FOLDER [NAME…] makes them anew in all languages.

Each page comes in English, Portuguese and Hebrew at a desk's width; in Hebrew also on a phone, and in English also dark. With
names, only pages whose name begins with one of them. Whatever else is wrong, a page wider than its window is named at the end.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from agentplat.domain.access import Access
from agentplat.domain.scopes import Ref
from agentplat.domain.tickets import Status
from agentplat.studio.manifests import as_yaml
from playwright.sync_api import Browser, Page, sync_playwright

from tests.agentplat.delegation_records import Desk
from tests.agentplat.run_records import agent_of
from tests.agentplat.world import manifest
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


def _work_pages(author: Access, hall: Hall) -> list[Shot]:
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
        Shot(name="proposal-changed", path=f"{own}/proposals/{hall.proposal}", who=author, act=changed),
        Shot(name="pipeline", path=f"{own}/pipelines/{hall.pipeline}", who=author),
        Shot(name="workspace-live", path=f"{own}/observability", who=author),
        Shot(name="workspace-insights", path=f"{own}/observability/insights", who=author),
    ]


def _last(stage: Stage) -> int:
    with stage.world.store.reading() as work:
        chain = work.runs.of_chain(1, 1_000)
    return next(run.id for run in chain if run.hop == 8 and run.agent.name == "developer")


def _fill(stage: Stage, hall: Hall) -> None:
    """More of what people would see: a delegation, words in other languages, a crowd."""
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
    hall.propose(goal="Ship the quarterly report by Friday, with figures that add up.", budget={"tool_calls": 70, "tokens": 9_000})
    for i in range(300):
        agent_of(stage.world.store, Ref("crowd", f"agent-{i}"), (f"crowd.{i}",), (f"crowd.{(i * 7 + 1) % 300}",))


def _look(browser: Browser, stage: Stage, shots: list[Shot], folder: Path) -> list[str]:
    """Take all pictures; the names of those whose page is wider than its window."""
    wide = []
    for language, scheme, width in LOOKS:
        for who in dict.fromkeys(shot.who for shot in shots):
            options = {"locale": language, "viewport": {"width": width, "height": 800}, "color_scheme": scheme}
            with browser.new_context(**options) as context:  # type: ignore[arg-type] # one of two words
                if who is not None:
                    with signed_in(stage, who, language) as client:
                        kept = [{"name": name, "value": value, "url": stage.url} for name, value in client.cookies.items()]
                        context.add_cookies(kept)  # type: ignore[arg-type] # plain texts
                for shot in (one for one in shots if one.who == who):
                    page = context.new_page()
                    page.goto(stage.url + shot.path)
                    if shot.act is not None:
                        shot.act(page)
                    name = f"{shot.name}-{language}{'-dark' if scheme == 'dark' else ''}{'-phone' if width < 400 else ''}"
                    page.screenshot(path=folder / f"{name}.png", full_page=True)
                    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                        wide.append(name)
                    page.close()
    return wide


def main(folder: str, *names: str) -> None:
    """Furnish a stage, and take the pictures."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        stage = stack.enter_context(staged(Path(stack.enter_context(tempfile.TemporaryDirectory()))))
        hostile(stage.world, stage.admin)
        stage.chain()
        stage.question()
        hall = furnish(stage)
        _fill(stage, hall)
        every = [*_first_pages(stage), *_run_pages(stage, hall), *_work_pages(stage.author, hall)]
        shots = [shot for shot in every if not names or shot.name.startswith(names)]
        driven = stack.enter_context(sync_playwright())
        browser = driven.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        print("\n".join(_look(browser, stage, shots, Path(folder))) or "every page fits its window")
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
