from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from graphsvc.declarations.files import read_files
from graphsvc.declarations.jsonlines import json_line
from graphsvc.domain.model import AgentVersion
from graphsvc.rpc.auth import read_grants_file
from graphsvc.rpc.server import TlsFiles
from tests.graphsvc.cli.running import lines, run
from tests.graphsvc.rpc.serving import Running, serving, version
from tests.graphsvc.rpc.signing import Authority, bearer_tokens, new_signer, public_pem

TEAM = str(Path(__file__).parents[2] / "golden" / "team.jsonl")
CATALOGUE = (
    version("acme/platform:developer", 3, ["code", {"event": "diff", "artifacts": ["patch"]}], ["review"]),
    version("acme/platform:reviewer", 1, ["review"], ["code"]),
    version("acme:writer", 2, ["docs"], []),
    version("globex:developer", 1, [], ["code"]),
    version("*:archivist", 1, [], ["docs"]),
)


def in_order(versions: tuple[AgentVersion, ...]) -> list[AgentVersion]:
    return sorted(versions, key=lambda found: found.agent.order)


@pytest.fixture(autouse=True)
def _server_logs_apart() -> Iterator[None]:
    """The servers of these tests share the process, and its standard output, with the commands."""
    with capture_logs():
        yield


@pytest.fixture
def running() -> Iterator[Running]:
    with serving(versions=CATALOGUE) as running:
        yield running


def exported(*target: str, ending: str = ".jsonl", scopes: tuple[str, ...] = (), folder: Path) -> list[AgentVersion]:
    """What `export` writes to a file."""
    file = folder / f"exported{ending}"
    ended = run("export", *target, "--output", str(file), *(flag for scope in scopes for flag in ("--scope", scope)))
    assert (ended.status, ended.stderr) == (0, "")
    return list(read_files([str(file)]))


@pytest.mark.promise("G-20")
@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_what_a_service_exports_can_be_imported_into_another(ending: str, running: Running, tmp_path: Path) -> None:
    assert exported("--server", running.address, ending=ending, folder=tmp_path) == in_order(CATALOGUE)
    with serving() as other:
        ended = run("import", str(tmp_path / f"exported{ending}"), "--server", other.address, "--format", "json")
        assert (ended.status, ended.stderr) == (0, "")
        assert json.loads(ended.stdout) == {"revision": 5, "created": 5, "unchanged": 0}
        again = run("import", str(tmp_path / f"exported{ending}"), "--server", other.address)
        assert (again.status, again.stdout) == (0, "0 versions created, 5 unchanged; the graph is at revision 5\n")
        assert exported("--server", other.address, folder=tmp_path) == in_order(CATALOGUE)


def test_a_store_is_loaded_and_read_without_a_service(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'graph.db'}"
    assert run("import", TEAM, "--store", store).stdout == "21 versions created, 0 unchanged; the graph is at revision 21\n"
    assert run("import", TEAM, "--store", store).stdout == "0 versions created, 21 unchanged; the graph is at revision 21\n"
    numbered = [AgentVersion(found.agent, 1, found.declaration) for found in read_files([TEAM])]
    assert exported("--store", store, folder=tmp_path) == in_order(tuple(numbered))


@pytest.mark.promise("G-11")
def test_the_same_graph_gives_the_same_bytes_whatever_the_order_it_came_in(tmp_path: Path) -> None:
    team = Path(TEAM).read_text(encoding="utf-8").splitlines(keepends=True)
    outputs = []
    for name, order in (("forward", team), ("backward", team[::-1])):
        file, store = tmp_path / f"{name}.jsonl", f"sqlite:///{tmp_path / name}.db"
        file.write_text("".join(order), encoding="utf-8")
        assert run("import", str(file), "--store", store).status == 0
        outputs.append(run("export", "--store", store))
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(
    ("scopes", "names"),
    [
        (("acme",), ["acme/platform:developer", "acme/platform:reviewer", "acme:writer"]),
        (("acme/platform",), ["acme/platform:developer", "acme/platform:reviewer"]),
        (("globex", "acme/platform"), ["acme/platform:developer", "globex:developer", "acme/platform:reviewer"]),
        (("initech",), []),
    ],
)
def test_an_export_can_be_cut_down_to_scopes(scopes: tuple[str, ...], names: list[str], running: Running, tmp_path: Path) -> None:
    found = exported("--server", running.address, scopes=scopes, folder=tmp_path)
    assert [one.agent.text for one in found] == names


