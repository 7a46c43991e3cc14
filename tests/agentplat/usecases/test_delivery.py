"""Deliveries to a graph service that comes and goes: each once, in the order of its agent, with no more rights than it takes."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from agentplat.domain.access import Role
from agentplat.domain.errors import AccessDenied, Conflict, NotFound
from agentplat.domain.languages import Language
from agentplat.domain.outbox import Backoff, EntryState
from agentplat.domain.registry import ReportState
from agentplat.signing import make_key
from agentplat.store.sql import open_store
from agentplat.usecases.tell import warning_lines

from graphsvc.domain.grants import Grant
from graphsvc.domain.grants import Role as GraphRole
from graphsvc.domain.model import AgentVersion, EntryKind, declare
from graphsvc.domain.names import parse_agent, parse_scope
from tests.agentplat.world import PATIENCE_S, World, manifest, ref, use_cases, wait_until

DEVELOPER, REVIEWER = "acme/platform:developer", "acme/platform:reviewer"
OTHER_CONTENT = AgentVersion(parse_agent(DEVELOPER), 1, declare(["loaded.past.the.platform"], []))

pytestmark = pytest.mark.promise("P-6")


def _shuffled_acts(seed: int) -> Iterator[str]:
    dice = random.Random(seed)
    acts = ["publish"] * 14 + ["retire"] * 3 + ["up", "down"] * 4
    dice.shuffle(acts)
    return iter(acts)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_comes_between_the_graph_hears_every_act_once_and_in_the_order_of_its_agent(
    everywhere: World, tmp_path: Path, seed: int
) -> None:
    dice, up = random.Random(seed), False
    ana = everywhere.person("acme:ana", "author=acme")
    agents = [f"acme/platform:agent{i}" for i in range(3)]
    wanted: dict[str, list[tuple[EntryKind, int]]] = {agent: [] for agent in agents}
    numbers = {agent: itertools.count(1) for agent in agents}
    current: dict[str, int] = {}
    with ExitStack() as stack:
        # A second platform process on the same database: its own connections, its own courier.
        store = stack.enter_context(closing(open_store(everywhere.store._engine.url.render_as_string(hide_password=False))))
        cases = stack.enter_context(use_cases(store, tmp_path, everywhere.graph.address, PATIENCE_S))
        second = World(store=store, graph=everywhere.graph, cases=cases)
        for world in (everywhere, second):
            stack.enter_context(world.courier())
        for step, act in enumerate(_shuffled_acts(seed)):
            agent, world = dice.choice(agents), dice.choice((everywhere, second))
            if act == "publish":
                shown = world.publish(ana, agent, [f"event{step}"], [f"event{step - 1}"])
                current[agent] = next(numbers[agent])
                assert shown.number == current[agent]
                wanted[agent].append((EntryKind.PUBLISH, shown.number))
            elif act == "retire" and agent in current:
                assert world.cases.retire_agent(ana, ref(agent)).created
                wanted[agent].append((EntryKind.RETIRE, current.pop(agent)))
            elif act == "up" and not up:
                everywhere.graph.start()
                up = True
            elif act == "down" and up:
                everywhere.graph.stop()
                up = False
        if not up:
            everywhere.graph.start()
        wait_until(everywhere.settled, "everything was delivered")
    told: dict[str, list[tuple[EntryKind, int]]] = {agent: [] for agent in agents}
    for agent, kind, number in everywhere.graph.told():
        told[agent].append((kind, number))
    assert told == wanted
    for agent, acts in wanted.items():
        for number in (number for kind, number in acts if kind is EntryKind.PUBLISH):
            shown = everywhere.cases.read_report(ana, ref(agent), number)
            assert shown.body is not None
            assert shown.state in (ReportState.VERIFIED, ReportState.LATE)


def test_a_publication_refused_for_good_sets_aside_its_agent_and_no_other(everywhere: World) -> None:
    everywhere.graph.start()
    everywhere.graph.put(OTHER_CONTENT)
    ana = everywhere.person("acme:ana", "author=acme")
    shown = everywhere.publish(ana, DEVELOPER, ["code"], ["rejected"])
    assert (shown.state, shown.delivery) == (ReportState.NOT_ANSWERED, EntryState.SET_ASIDE)
    reason = "version 1 of acme/platform:developer is already published with other content; publish the content under a new number"
    assert shown.refused == reason
    assert warning_lines(shown, Language.EN) == [
        "This version was not verified, because the graph service did not answer.",
        f"The graph service refused a publication of this agent, and later ones wait until an admin acts: {reason}",
    ]
    behind = everywhere.publish(ana, DEVELOPER, ["patch"], ["rejected"])
    assert (behind.number, behind.delivery, behind.refused) == (2, EntryState.WAITING, reason)
    assert everywhere.publish(ana, REVIEWER, ["rejected"], ["code"]).state is ReportState.VERIFIED
    auditor = everywhere.person("acme:auditor", "auditor=acme")
    [act] = [act for act in everywhere.cases.list_acts(auditor, None, 10) if act.act == "set aside"]
    assert (act.subject, act.actor, act.details["reason"]) == (DEVELOPER, None, reason)


def test_an_admin_lets_an_agents_later_publications_go_on_past_a_refused_one(acme: World) -> None:
    acme.graph.put(OTHER_CONTENT)
    ana, root = acme.person("acme:ana", "author=acme"), acme.person("acme:root", "admin=acme")
    for event in ("code", "patch"):
        acme.publish(ana, DEVELOPER, [event])
    with pytest.raises(AccessDenied):
        acme.cases.resume_delivery(ana, ref(DEVELOPER), skip=True)
    with pytest.raises(NotFound):
        acme.cases.resume_delivery(acme.person("globex:root", "admin=globex"), ref(DEVELOPER), skip=True)
    acme.cases.resume_delivery(root, ref(DEVELOPER), skip=False)
    with acme.courier():
        wait_until(lambda: _set_aside(acme) == 1, "the same publication was refused again")
    acme.cases.resume_delivery(root, ref(DEVELOPER), skip=True)
    acme.deliver_all()
    with pytest.raises(Conflict):
        acme.cases.resume_delivery(root, ref(DEVELOPER), skip=True)
    first, second = (acme.cases.read_report(ana, ref(DEVELOPER), number) for number in (1, 2))
    assert (first.delivery, warning_lines(first, Language.EN)) == (
        EntryState.SKIPPED,
        ["An admin left this version out of the graph, so it was not verified."],
    )
    assert (second.delivery, second.state) == (EntryState.DELIVERED, ReportState.LATE)


def _set_aside(world: World) -> int:
    with world.store.reading() as work:
        return work.outbox.sizes()[1]


@pytest.mark.promise("P-6", "O-5")
def test_a_delivery_carries_the_publishers_grants_and_author_on_just_the_agents_scope(acme: World) -> None:
    ana = acme.person("acme:ana", "admin=acme", "viewer=globex/sales", "auditor=acme/finance")
    acme.publish(ana, DEVELOPER, ["code"])
    [caller] = acme.graph.authenticator.callers
    granted = {
        Grant(GraphRole(role), parse_scope(scope))
        for role, scope in (
            ("admin", "acme"),
            ("viewer", "globex/sales"),
            ("auditor", "acme/finance"),
            ("author", "acme/platform"),
        )
    }
    assert (caller.name, set(caller.grants)) == ("acme:ana", granted)
    assert not caller.reader.reads_everything


@pytest.mark.promise("P-6", "P-7", "O-5")
def test_a_late_report_is_made_for_what_its_publisher_may_still_read(everywhere: World) -> None:
    everywhere.graph.start()
    everywhere.graph.put(AgentVersion(parse_agent("globex:writer"), 1, declare(["rejected"], ["code"])))
    everywhere.graph.stop()
    ana = everywhere.person("acme:ana", "author=acme/platform", "viewer=globex")
    everywhere.publish(ana, DEVELOPER, ["code"], ["rejected"])
    everywhere.person("acme:ana")
    everywhere.graph.start()
    everywhere.deliver_all()
    [caller] = everywhere.graph.authenticator.callers
    assert caller.grants == (Grant(GraphRole.AUTHOR, parse_scope("acme/platform")),)
    reader = everywhere.person("acme:reader", "viewer=acme/platform")
    shown = everywhere.cases.read_report(reader, ref(DEVELOPER), 1)
    assert (shown.fresh, shown.state) == (False, ReportState.LATE)
    assert shown.body is not None
    assert shown.body["loops"][0]["agents"] == [DEVELOPER, None]


def test_a_refused_token_keeps_deliveries_waiting_instead_of_setting_agents_aside(acme: World, tmp_path: Path) -> None:
    ana = acme.person("acme:ana", "author=acme")
    (tmp_path / "unknown").mkdir()
    make_key(tmp_path / "unknown" / "agentplat.key.pem")
    with use_cases(acme.store, tmp_path / "unknown", acme.graph.address, PATIENCE_S) as cases:
        [publication] = cases.publish_version(ana, manifest(DEVELOPER, ["code"]), "test.yaml")
    assert (publication.report.state, publication.report.delivery) == (ReportState.NOT_ANSWERED, EntryState.WAITING)
    acme.deliver_all()
    assert acme.cases.read_report(ana, ref(DEVELOPER), 1).state is ReportState.LATE


def test_retiring_while_the_graph_service_is_down_reaches_it_after_what_was_published_before(everywhere: World) -> None:
    ana = everywhere.person("acme:ana", "author=acme")
    everywhere.publish(ana, DEVELOPER, ["code"])
    retirement = everywhere.cases.retire_agent(ana, ref(DEVELOPER))
    assert (retirement.created, retirement.delivered) == (True, False)
    everywhere.graph.start()
    everywhere.deliver_all()
    assert [(kind, number) for _, kind, number in everywhere.graph.told()] == [(EntryKind.PUBLISH, 1), (EntryKind.RETIRE, 1)]
    again = everywhere.cases.retire_agent(ana, ref(DEVELOPER))
    assert (again.created, again.delivered) == (False, True)


def test_waits_double_up_to_a_bound_and_differ_by_chance() -> None:
    backoff = Backoff(first_s=0.5, longest_s=30)
    assert [backoff.wait_s(n, 0) for n in (1, 2, 3, 7, 8, 10_000)] == [0.5, 1, 2, 30, 30, 30]
    assert backoff.wait_s(3, 1) == 1


def test_roles_are_the_same_on_both_sides() -> None:
    assert [role.value for role in Role] == [role.value for role in GraphRole]
