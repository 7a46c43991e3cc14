"""AuditLoops: what comes, for whom, and that an audit ends with its call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import psutil
import pytest

from graphsvc.audit.local import audit
from graphsvc.client import AccessDenied, AuditLimits, Overloaded, Progress, Unanswered, parse_scope, reader_of
from graphsvc.columns import in_columns
from graphsvc.declarations.files import read_files
from graphsvc.declarations.generator import Shape, generate
from graphsvc.domain.audit import Finding
from graphsvc.domain.redaction import EVERYTHING
from graphsvc.v1 import graph_pb2 as pb
from tests.graphsvc.rpc.serving import PATIENCE_S, Running, serving, wait_until
from tests.graphsvc.rpc.signing import bearer_tokens, new_signer, public_pem
from tests.graphsvc.rpc.test_bad_input import refused_fields

TEAM = tuple(read_files([str(Path(__file__).parents[2] / "golden" / "team.jsonl")]))
LARGE = tuple(generate(Shape.GIANT, 5_000, 1).versions())
"""Takes longer than a test needs to look."""


@pytest.fixture(scope="module")
def team() -> Iterator[Running]:
    with serving(versions=TEAM) as running:
        yield running


@pytest.fixture(scope="module")
def large() -> Iterator[Running]:
    with serving(versions=LARGE) as running:
        yield running


@pytest.fixture(autouse=True)
def _alone(team: Running, large: Running) -> Iterator[None]:
    """One audit at a time is made in a process, and an audit is over when its call is."""
    yield
    for running in (team, large):
        running.wait_for_calls_in_flight(0)
    wait_until(lambda: not audits_running(), "the audit's process ended")


def audits_running() -> list[psutil.Process]:
    """Processes of audits that this process began."""
    found = []
    for child in psutil.Process().children():
        try:
            if "spawn_main" in " ".join(child.cmdline()):
                found.append(child)
        except psutil.NoSuchProcess:
            pass
    return found


@contextmanager
def begun(running: Running) -> Iterator[grpc.Future]:
    """A call whose audit is at work."""
    with running.stub() as stub:
        call = stub.AuditLoops(pb.AuditLoopsRequest(), timeout=PATIENCE_S)
        assert next(call).WhichOneof("part") == "limits"
        next(call)
        assert audits_running()
        try:
            yield call
        finally:
            call.cancel()
            running.wait_for_calls_in_flight(0)


@pytest.mark.promise("O-9", "G-20")
@pytest.mark.parametrize("who", [None, "acme", "acme/support", "globex"])
@pytest.mark.parametrize("scope", [None, "acme", "globex/israel"])
def test_a_service_finds_what_an_audit_of_the_same_versions_finds(team: Running, who: str | None, scope: str | None) -> None:
    reader = reader_of([parse_scope(who)]) if who else None
    scopes = [parse_scope(scope)] if scope else []
    limits = AuditLimits(max_length=7, max_visits=500)
    told: list[Progress] = []
    with team.client() as client:
        answer = client.audit(reader, scopes, limits, tell=told.append)
        found: list[Finding] = list(answer.findings)
    assert found == list(audit(in_columns(TEAM), reader or EVERYTHING, scopes=scopes, limits=limits))
    assert (answer.revision, answer.limits) == (len(TEAM), limits)
    assert {progress.step for progress in told} >= {"reading agents", "searching loops", "looking at events"}


@pytest.mark.promise("O-9", "G-7", "G-21")
def test_limits_have_defaults_and_ceilings_and_the_answer_tells_them(team: Running) -> None:
    with team.client() as client:
        assert client.audit().limits == AuditLimits()
        assert client.audit(limits=AuditLimits(max_visits=10**12)).limits == AuditLimits(max_visits=10_000_000)


@pytest.mark.promise("O-9", "G-23", "G-24")
def test_a_faulty_request_names_its_fields(team: Running) -> None:
    request = pb.AuditLoopsRequest(reader=["a/b/c"], scopes=["", "ok"], max_length=1, at_least_revision=-1)
    with team.stub() as stub:
        audited = lambda request, timeout: list(stub.AuditLoops(request, timeout=timeout))  # noqa: E731
        fields = refused_fields(audited, request, team)
    assert fields == ["reader[0].area", "scopes[0].company", "max_length", "at_least_revision"]


@pytest.mark.promise("G-21")
def test_a_revision_that_was_not_reached_is_refused(team: Running) -> None:
    with team.stub() as stub, pytest.raises(grpc.RpcError) as caught:
        list(stub.AuditLoops(pb.AuditLoopsRequest(at_least_revision=10_000), timeout=PATIENCE_S))
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION


@pytest.mark.promise("O-5", "O-9")
def test_an_audit_reads_no_more_than_the_caller_may(tmp_path: Path) -> None:
    signer = new_signer()
    keys = tmp_path / "keys.pem"
    keys.write_bytes(public_pem(signer.key))
    with serving(authenticator=bearer_tokens(keys), versions=TEAM) as running:
        with running.client(signer.token("viewer=acme")) as client:
            assert list(client.audit().findings) == list(audit(in_columns(TEAM), reader_of([parse_scope("acme")])))
            with pytest.raises(AccessDenied):
                client.audit(EVERYTHING)
            with pytest.raises(AccessDenied):
                client.audit(reader_of([parse_scope("globex")]))
            # A scope narrows and never widens.
            assert list(client.audit(scopes=[parse_scope("globex")]).findings) == []
        with running.client(signer.token()) as client:
            assert list(client.audit().findings) == []


@pytest.mark.promise("O-9")
def test_an_audit_ends_with_its_call(large: Running) -> None:
    with begun(large) as call:
        processes = audits_running()
        call.cancel()
        wait_until(lambda: not any(process.is_running() for process in processes), "the audit's process ended")


@pytest.mark.promise("O-9")
def test_a_client_that_stops_taking_findings_ends_the_audit(large: Running) -> None:
    with large.client() as client:
        findings = client.audit().findings
        next(findings)
        findings.close()  # type: ignore[attr-defined]
        wait_until(lambda: not audits_running(), "the audit's process ended")


@pytest.mark.promise("O-9", "G-23")
def test_an_audit_ends_at_its_deadline(large: Running) -> None:
    with large.client() as client, pytest.raises(Unanswered):
        list(client.audit(deadline_s=0.5).findings)
    wait_until(lambda: not audits_running(), "the audit's process ended")


@pytest.mark.promise("O-7", "O-9")
def test_a_second_audit_is_refused_at_once_and_checks_go_on(team: Running, large: Running) -> None:
    with begun(large), large.client() as client:
        with pytest.raises(Overloaded):
            list(client.audit().findings)
        version = LARGE[0]
        assert client.check(version.agent, version.declaration).revision == len(LARGE)
    with team.client() as client:
        assert next(client.audit().findings)


@pytest.mark.promise("O-9", "G-23")
def test_an_audit_whose_process_dies_is_a_fault_and_the_next_one_works(team: Running, large: Running) -> None:
    with begun(large) as call:
        for process in audits_running():
            process.kill()
        with pytest.raises(grpc.RpcError) as caught:
            for _ in call:
                pass
        assert caught.value.code() is grpc.StatusCode.INTERNAL
    with team.client() as client:
        assert next(client.audit().findings)