def test_without_a_file_the_agents_are_printed_and_the_summary_stands_beside_them(running: Running) -> None:
    ended = run("export", "--server", running.address)
    assert ended.stdout.splitlines() == [json_line(found) for found in in_order(CATALOGUE)]
    assert ended.stderr == "5 agents exported at revision 5\n"
    counted = run("export", "--server", running.address, "--format", "json", "--scope", "globex")
    assert json.loads(counted.stderr) == {"revision": 5, "exported": 1}


@pytest.mark.promise("G-24")
def test_an_import_with_one_bad_agent_among_many_stores_nothing(running: Running, tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    good = "".join(f'{{"agent": "agent-{i}"}}\n' for i in range(2_000))
    file.write_text(f"{good}{{}}\n", encoding="utf-8")
    ended = run("import", str(file), "--server", running.address)
    assert (ended.status, ended.stdout) == (2, "")
    assert ended.stderr == f"{file}:2001: agent: is missing; name the agent\n"
    assert running.service.revision == len(CATALOGUE)


@pytest.mark.promise("O-2")
def test_what_the_graph_refuses_is_wrong_use(running: Running, tmp_path: Path) -> None:
    file = tmp_path / "stale.jsonl"
    file.write_text('{"agent": "developer", "company": "acme", "area": "platform", "version": 2}\n', encoding="utf-8")
    ended = run("import", str(file), "--server", running.address)
    assert (ended.status, ended.stdout) == (2, "")
    assert "version 2 of acme/platform:developer is below its current version 3" in ended.stderr


def test_a_dry_run_needs_no_graph_and_says_how_many_agents_there_are() -> None:
    assert run("import", TEAM, "--dry-run").stdout == "21 agents are well formed; nothing was stored\n"
    assert json.loads(run("import", TEAM, "--dry-run", "--format", "json").stdout) == {"checked": 21}


def test_a_dry_run_stores_nothing(running: Running) -> None:
    assert run("import", TEAM, "--dry-run", "--server", running.address).status == 0
    assert running.service.revision == len(CATALOGUE)


@pytest.mark.promise("O-2")
@pytest.mark.parametrize("command", [("import", TEAM), ("export",)])
def test_a_server_that_does_not_answer_has_a_status_of_its_own(command: tuple[str, ...]) -> None:
    with serving() as gone:
        address = gone.address
    ended = run(*command, "--server", address)
    assert (ended.status, ended.stdout) == (4, "")
    [told] = ended.stderr.splitlines()
    assert told.startswith("error: ")


@pytest.mark.promise("O-2")
def test_a_store_that_does_not_answer_has_that_status_too() -> None:
    ended = run("export", "--store", "postgresql://nobody@127.0.0.1:1/none?connect_timeout=2")
    assert (ended.status, ended.stdout) == (4, "")
    assert "Traceback" not in ended.stderr


@pytest.mark.promise("O-5")
def test_the_token_of_a_file_decides_what_is_exported_and_whether_may_be_imported(tmp_path: Path) -> None:
    signer, keys = new_signer(), tmp_path / "keys.pem"
    keys.write_bytes(public_pem(signer.key))
    tokens = {name: tmp_path / name for name in ("viewer", "admin", "stranger")}
    tokens["viewer"].write_text(signer.token("viewer=acme") + "\n", encoding="ascii")
    tokens["admin"].write_text(signer.token("admin=*"), encoding="ascii")
    tokens["stranger"].write_text(new_signer().token("admin=*"), encoding="ascii")
    with serving(authenticator=bearer_tokens(keys), versions=CATALOGUE) as running:
        server = ("--server", running.address)
        seen = exported(*server, "--token-file", str(tokens["viewer"]), folder=tmp_path)
        assert {found.agent.scope.company for found in seen} == {"acme"}
        assert exported(*server, "--token-file", str(tokens["admin"]), folder=tmp_path) == in_order(CATALOGUE)
        for name in ("viewer", "stranger"):
            ended = run("import", TEAM, *server, "--token-file", str(tokens[name]))
            assert (ended.status, ended.stdout) == (2, "")
        assert run("import", TEAM, *server).status == 2
        assert running.service.revision == len(CATALOGUE)
        assert run("import", TEAM, *server, "--token-file", str(tokens["admin"])).status == 0


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "authority")


