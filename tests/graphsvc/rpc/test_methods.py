"""The methods as a Python program meets them through GraphClient, and that nothing is lost on the way."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsvc.client import GraphClient
from graphsvc.domain.answers import Description, Neighbour, Published, Retired, Sizes
from graphsvc.domain.errors import InvalidInput, RevisionAhead, StaleVersion, UnknownAgent, VersionConflict
from graphsvc.domain.limits import Limits
from graphsvc.domain.model import AgentVersion, Declaration, declare
from graphsvc.domain.names import AgentRef, Scope, parse_agent
from graphsvc.domain.redaction import EVERYTHING, reader_of
from graphsvc.domain.report import BreakingSet, Hop, Loop, Report, UnfedTrigger, UnheardEvent, Verification
from graphsvc.rpc import convert
from graphsvc.rpc.status import Unanswered
from graphsvc.v1 import graph_pb2 as pb
from tests.graphsvc.rpc.serving import PATIENCE_S, POLICY, Running, serving, version

DEVELOPER, REVIEWER = parse_agent("acme/platform:developer"), parse_agent("acme:reviewer")
CODE = declare([{"event": "code", "context": "change", "artifacts": ["diff", "log"]}], ["review"])
WORLD = (
    version("acme/platform:developer", 3, ["code"], ["review"]),
    version("acme:reviewer", 1, ["review"], ["code"]),
    version("*:watcher", 1, [], ["code", "review"]),
)


@pytest.fixture
def running() -> Iterator[Running]:
    with serving(versions=WORLD) as running:
        yield running


@pytest.fixture
def client(running: Running) -> Iterator[GraphClient]:
    with running.client() as client:
        yield client


@pytest.mark.promise("G-20", "G-21")
def test_a_check_over_the_wire_is_the_check_in_the_process(client: GraphClient, running: Running):
    for reader in (EVERYTHING, reader_of([Scope("acme")]), reader_of([Scope("globex")])):
        for max_loops, max_visits in ((None, None), (1, None), (None, 1)):
            near = running.service.check(DEVELOPER, CODE, reader, max_loops=max_loops, max_visits=max_visits)
            far = client.check(DEVELOPER, CODE, reader, max_loops=max_loops, max_visits=max_visits)
            assert far == near
            assert far.digest == near.digest


@pytest.mark.promise("G-21")
def test_the_digest_on_the_wire_is_that_of_the_report(running: Running):
    request = pb.CheckVersionRequest(agent=convert.agent_to_proto(DEVELOPER), declaration=convert.declaration_to_proto(CODE))
    with running.stub() as stub:
        message = stub.CheckVersion(request, timeout=PATIENCE_S).report
    assert message.digest == running.service.check(DEVELOPER, CODE, EVERYTHING).digest
    assert message.limits == convert.limits_to_proto(POLICY.default)
    assert message.revision == 3


@pytest.mark.promise("G-7", "G-21")
def test_an_answer_carries_the_limits_applied_after_the_ceilings(client: GraphClient):
    limits = client.check(DEVELOPER, CODE, max_loops=2**31 - 1, max_visits=2**62).limits
    assert limits == Limits(max_loops=1_000, max_visits=10_000_000)
    assert client.status().ceilings == POLICY.ceiling


@pytest.mark.promise("G-20", "G-22")
def test_publishing_stores_the_version_once_and_answers_with_its_revision(client: GraphClient):
    new = AgentVersion(DEVELOPER, 4, CODE)
    first = client.publish(new)
    assert first == Published(revision=4, created=True, report=first.report)
    assert first.report.revision == 4
    assert [loop.agents for loop in first.report.loops] == [(DEVELOPER, REVIEWER)]
    again = client.publish(new)
    assert (again.revision, again.created) == (4, False)
    assert client.describe(DEVELOPER).version == new


@pytest.mark.promise("G-22", "G-23")
def test_refusals_of_a_publication_arrive_as_what_they_are(client: GraphClient):
    with pytest.raises(VersionConflict) as conflict:
        client.publish(AgentVersion(DEVELOPER, 3, Declaration()))
    assert (conflict.value.agent, conflict.value.number) == (DEVELOPER.text, 3)
    with pytest.raises(StaleVersion) as stale:
        client.publish(AgentVersion(DEVELOPER, 2, CODE))
    assert stale.value.current == 3
    with pytest.raises(InvalidInput) as invalid:
        client.publish(AgentVersion(AgentRef(Scope("a/b"), "x\x00"), 0, Declaration(listens=("",))))
    assert [violation.field for violation in invalid.value.violations] == [
        "version.agent.company",
        "version.agent.name",
        "version.version",
        "version.declaration.listens[0]",
    ]


@pytest.mark.promise("G-21", "G-27")
def test_a_revision_that_was_not_reached_is_refused(client: GraphClient):
    assert client.check(DEVELOPER, CODE, at_least_revision=3).revision == 3
    with pytest.raises(RevisionAhead) as caught:
        client.check(DEVELOPER, CODE, at_least_revision=4)
    assert (caught.value.wanted, caught.value.head) == (4, 3)


@pytest.mark.promise("G-20", "G-22")
def test_retiring_takes_an_agent_out_once(client: GraphClient):
    assert client.retire(REVIEWER) == Retired(revision=4, created=True)
    assert client.retire(REVIEWER) == Retired(revision=4, created=False)
    assert client.check(DEVELOPER, CODE).loops == ()
    with pytest.raises(UnknownAgent):
        client.retire(parse_agent("acme:nobody"))


@pytest.mark.promise("G-22", "P-6")
def test_a_retirement_that_comes_late_leaves_a_newer_version_alone(client: GraphClient):
    newer = AgentVersion(REVIEWER, 2, CODE)
    client.publish(newer)
    assert client.retire(REVIEWER, 1) == Retired(revision=4, created=False)
    assert client.describe(REVIEWER).version == newer
    assert client.retire(REVIEWER, 2) == Retired(revision=5, created=True)
    with pytest.raises(InvalidInput, match="version"):
        client.retire(REVIEWER, -1)


@pytest.mark.promise("G-20")
def test_an_export_can_be_imported_elsewhere(client: GraphClient):
    revision, versions = client.export()
    exported = list(versions)
    assert revision == 3
    assert [each.agent.text for each in exported] == ["acme/platform:developer", "acme:reviewer", "*:watcher"]
    with serving() as other, other.client() as elsewhere:
        imported = elsewhere.import_versions(exported)
        assert (imported.revision, imported.created, imported.unchanged) == (3, 3, 0)
        assert elsewhere.import_versions(exported).unchanged == 3
        assert list(elsewhere.export()[1]) == exported
        assert elsewhere.check(DEVELOPER, CODE) == client.check(DEVELOPER, CODE)


@pytest.mark.promise("G-20")
def test_an_export_may_be_of_some_scopes(client: GraphClient):
    _, versions = client.export([Scope("acme", "platform")])
    assert [each.agent for each in versions] == [DEVELOPER]


@pytest.mark.promise("G-20")
def test_an_import_gives_next_numbers_where_none_are_told(client: GraphClient):
    imported = client.import_versions([AgentVersion(DEVELOPER, 0, CODE), AgentVersion(REVIEWER, 0, declare(["review"], ["code"]))])
    assert (imported.created, imported.unchanged) == (1, 1)
    assert client.describe(DEVELOPER).version.number == 4


@pytest.mark.promise("G-20", "G-24")
def test_an_import_of_many_messages_is_stored_whole_or_not_at_all(client: GraphClient, running: Running):
    many = [version(f"globex:agent {i}", 1, [f"event {i}"], [f"event {i + 1}"]) for i in range(1_200)]
    with pytest.raises(InvalidInput) as caught:
        client.import_versions([*many, AgentVersion(AgentRef(Scope("globex"), ""), 1, Declaration())])
    assert [violation.field for violation in caught.value.violations] == ["versions[1200].agent.name"]
    assert running.store.head() == 3
    assert client.import_versions(many).created == 1_200


@pytest.mark.promise("G-20")
def test_a_description_names_both_directions_page_by_page(client: GraphClient):
    whole = client.describe(DEVELOPER)
    assert whole == Description(
        version=WORLD[0],
        started_by=(Neighbour(agent=REVIEWER, events=("review",)),),
        starts=(Neighbour(agent=REVIEWER, events=("code",)), Neighbour(agent=parse_agent("*:watcher"), events=("code",))),
        next_page_token="",
        revision=3,
    )
    first = client.describe(DEVELOPER, page_size=1)
    second = client.describe(DEVELOPER, page_size=1, page_token=first.next_page_token)
    assert first.starts + second.starts == whole.starts
    assert first.started_by + second.started_by == whole.started_by
    assert second.next_page_token == ""
    for token in ("x", base64.urlsafe_b64encode(b"[1]").decode()):
        with pytest.raises(InvalidInput, match="page_token"):
            client.describe(DEVELOPER, page_token=token)


@pytest.mark.promise("G-20")
def test_the_status_tells_revision_limits_and_sizes(client: GraphClient):
    status = client.status()
    assert (status.revision, status.default_limits, status.sizes) == (3, POLICY.default, Sizes(3, 2, 6))


def test_a_reader_of_nothing_is_not_taken_for_a_reader_of_everything(client: GraphClient):
    with pytest.raises(InvalidInput, match="reader"):
        client.check(DEVELOPER, CODE, reader_of([]))


def test_a_server_that_is_not_there_has_not_answered():
    with serving() as running:
        gone = running.address
    with GraphClient(gone, deadline_s=PATIENCE_S) as client, pytest.raises(Unanswered):
        client.status()


def test_a_client_finds_a_server_that_came_back():
    with serving(versions=WORLD) as first:
        address, client = first.address, first.client()
        assert client.status().revision == 3
    with client:
        with pytest.raises(Unanswered):
            client.status()
        with serving(listen=address):
            revision = None
            while revision is None:
                try:
                    revision = client.status().revision
                except Unanswered:
                    continue
            assert revision == 0


REFS = st.builds(
    AgentRef,
    st.sampled_from([Scope(), Scope("acme"), Scope("acme", "platform"), Scope("חברה", "área")]),
    st.text("abcé日", min_size=1, max_size=3),
)
EVENTS = st.lists(st.text("xyz", min_size=1, max_size=3), max_size=3, unique=True).map(lambda names: tuple(sorted(names)))
LOOPS = st.integers(1, 4).flatmap(
    lambda length: st.builds(
        Loop,
        st.tuples(*[st.none() | REFS] * length),
        st.tuples(*[st.builds(Hop, st.none() | EVENTS, st.booleans())] * length),
        st.booleans(),
    )
)
NOTICES = st.one_of(
    st.builds(UnheardEvent, st.text("ab")),
    st.builds(UnfedTrigger, st.text("ab"), st.none() | st.text("ab")),
    st.builds(BreakingSet, EVENTS, EVENTS),
)
REPORTS = st.builds(
    Report,
    agent=REFS,
    verification=st.sampled_from(Verification),
    loops=st.lists(LOOPS, max_size=3).map(tuple),
    notices=st.lists(NOTICES, max_size=3).map(tuple),
    limits=st.builds(
        Limits, max_loops=st.integers(1, 2**31 - 1), max_visits=st.integers(0, 2**53 - 1), chain_limit=st.integers(1, 99)
    ),
    visits=st.none() | st.integers(0, 2**62),
    revision=st.integers(0, 2**62),
)


@pytest.mark.promise("G-21")
@given(REPORTS)
def test_a_report_keeps_everything_on_the_wire(report: Report):
    sent = convert.report_to_proto(report)
    arrived = convert.report_from_proto(pb.Report.FromString(sent.SerializeToString()))
    assert arrived == report
    assert sent.digest == arrived.digest


def test_an_answer_of_a_newer_server_is_told_to_be_unreadable():
    for message in (pb.Report(verification=99), pb.Report(verification=pb.VERIFICATION_COMPLETE, notices=[{"kind": 99}])):
        with pytest.raises(convert.Unreadable):
            convert.report_from_proto(message)
