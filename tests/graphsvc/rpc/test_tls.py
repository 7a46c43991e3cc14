"""Callers by certificate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphsvc.client import ClientTls
from graphsvc.domain.errors import AccessDenied, InvalidInput, Unauthenticated
from graphsvc.domain.names import parse_agent
from graphsvc.rpc.auth import read_grants_file
from graphsvc.rpc.server import TlsFiles
from graphsvc.rpc.status import Unanswered
from tests.graphsvc.rpc.serving import Running, serving, version
from tests.graphsvc.rpc.signing import Authority, Issued, bearer_tokens, new_signer, public_pem

GRANTS = """
ada.acme.example:
  - {role: author, scope: acme/platform}
auditor:
  - {role: auditor, scope: "*"}
"""
WORLD = (version("acme/platform:developer", 1, ["code"], ["review"]), version("globex:auditor", 1, ["review"], ["code"]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    return Authority(folder, "authority")


@pytest.fixture(scope="module")
def files(authority: Authority) -> TlsFiles:
    server = authority.issue("localhost", ("localhost",))
    return TlsFiles(certificate=server.certificate, key=server.key, client_ca=authority.certificate)


@pytest.fixture(scope="module")
def running(folder: Path, files: TlsFiles) -> Iterator[Running]:
    grants = folder / "grants.yaml"
    grants.write_text(GRANTS, encoding="utf-8")
    with serving(authenticator=read_grants_file(grants), tls=files, versions=WORLD) as running:
        yield running


def shown(authority: Authority, issued: Issued | None) -> ClientTls:
    return ClientTls(
        ca=authority.certificate, certificate=issued.certificate if issued else None, key=issued.key if issued else None
    )


@pytest.mark.promise("O-5")
def test_a_certificate_has_the_grants_of_its_alternative_name(running: Running, authority: Authority):
    ada = authority.issue("somebody", ("ada.acme.example",))
    with running.client(tls=shown(authority, ada)) as client:
        assert client.publish(version("acme/platform:tester", 1, [], ["code"])).created
        with pytest.raises(AccessDenied):
            client.publish(version("globex:tester", 1, [], []))
        assert client.status().sizes is None


@pytest.mark.promise("O-5")
def test_a_certificate_has_the_grants_of_its_common_name_where_no_other_name_has_any(running: Running, authority: Authority):
    with running.client(tls=shown(authority, authority.issue("auditor", ("other.example",)))) as client:
        assert client.describe(parse_agent("globex:auditor")).version.number == 1
        with pytest.raises(AccessDenied):
            client.retire(parse_agent("globex:auditor"))


@pytest.mark.promise("O-5")
def test_a_certificate_whose_names_have_no_grants_is_refused(running: Running, authority: Authority):
    mallory = authority.issue("mallory", ("mallory.example",))
    with running.client(tls=shown(authority, mallory)) as client, pytest.raises(Unauthenticated):
        client.status()


@pytest.mark.promise("O-5")
def test_without_a_valid_certificate_there_is_no_connection(running: Running, authority: Authority, folder: Path):
    forged = Authority(folder, "forger").issue("ada.acme.example", ("ada.acme.example",))
    expired = authority.issue("expired", ("ada.acme.example",), days=-1)
    for issued in (None, forged, expired):
        with running.client(tls=shown(authority, issued)) as client, pytest.raises(Unanswered):
            client.status()


@pytest.mark.promise("O-5")
def test_a_client_refuses_a_server_that_is_not_of_its_issuer(running: Running, authority: Authority, folder: Path):
    other = Authority(folder, "other")
    ada = authority.issue("ada2", ("ada.acme.example",))
    mistrusting = ClientTls(ca=other.certificate, certificate=ada.certificate, key=ada.key)
    with running.client(tls=mistrusting) as client, pytest.raises(Unanswered):
        client.status()


@pytest.mark.promise("O-5")
def test_tokens_and_encryption_go_together(folder: Path, files: TlsFiles, authority: Authority):
    signer = new_signer()
    keys = folder / "keys.pem"
    keys.write_bytes(public_pem(signer.key))
    without_ca = TlsFiles(certificate=files.certificate, key=files.key, client_ca=None)
    with serving(authenticator=bearer_tokens(keys), tls=without_ca, versions=WORLD) as running:
        with running.client(signer.token("viewer=acme"), shown(authority, None)) as client:
            assert client.status().revision == 2
        with running.client(tls=shown(authority, None)) as client, pytest.raises(Unauthenticated):
            client.status()


@pytest.mark.promise("O-5")
@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "graph.example:0", "127.0.0.1.example:0"])
def test_without_tokens_and_client_certificates_only_loopback_is_listened_on(listen: str, files: TlsFiles):
    encrypted = TlsFiles(certificate=files.certificate, key=files.key, client_ca=None)
    for tls in (None, encrypted):
        with pytest.raises(InvalidInput, match="neither tokens nor client certificates"), serving(listen=listen, tls=tls):
            pass


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ("", "grants_file"),
        ("- a\n", "grants_file"),
        ("a: [\n", "grants_file"),
        ("ada: {role: viewer, scope: acme}\n", "grants_file: ada"),
        ("ada: [{role: owner, scope: acme}]\n", "grants_file: ada[0].role"),
        ("ada: [{role: viewer, scope: a/b/c}]\n", "grants_file: ada[0].scope.area"),
        ("ada: [{role: viewer}]\n", "grants_file: ada[0]"),
        ("ada: [{role: viewer, scope: acme, more: 1}]\n", "grants_file: ada[0]"),
    ],
)
def test_a_faulty_grants_file_is_refused_by_its_entry(content: str, field: str, tmp_path: Path):
    path = tmp_path / "grants.yaml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        read_grants_file(path)
    assert caught.value.violations[0].field == field


def test_a_grants_file_may_be_json(tmp_path: Path):
    path = tmp_path / "grants.json"
    path.write_text('{"ada": [{"role": "viewer", "scope": "*"}]}', encoding="utf-8")
    assert read_grants_file(path).callers["ada"].reader.reads_everything


def test_a_certificate_and_a_key_that_do_not_belong_together_are_refused(authority: Authority):
    one, other = authority.issue("one"), authority.issue("other")
    mixed = TlsFiles(certificate=one.certificate, key=other.key, client_ca=None)
    with pytest.raises(InvalidInput, match="certificate and key"), serving(tls=mixed):
        pass
