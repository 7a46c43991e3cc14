"""The commands from end to end: real processes, real stores, a real graph service."""

from __future__ import annotations

import json
import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from agentplat.domain.registry import ReportState

from tests.agentplat.graph_host import silent_address
from tests.agentplat.processes import END_S, Done, Server, agentplat, server, up
from tests.agentplat.world import manifest, manifests, wait_until

DEVELOPER, REVIEWER = "acme/platform:developer", "acme/platform:reviewer"
COMMANDS = [
    ["up"], ["serve"], ["migrate"], ["publish"], ["preview"], ["retire"], ["pause"], ["resume"], ["schema"],
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
    return agentplat(*arguments, "--server", running.url, "--token-file", running.ready["token_file"], cwd=cwd)


@pytest.mark.promise("O-2")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(command: list[str], tmp_path: Path) -> None:
    done = agentplat(*command, "--help", cwd=tmp_path)
    assert done.status == 0
    assert f"Example: agentplat {' '.join(command)}" in " ".join(done.out.split())


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
        ([], "notice", 1),
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
    assert agentplat("publish", file, "--server", running.url, cwd=tmp_path).status == 2
    refused = agentplat("publish", file, "--server", running.url, "--token-file", guess, cwd=tmp_path)
    assert (refused.status, "send a valid token" in refused.err) == (2, True)
    silent = agentplat("publish", file, "--server", "http://127.0.0.1:9", "--token-file", guess, cwd=tmp_path)
    assert (silent.status, "did not answer" in silent.err) == (4, True)
    assert agentplat("publish", file, "--server", "nonsense", "--token-file", guess, cwd=tmp_path).status == 2
    assert agentplat("publish", cwd=tmp_path).status == 2
    assert agentplat("nothing", cwd=tmp_path).status == 2
    unknown = agentplat("user", "list", cwd=tmp_path, AGENTPLAT_LISEN="127.0.0.1:1")
    assert (unknown.status, "did you mean AGENTPLAT_LISTEN?" in unknown.err) == (2, True)


@pytest.mark.promise("P-2")
def test_the_schema_is_printed_without_any_server(tmp_path: Path) -> None:
    done = agentplat("schema", cwd=tmp_path)
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
        return agentplat("user", *arguments, "--database-url", database, "--format", "json", cwd=tmp_path)

    assert user("add", "hosted:ana").answers == [{"person": "hosted:ana", "grants": []}]
    assert user("add", "hosted:ana").status == 2
    assert user("grant", "hosted:ana", "author", "hosted").answers[0]["grants"] == [{"role": "author", "scope": "hosted"}]
    [made] = user("token", "hosted:ana", "--name", "laptop", "--out", "ana.token").answers
    assert (made["name"], made["file"], stat.S_IMODE((tmp_path / "ana.token").stat().st_mode)) == ("laptop", "ana.token", 0o600)
    assert user("token", "hosted:ana", "--name", "other", "--out", "ana.token").status == 2
    file = _write(tmp_path, "a.yaml", manifest("hosted:a", ["x"]))
    publish = ("publish", file, "--server", running.url, "--token-file", "ana.token")
    assert agentplat(*publish, cwd=tmp_path).status == 0
    assert {"person": "hosted:ana", "grants": [{"role": "author", "scope": "hosted"}]} in user("list").answers
    assert user("revoke-token", "hosted:ana", "laptop").status == 0
    assert agentplat(*publish, cwd=tmp_path).status == 2
    assert user("revoke", "hosted:ana", "author", "hosted").answers == [{"person": "hosted:ana", "grants": []}]


@pytest.mark.promise("P-6", "O-7")
def test_up_ends_on_sigterm_and_finds_everything_again(tmp_path: Path) -> None:
    file = _write(tmp_path, "a.yaml", manifest(DEVELOPER, ["code"], ["code"]))
    with up(tmp_path) as first:
        assert _ask(first, "publish", file, cwd=tmp_path).status == 0
        token = Path(first.ready["token_file"]).read_text(encoding="utf-8")
        taken = agentplat("up", "--data-dir", tmp_path / "data", "--listen", "127.0.0.1:0", cwd=tmp_path)
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


@pytest.mark.promise("P-6")
def test_a_graph_service_that_was_killed_is_started_again_and_hears_what_it_missed(tmp_path: Path) -> None:
    with up(tmp_path) as running:
        [child] = psutil.Process(running.process.pid).children()
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
        [replaced] = psutil.Process(running.process.pid).children()
        assert replaced.pid != child.pid
        assert "the graph service ended" in [line.get("event") for line in running.log()]
        assert running.stop() == 0


@pytest.mark.promise("O-5")
@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--listen", "0.0.0.0:0"], "which other machines reach, but nothing is encrypted"),
        (["--listen", "nowhere"], "write HOST:PORT"),
        (["--metrics-listen", "0.0.0.0:0"], "metrics ask for no token"),
        (["--signing-key", "missing.pem"], "signing_key: cannot be read"),
        (["--tls-certificate", "no.pem", "--tls-key", "no.pem"], "tls_certificate: cannot be used"),
        (["--database-url", "mysql://x/y"], "database_url: begins with 'mysql'"),
        (["--graph-ca", "no.pem"], "graph_ca"),
    ],
)
def test_a_server_that_would_leave_a_door_open_or_cannot_work_does_not_start(tmp_path: Path, flags: list[str], told: str) -> None:
    database = f"sqlite:///{tmp_path / 'a.db'}"
    assert agentplat("migrate", "--database-url", database, cwd=tmp_path).status == 0
    _make_key(tmp_path)
    usual = ["--listen", "127.0.0.1:0", "--database-url", database, "--signing-key", "key.pem"]
    done = agentplat("serve", *usual, *flags, cwd=tmp_path)
    assert done.status == 2
    assert told in done.err


def test_a_server_does_not_start_on_a_database_without_the_schema(tmp_path: Path) -> None:
    _make_key(tmp_path)
    done = agentplat("serve", "--database-url", f"sqlite:///{tmp_path / 'a.db'}", "--signing-key", "key.pem", cwd=tmp_path)
    assert (done.status, "run `agentplat migrate` once" in done.err) == (2, True)


def _make_key(folder: Path) -> None:
    from agentplat.signing import make_key  # noqa: PLC0415

    make_key(folder / "key.pem")


@pytest.mark.promise("P-6", "O-2")
def test_a_version_is_stored_and_publish_ends_well_whatever_the_graph_service_does(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'a.db'}"
    agentplat("migrate", "--database-url", database, cwd=tmp_path)
    _make_key(tmp_path)
    for arguments in (["add", "*:root"], ["grant", "*:root", "author", "*"], ["token", "*:root", "--out", "root.token"]):
        assert agentplat("user", *arguments, "--database-url", database, cwd=tmp_path).status == 0
    file = _write(tmp_path, "a.yaml", manifest(DEVELOPER, ["code"]))
    with silent_address() as deaf:
        flags = ["--listen", "127.0.0.1:0", "--database-url", database, "--signing-key", "key.pem", "--graph-target", deaf]
        quick = ["--verify-timeout-s", "0.3", "--check-timeout-s", "0.3", "--call-timeout-s", "0.3"]
        with server("agentplat", "serve", *flags, *quick, errors=tmp_path / "serve.log") as running:
            asked = ("--server", running.url, "--token-file", "root.token")
            done = agentplat("publish", file, *asked, cwd=tmp_path)
            assert done.status == 0
            assert "This version was not verified, because the graph service did not answer." in done.out
            assert agentplat("preview", file, *asked, cwd=tmp_path).status == 4
            assert running.stop() == 0
