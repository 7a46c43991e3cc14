"""The commands from end to end: real processes, real stores, a real graph service."""

from __future__ import annotations

import json
import os
import signal
import ssl
import stat
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from agentplat.cli.outcomes import Format
from agentplat.domain.errors import InvalidInput
from agentplat.domain.registry import ReportState
from agentplat.running import answering
from agentplat.settings import load
from agentplat.signing import make_key
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.agentplat.graph_host import silent_address
from tests.agentplat.processes import END_S, Done, Server, command, process, server, up
from tests.agentplat.world import manifest, manifests, wait_until
from tests.graphsvc.rpc.signing import Authority

DEVELOPER, REVIEWER = "acme/platform:developer", "acme/platform:reviewer"
COMMANDS = [
    ["up"], ["serve"], ["worker"], ["migrate"], ["publish"], ["preview"], ["retire"], ["pause"], ["resume"], ["schema"],
    ["approval", "list"], ["approval", "show"], ["approval", "grant"], ["approval", "refuse"],
    ["budget", "show"], ["budget", "set"], ["budget", "resume"], ["declassify"], ["erase"],
    ["dispatch", "run"], ["dispatch", "status"], ["dispatch", "reconcile"], ["dispatch", "resume"], ["dispatch", "chain"],
    ["dispatch", "limits"],
    ["run", "open"], ["run", "list"], ["run", "show"], ["run", "cancel"], ["trail", "show"], ["trail", "verify"],
    ["trail", "export"],
    ["user", "add"], ["user", "grant"], ["user", "revoke"], ["user", "list"], ["user", "token"], ["user", "revoke-token"],
]  # fmt: skip


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Both processes on one data folder, for the tests that leave them as they were."""
    with up(tmp_path_factory.mktemp("up")) as found:
        yield found


def _write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def _ask(running: Server, *arguments: object, cwd: Path) -> Done:
    return command(*arguments, "--server", running.url, "--token-file", running.ready["token_file"], cwd=cwd)


@pytest.mark.promise("O-2")
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(words: list[str], tmp_path: Path) -> None:
    done = command(*words, "--help", cwd=tmp_path)
    assert done.status == 0
    assert f"Example: agentplat {' '.join(words)}" in " ".join(done.out.split())


@pytest.mark.promise("O-2")
def test_a_command_is_a_process_that_ends_with_its_status(running: Server, tmp_path: Path) -> None:
    file = _write(tmp_path, "a.yaml", manifest("process:a", ["process.x"], ["process.x"]))
    done = process("publish", file, "--server", running.url, "--token-file", running.ready["token_file"], cwd=tmp_path)
    assert (done.status, done.err, "  a → a (the platform never starts an agent" in done.out) == (0, "", True)
    wrong = process("publish", "missing.yaml", cwd=tmp_path)
    assert (wrong.status, wrong.out, wrong.err.startswith("error: missing.yaml: cannot be read")) == (2, "", True)


@pytest.mark.promise("O-2", "P-4", "P-9")
def test_publishing_warns_in_three_languages_and_ends_well(running: Server, tmp_path: Path) -> None:
    loop = manifests(
        manifest("loop:developer", ["loop.code"], ["loop.rejected"]), manifest("loop:reviewer", ["loop.rejected"], ["loop.code"])
    )
    file = _write(tmp_path, "loop.yaml", loop)
    done = _ask(running, "publish", file, cwd=tmp_path)
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert "loop:developer version 1 published" in lines
    assert "  reviewer → developer → reviewer" in lines
    again = _ask(running, "publish", file, "--language", "pt", cwd=tmp_path)
    assert "loop:reviewer version 1 is current already; nothing was stored" in again.out
    assert "Esta versão fecha um laço:" in again.out
    told = _ask(running, "publish", file, "--language", "he", "--format", "json", cwd=tmp_path)
    developer, reviewer = told.answers
    assert (developer["version"], developer["created"], developer["warning"]) == (1, False, [])
    assert reviewer["warning"] == [
        "הגרסה הזו סוגרת לולאה:",
        "  \u2066\u2068reviewer\u2069 → \u2068developer\u2069 → \u2068reviewer\u2069\u2069",
    ]


@pytest.mark.promise("O-2", "P-8")
@pytest.mark.parametrize(
    ("listens", "fail_on", "status"),
    [
        ([], "never", 0),
        (["exit.unfed"], "self", 0),
        (["exit.unfed"], "notice", 1),
        (["exit.code"], "never", 0),
        (["exit.code"], "loop", 0),
        (["exit.code"], "self", 1),
        (["exit.back"], "loop", 1),
    ],
)
def test_a_preview_ends_by_what_it_found(running: Server, tmp_path: Path, listens: list[str], fail_on: str, status: int) -> None:
    back = _write(tmp_path, "back.yaml", manifest("exit:back", ["exit.back"], ["exit.code"]))
    assert _ask(running, "publish", back, cwd=tmp_path).status == 0
    file = _write(tmp_path, "new.yaml", manifest("exit:new", ["exit.code"], listens))
    done = _ask(running, "preview", file, "--fail-on", fail_on, "--format", "json", cwd=tmp_path)
    assert done.status == status
    [preview] = done.answers
    assert preview["agent"] == "exit:new"
    assert preview["diff"]["against"] is None


@pytest.mark.promise("O-2", "P-11")
def test_an_agent_is_paused_resumed_and_retired(running: Server, tmp_path: Path) -> None:
    file = _write(tmp_path, "a.yaml", manifest("state:a", ["state.x"]))
    assert _ask(running, "publish", file, cwd=tmp_path).status == 0
    told = [
        _ask(running, command, "state:a", cwd=tmp_path).out.strip() for command in ("pause", "pause", "resume", "retire", "retire")
    ]
    assert told == [
        "state:a paused",
        "state:a was paused already",
        "state:a resumed",
        "state:a retired",
        "state:a was retired already",
    ]
    assert _ask(running, "retire", "state:nobody", cwd=tmp_path).status == 2


@pytest.mark.promise("O-2", "P-2")
def test_one_faulty_file_keeps_all_back_and_every_fault_is_told(running: Server, tmp_path: Path) -> None:
    good = _write(tmp_path, "good.yaml", manifest("faulty:good", ["x"]))
    bad = _write(tmp_path, "bad.yaml", "apiVersion: agentplat/v1\nkind: Robot\nmetadata: {name: ''}\nspec: {emit: [x]}\n")
    done = _ask(running, "publish", good, bad, tmp_path / "missing.yaml", cwd=tmp_path)
    assert done.status == 2
    assert done.out == ""
    errors = done.err.splitlines()
    assert [line.split(": ")[1].rpartition("/")[2] for line in errors] == [
        "bad.yaml:2:7",
        "bad.yaml:3:18",
        "bad.yaml:4:8",
        "missing.yaml",
    ]
    assert _ask(running, "retire", "faulty:good", cwd=tmp_path).status == 2


@pytest.mark.promise("O-2")
def test_wrong_use_and_silence_have_their_own_endings(running: Server, tmp_path: Path) -> None:
    file = _write(tmp_path, "a.yaml", manifest("ending:a", ["x"]))
    guess = _write(tmp_path, "guess.token", "apt_guess\n")
    assert command("publish", file, "--server", running.url, cwd=tmp_path).status == 2
    refused = command("publish", file, "--server", running.url, "--token-file", guess, cwd=tmp_path)
    assert (refused.status, "send a valid token" in refused.err) == (2, True)
    silent = command("publish", file, "--server", "http://127.0.0.1:9", "--token-file", guess, cwd=tmp_path)
    assert (silent.status, "did not answer" in silent.err) == (4, True)
    assert command("publish", file, "--server", "nonsense", "--token-file", guess, cwd=tmp_path).status == 2
    assert command("publish", cwd=tmp_path).status == 2
    assert command("nothing", cwd=tmp_path).status == 2
    unknown = command("user", "list", cwd=tmp_path, AGENTPLAT_LISEN="127.0.0.1:1")
    assert (unknown.status, "did you mean AGENTPLAT_LISTEN?" in unknown.err) == (2, True)


@pytest.mark.promise("P-2")
def test_the_schema_is_printed_without_any_server(tmp_path: Path) -> None:
    done = command("schema", cwd=tmp_path)
    assert done.status == 0
    assert json.loads(done.out)["properties"]["kind"]["const"] == "Agent"


@pytest.mark.promise("O-5")
def test_the_first_admins_token_and_the_key_are_for_their_owner_only(running: Server) -> None:
    folder = Path(running.ready["token_file"]).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for name in ("admin.token", "agentplat.key.pem"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    token = (folder / "admin.token").read_text(encoding="utf-8").strip()
    me = httpx.get(f"{running.url}/v1/me", headers={"Authorization": f"Bearer {token}"}, timeout=END_S).json()
    assert me == {"person": "*:admin", "grants": [{"role": role, "scope": "*"} for role in ("admin", "auditor", "author")]}
    assert token not in running.errors.read_text(encoding="utf-8")


@pytest.mark.promise("O-5")
def test_people_are_managed_at_the_host_and_their_tokens_work_at_once(running: Server, tmp_path: Path) -> None:
    database = f"sqlite:///{Path(running.ready['token_file']).parent / 'agentplat.db'}"

    def user(*arguments: object) -> Done:
        return command("user", *arguments, "--database-url", database, "--format", "json", cwd=tmp_path)

    assert user("add", "hosted:ana").answers == [{"person": "hosted:ana", "grants": []}]
    assert user("add", "hosted:ana").status == 2
    assert user("grant", "hosted:ana", "author", "hosted").answers[0]["grants"] == [{"role": "author", "scope": "hosted"}]
    [made] = user("token", "hosted:ana", "--name", "laptop", "--out", "ana.token").answers
    assert (made["name"], made["file"], stat.S_IMODE((tmp_path / "ana.token").stat().st_mode)) == ("laptop", "ana.token", 0o600)
    assert user("token", "hosted:ana", "--name", "other", "--out", "ana.token").status == 2
    file = _write(tmp_path, "a.yaml", manifest("hosted:a", ["x"]))
    publish = ("publish", file, "--server", running.url, "--token-file", "ana.token")
    assert command(*publish, cwd=tmp_path).status == 0
    assert {"person": "hosted:ana", "grants": [{"role": "author", "scope": "hosted"}]} in user("list").answers
    assert user("revoke-token", "hosted:ana", "laptop").status == 0
    assert command(*publish, cwd=tmp_path).status == 2
    assert user("revoke", "hosted:ana", "author", "hosted").answers == [{"person": "hosted:ana", "grants": []}]


@pytest.mark.promise("P-6", "O-7")
def test_up_ends_on_sigterm_and_finds_everything_again(tmp_path: Path) -> None:
    file = _write(tmp_path, "a.yaml", manifest(DEVELOPER, ["code"], ["code"]))
    with up(tmp_path) as first:
        assert _ask(first, "publish", file, cwd=tmp_path).status == 0
        token = Path(first.ready["token_file"]).read_text(encoding="utf-8")
        taken = process("up", "--data-dir", tmp_path / "data", "--listen", "127.0.0.1:0", cwd=tmp_path)
        assert (taken.status, "is in use by another `agentplat up`" in taken.err) == (2, True)
        children = psutil.Process(first.process.pid).children(recursive=True)
        assert first.stop() == 0
        assert not [child for child in children if child.is_running()]
    with up(tmp_path) as second:
        assert Path(second.ready["token_file"]).read_text(encoding="utf-8") == token
        done = _ask(second, "publish", file, "--format", "json", cwd=tmp_path)
        assert (done.answers[0]["created"], done.answers[0]["state"]) == (False, ReportState.VERIFIED)
        # A kill leaves no time to end the child, which must not keep its address from the next one.
        children = psutil.Process(second.process.pid).children(recursive=True)
        second.process.kill()
        second.process.wait(END_S)
        wait_until(
            lambda: not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children), "the child ended"
        )


def _child(running: Server, module: str) -> psutil.Process:
    """The child of `up` that runs this module; there must be one."""
    [found] = [child for child in psutil.Process(running.process.pid).children() if module in child.cmdline()]
    return found


@pytest.mark.promise("R-13")
def test_a_dispatcher_that_was_killed_is_started_again(tmp_path: Path) -> None:
    with up(tmp_path) as running:
        child = _child(running, "dispatch")
        os.kill(child.pid, signal.SIGKILL)

        def replaced() -> bool:
            events = [(line.get("event"), line.get("child")) for line in running.log()]
            return events.count(("a child is ready", "the dispatcher")) == 2

        wait_until(replaced, "another dispatcher is ready")
        assert _child(running, "dispatch").pid != child.pid
        assert running.stop() == 0


@pytest.mark.promise("P-6")
def test_a_graph_service_that_was_killed_is_started_again_and_hears_what_it_missed(tmp_path: Path) -> None:
    with up(tmp_path) as running:
        child = _child(running, "graphsvc")
        child.suspend()
        file = _write(tmp_path, "a.yaml", manifest(DEVELOPER, ["code"], ["code"]))
        done = _ask(running, "publish", file, "--format", "json", cwd=tmp_path)
        assert (done.status, done.answers[0]["state"]) == (0, ReportState.NOT_ANSWERED)
        os.kill(child.pid, signal.SIGKILL)

        def late() -> bool:
            again = _ask(running, "publish", file, "--format", "json", cwd=tmp_path)
            assert again.status == 0
            return bool(again.answers[0]["state"] != ReportState.NOT_ANSWERED)

        wait_until(late, "the version was verified")
        assert _child(running, "graphsvc").pid != child.pid
        assert ("a child ended", "the graph service") in [(line.get("event"), line.get("child")) for line in running.log()]
        assert running.stop() == 0


@pytest.mark.promise("O-5")
@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"listen": "0.0.0.0:0"}, "which other machines reach, but nothing is encrypted"),
        ({"listen": "nowhere"}, "write HOST:PORT"),
        ({"listen": "127.0.0.1:99999"}, "write HOST:PORT"),
        ({"metrics_listen": "0.0.0.0:0"}, "metrics ask for no token"),
        ({"signing_key": "missing.pem"}, "signing_key: cannot be read"),
        ({"signing_key": "rsa.pem"}, "use an Ed25519 key"),
        ({"tls_certificate": "no.pem", "tls_key": "no.pem"}, "tls_certificate: cannot be used"),
        ({"database_url": "mysql://x/y"}, "database_url: begins with 'mysql'"),
        ({"graph_ca": "no.pem"}, "graph_ca: no.pem cannot be read"),
    ],
)
def test_a_server_that_would_leave_a_door_open_or_cannot_work_does_not_start(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    _make_key(tmp_path)
    rsa_key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    (tmp_path / "rsa.pem").write_bytes(rsa_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    usual = {"listen": "127.0.0.1:0", "database_url": sqlite_url, "signing_key": "key.pem"}
    with pytest.raises(InvalidInput) as refusal, answering(load({**usual, **changed}, None)):
        pass
    assert told in str(refusal.value)


@pytest.mark.promise("O-5")
def test_an_address_in_use_is_refused(sqlite_url: str, tmp_path: Path) -> None:
    _make_key(tmp_path)
    usual = {"database_url": sqlite_url, "signing_key": str(tmp_path / "key.pem")}
    with silent_address() as taken:
        for name in ("listen", "metrics_listen"):
            settings = load({"listen": "127.0.0.1:0", **usual, name: taken}, None)
            with pytest.raises(InvalidInput, match=f"{name}: .*cannot be listened on"), answering(settings):
                pass


@pytest.mark.promise("O-2")
def test_a_server_does_not_start_on_a_database_without_the_schema(tmp_path: Path) -> None:
    _make_key(tmp_path)
    done = process("serve", "--database-url", f"sqlite:///{tmp_path / 'a.db'}", "--signing-key", "key.pem", cwd=tmp_path)
    assert (done.status, "run `agentplat migrate` once" in done.err) == (2, True)


@pytest.mark.promise("O-5")
def test_an_encrypted_server_may_be_reached_by_others_and_tells_its_address(sqlite_url: str, tmp_path: Path) -> None:
    _make_key(tmp_path)
    authority = Authority(tmp_path, "issuer")
    issued = authority.issue("localhost", ("localhost",))
    files = {"tls_certificate": str(issued.certificate), "tls_key": str(issued.key)}
    usual = {"database_url": sqlite_url, "signing_key": str(tmp_path / "key.pem"), "listen": "0.0.0.0:0"}
    with answering(load({**usual, **files}, None)) as (_, ready):
        port = ready.address.rpartition(":")[2]
        trusted = ssl.create_default_context(cafile=authority.certificate)
        assert httpx.get(f"https://localhost:{port}/healthz", verify=trusted, timeout=END_S).json() == {"status": "ok"}
    assert ready.encrypted
    assert "https://0.0.0.0:" in ready.line(Format.TEXT)


def _make_key(folder: Path) -> None:
    make_key(folder / "key.pem")


@pytest.mark.promise("P-6", "O-2")
def test_a_version_is_stored_and_publish_ends_well_whatever_the_graph_service_does(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'a.db'}"
    command("migrate", "--database-url", database, cwd=tmp_path)
    _make_key(tmp_path)
    for arguments in (["add", "*:root"], ["grant", "*:root", "author", "*"], ["token", "*:root", "--out", "root.token"]):
        assert command("user", *arguments, "--database-url", database, cwd=tmp_path).status == 0
    file = _write(tmp_path, "a.yaml", manifest(DEVELOPER, ["code"]))
    with silent_address() as deaf:
        flags = ["--listen", "127.0.0.1:0", "--database-url", database, "--signing-key", "key.pem", "--graph-target", deaf]
        quick = ["--verify-timeout-s", "0.3", "--check-timeout-s", "0.3", "--call-timeout-s", "0.3"]
        with server("agentplat", "serve", *flags, *quick, errors=tmp_path / "serve.log") as running:
            asked = ("--server", running.url, "--token-file", "root.token")
            done = command("publish", file, *asked, cwd=tmp_path)
            assert done.status == 0
            assert "This version was not verified, because the graph service did not answer." in done.out
            assert command("preview", file, *asked, cwd=tmp_path).status == 4
            assert running.stop() == 0