def by_name(running: Running) -> tuple[str, str]:
    """The flag of the server, by the name that its certificate has."""
    return "--server", running.address.replace("127.0.0.1", "localhost")


@pytest.mark.promise("O-5")
def test_a_server_is_known_by_a_certificate_of_a_trusted_issuer(authority: Authority, tmp_path: Path) -> None:
    own, stranger = authority.issue("localhost", ("localhost",)), Authority(tmp_path, "stranger")
    with serving(tls=TlsFiles(certificate=own.certificate, key=own.key, client_ca=None), versions=CATALOGUE) as running:
        assert exported(*by_name(running), "--tls-ca", str(authority.certificate), folder=tmp_path) == in_order(CATALOGUE)
        for trusting in (("--tls-ca", str(stranger.certificate)), ("--tls",), ()):
            ended = run("export", *by_name(running), *trusting)
            assert (ended.status, ended.stdout) == (4, "")


@pytest.mark.promise("O-5")
def test_a_command_shows_its_own_certificate(authority: Authority, tmp_path: Path) -> None:
    grants = tmp_path / "grants.yaml"
    grants.write_text("loader: [{role: admin, scope: '*'}]\nviewer: [{role: viewer, scope: acme}]\n", encoding="utf-8")
    own = authority.issue("localhost", ("localhost",))
    tls = TlsFiles(certificate=own.certificate, key=own.key, client_ca=authority.certificate)
    with serving(authenticator=read_grants_file(grants), tls=tls, versions=CATALOGUE) as running:

        def shown(name: str) -> tuple[str, ...]:
            issued = authority.issue(name, (name,))
            own = ("--tls-certificate", str(issued.certificate), "--tls-key", str(issued.key))
            return (*by_name(running), "--tls-ca", str(authority.certificate), *own)

        assert exported(*shown("loader"), folder=tmp_path) == in_order(CATALOGUE)
        assert run("import", TEAM, *shown("viewer")).status == 2
        assert run("import", TEAM, *shown("loader")).status == 0


@pytest.mark.promise("G-20")
def test_standard_input_is_stored_in_portions_too(running: Running) -> None:
    given = lines([f'{{"agent": "agent-{i}", "emits": ["e{i}"]}}' for i in range(10)])
    ended = run("import", "-", "--server", running.address, "--at-once", "3", "--format", "json", stdin=given)
    assert (ended.status, ended.stderr) == (0, "")
    assert json.loads(ended.stdout) == {"revision": len(CATALOGUE) + 10, "created": 10, "unchanged": 0}


@pytest.mark.promise("O-2")
def test_a_portion_that_the_graph_refuses_leaves_those_before_it_and_says_so(running: Running) -> None:
    records = [f'{{"agent": "agent-{i}"}}' for i in range(4)]
    stale = '{"agent": "developer", "company": "acme", "area": "platform", "version": 2}'
    ended = run("import", "-", "--server", running.address, "--at-once", "3", stdin=lines([*records, stale, '{"agent": "last"}']))
    assert (ended.status, ended.stdout) == (2, "")
    told = ended.stderr.splitlines()
    assert told[0] == "3 of 6 agents are stored; type the command again to go on"
    assert "version 2 of acme/platform:developer is below its current version 3" in told[1]
    assert running.service.revision == len(CATALOGUE) + 3
