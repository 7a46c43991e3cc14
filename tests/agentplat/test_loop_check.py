"""The door to the graph service: encrypted where it is told to be, and every refusal turned into one of the platform's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import jwt
import pytest
from agentplat.domain.access import Access, Grant, Person, Role
from agentplat.domain.errors import GraphRefused, GraphUnavailable, InvalidInput
from agentplat.domain.languages import Language
from agentplat.domain.scopes import Ref
from agentplat.loop_check import GraphAddress, LoopCheck, check_ref, open_loop_check, read_manifests, read_report, warning
from agentplat.signing import LASTS_S, Signer, make_key, read_key, write_public

from graphsvc.client import Report
from graphsvc.domain.limits import Limits
from graphsvc.domain.model import AgentVersion, declare
from graphsvc.domain.names import parse_agent
from graphsvc.rpc.server import TlsFiles
from tests.agentplat.graph_host import AUDIENCE, ISSUER, GraphHost
from tests.agentplat.world import PATIENCE_S, manifest
from tests.graphsvc.rpc.signing import Authority

ANA = Access(Person(id=1, ref=Ref("acme", "ana")), frozenset({Grant(Role.AUTHOR, "acme")}))
[DEVELOPER] = read_manifests(manifest("acme/platform:developer", ["code"], ["rejected"]), "test.yaml")


def _signer(folder: Path) -> Signer:
    if not (folder / "key.pem").exists():
        make_key(folder / "key.pem")
        write_public(read_key(folder / "key.pem"), folder / "pub.pem", folder / "jwks.json")
    return Signer(key=read_key(folder / "key.pem"), issuer=ISSUER, audience=AUDIENCE)


@contextmanager
def _asking(address: GraphAddress, folder: Path) -> Iterator[LoopCheck]:
    with closing(open_loop_check(address, _signer(folder))) as opened:
        yield opened


@pytest.mark.promise("O-5")
def test_the_way_to_the_graph_service_is_encrypted_and_shows_a_certificate_where_one_is_asked_for(tmp_path: Path) -> None:
    ours, theirs = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    served, shown, foreign = ours.issue("localhost", ("localhost",)), ours.issue("agentplat"), theirs.issue("agentplat")
    signer = _signer(tmp_path)
    assert signer.key
    tls = TlsFiles(certificate=served.certificate, key=served.key, client_ca=ours.certificate)
    host = GraphHost(tmp_path, tmp_path / "jwks.json", Limits(), tls=tls)
    host.start()
    target = host.address.replace("127.0.0.1", "localhost")
    try:
        good = GraphAddress(target=target, ca=ours.certificate, certificate=shown.certificate, key=shown.key)
        with _asking(good, tmp_path) as graph:
            assert graph.check(ANA, DEVELOPER, PATIENCE_S)["verification"] == "complete"
        for address in (
            GraphAddress(target=target),
            GraphAddress(target=target, ca=ours.certificate),
            GraphAddress(target=target, ca=theirs.certificate, certificate=shown.certificate, key=shown.key),
            GraphAddress(target=target, ca=ours.certificate, certificate=foreign.certificate, key=foreign.key),
        ):
            with _asking(address, tmp_path) as graph, pytest.raises(GraphUnavailable):
                graph.check(ANA, DEVELOPER, PATIENCE_S)
    finally:
        host.stop()


@pytest.mark.promise("O-5")
def test_a_token_for_the_graph_service_carries_the_outermost_grants_for_a_minute(tmp_path: Path) -> None:
    signer = _signer(tmp_path)
    grants = {Grant(Role.VIEWER, "acme"), Grant(Role.VIEWER, "acme/platform"), Grant(Role.AUTHOR, "acme/platform")}
    claims = jwt.decode(
        signer.sign(Access(ANA.person, frozenset(grants))),
        (tmp_path / "pub.pem").read_bytes(),
        algorithms=["EdDSA"],
        issuer=ISSUER,
        audience=AUDIENCE,
    )
    assert claims["sub"] == "acme:ana"
    assert claims["exp"] - claims["iat"] == LASTS_S == 60
    assert claims["grants"] == [{"role": "author", "scope": "acme/platform"}, {"role": "viewer", "scope": "acme"}]


@pytest.mark.promise("P-6")
def test_refusals_for_good_are_told_apart_from_what_may_pass(tmp_path: Path) -> None:
    _signer(tmp_path)
    host = GraphHost(tmp_path, tmp_path / "pub.pem", Limits())
    host.start()
    try:
        host.put(AgentVersion(parse_agent("acme/platform:developer"), 3, declare(["other"], [])))
        with _asking(GraphAddress(target=host.address), tmp_path) as graph:
            with pytest.raises(GraphRefused, match="already published with other content"):
                graph.publish(ANA, DEVELOPER, 3, PATIENCE_S)
            with pytest.raises(GraphRefused, match="below its current version"):
                graph.publish(ANA, DEVELOPER, 2, PATIENCE_S)
            assert graph.publish(ANA, DEVELOPER, 4, PATIENCE_S).revision == 2
            assert graph.retire(ANA, Ref("acme", "nobody"), 1, PATIENCE_S).revision is None
            stranger = Access(ANA.person, frozenset({Grant(Role.VIEWER, "globex")}))
            with pytest.raises(GraphUnavailable, match="the graph service did not answer") as refusal:
                graph.publish(stranger, DEVELOPER, 5, PATIENCE_S)
            assert refusal.value.down
            assert "token is refused" in refusal.value.reason
    finally:
        host.stop()


@pytest.mark.promise("P-9")
def test_a_report_that_was_kept_reads_as_the_one_that_was_made(tmp_path: Path) -> None:
    _signer(tmp_path)
    host = GraphHost(tmp_path, tmp_path / "pub.pem", Limits(chain_limit=1))
    host.start()
    try:
        host.put(
            AgentVersion(parse_agent("globex:writer"), 1, declare(["rejected"], ["code"])),
            AgentVersion(
                parse_agent("acme/finance:payer"), 1, declare([{"event": "rejected", "context": "x", "artifacts": ["y"]}], ["code"])
            ),
        )
        [content] = read_manifests(
            manifest("acme/platform:developer", ["code", "unheard"], ["rejected", "code", "codes"]), "test.yaml"
        )
        with _asking(GraphAddress(target=host.address), tmp_path) as graph:
            body = graph.check(ANA, content, PATIENCE_S)
    finally:
        host.stop()
    again: Report = read_report(body)
    assert again.as_json() == body
    assert {notice["kind"] for notice in body["notices"]} == {"unheard_event", "unfed_trigger", "breaking_set"}
    text = "\n".join(warning(body, Language.EN))
    assert "developer → an agent outside your access → developer" in text
    assert "may be stopped by the data barrier" in text
    assert "a chain stops at 1 hops" in text


@pytest.mark.parametrize("text", ["", "developer", "acme/a/b:x", "acme:", "acme: x", "acme:\u202ex", "*/x:y", ":x"])
def test_a_reference_that_is_none_is_refused_by_its_field(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        check_ref(text, "agent")
    assert all(violation.field.startswith("agent") and violation.remedy for violation in refusal.value.violations)


def test_a_reference_is_normalised() -> None:
    assert check_ref("acme:cafe\u0301", "agent") == Ref("acme", "caf\u00e9")
