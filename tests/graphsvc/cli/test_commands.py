"""What every command has in common, and the small ones."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from graphsvc.__main__ import COMMANDS
from graphsvc.cli.output import DEBUG_VARIABLE, Exit, end, printable
from graphsvc.client import ServiceFault
from graphsvc.declarations.files import read_files
from graphsvc.declarations.generator import Shape, generate
from graphsvc.domain.errors import (
    AccessDenied,
    DeadlinePassed,
    GraphError,
    InvalidInput,
    LogDamaged,
    Overloaded,
    RevisionAhead,
    StaleVersion,
    StoreUnavailable,
    Unauthenticated,
    UnknownAgent,
    VersionConflict,
    Violation,
)
from graphsvc.rpc.status import Unanswered
from tests.graphsvc.cli.running import run

ROOT = Path(__file__).parents[3]
TEAM = str(ROOT / "tests" / "golden" / "team.jsonl")
PATIENCE_S = 180


@pytest.mark.promise("O-2")
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example_and_json_output(command: str) -> None:
    ended = run(command, "--help")
    assert (ended.status, ended.stderr) == (0, "")
    assert f"Example: graphsvc {command}" in ended.stdout
    assert "--format" in ended.stdout
    assert "json" in ended.stdout


@pytest.mark.promise("O-2")
def test_the_help_lists_every_command() -> None:
    assert all(command in run("--help").stdout for command in COMMANDS)


FAULT = InvalidInput(
    [Violation(field="a", place="f:1", reason="is b", remedy="write c"), Violation(field="d", reason="e", remedy="f")]
)

ENDINGS = [
    (FAULT, Exit.WRONG),
    (VersionConflict("a", 1), Exit.WRONG),
    (StaleVersion("a", 1, 2), Exit.WRONG),
    (RevisionAhead(2, 1), Exit.WRONG),
    (UnknownAgent(), Exit.WRONG),
    (Unauthenticated("no token"), Exit.WRONG),
    (AccessDenied("no grant"), Exit.WRONG),
    (Unanswered("nobody there"), Exit.NO_ANSWER),
    (StoreUnavailable(), Exit.NO_ANSWER),
    (DeadlinePassed("too late"), Exit.NO_ANSWER),
    (Overloaded("too much"), Exit.NO_ANSWER),
    (LogDamaged("a gap"), Exit.FAULT),
    (ServiceFault("incident 7"), Exit.FAULT),
    (KeyError("inner"), Exit.FAULT),
]


@pytest.mark.promise("O-2")
@pytest.mark.parametrize(("error", "status"), ENDINGS, ids=lambda value: type(value).__name__)
def test_an_error_has_its_exit_status_and_a_line_on_standard_error(
    error: Exception, status: Exit, capsys: pytest.CaptureFixture[str]
) -> None:
    assert end(error) is status
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Traceback" not in printed.err
    assert printed.err.endswith("\n")


@pytest.mark.promise("O-2")
def test_every_refusal_has_an_exit_status_that_was_thought_of() -> None:
    assert set(GraphError.__subclasses__()) <= {type(error) for error, _ in ENDINGS}


@pytest.mark.promise("G-24")
def test_violations_are_told_one_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    end(FAULT)
    assert capsys.readouterr().err == "f:1: a: is b; write c\nd: e; f\n"


@pytest.mark.promise("O-2")
def test_a_fault_of_ours_shows_where_it_happened_only_when_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    end(KeyError("inner"))
    quiet = capsys.readouterr().err
    assert quiet == f"error: a fault of ours (KeyError); set {DEBUG_VARIABLE}=1 to see where it happened, and report it\n"
    monkeypatch.setenv(DEBUG_VARIABLE, "1")
    end(KeyError("inner"))
    assert capsys.readouterr().err.startswith("KeyError: 'inner'\n")


def all_of(terminal: int) -> str:
    """What is written to a terminal until its other side is closed."""
    shown = b""
    with contextlib.suppress(OSError):  # how Linux says that the other side is closed
        while piece := os.read(terminal, 4_096):
            shown += piece
    return shown.decode()


@pytest.mark.promise("O-2")
def test_progress_is_shown_on_a_terminal_and_leaves_standard_output_alone() -> None:
    arguments = ("check", TEAM, "--every-agent", "--format", "jsonl")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": str(ROOT)}
    with (
        ThreadPoolExecutor() as readers,
        subprocess.Popen(
            [sys.executable, "-m", "graphsvc", *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=theirs, env=environment
        ) as process,
    ):
        os.close(theirs)
        reading = readers.submit(all_of, ours)
        stdout, _ = process.communicate(timeout=PATIENCE_S)
        shown = reading.result(PATIENCE_S)
    os.close(ours)
    assert (process.returncode, stdout.decode()) == (0, run(*arguments).stdout)
    assert "agents read" in shown
    assert "agents checked" in shown


def test_what_is_shown_cannot_steer_a_terminal() -> None:
    assert printable("a\x1b[2J\n\u202e\ud800b שלום") == "a\\x1b[2J\\n\\u202e\\ud800b שלום"
    assert len(printable("x" * 10_000)) < 1_000


@pytest.mark.promise("P-2")
def test_the_schema_of_a_manifest_is_published() -> None:
    for arguments in ((), ("--format", "json")):
        ended = run("schema", *arguments)
        assert ended.status == 0
        Draft202012Validator.check_schema(json.loads(ended.stdout))
    assert len(run("schema", "--format", "json").stdout.splitlines()) == 1


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_a_made_catalogue_is_written_to_a_file(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"ring{ending}"
    ended = run("generate", "--shape", "ring", "--agents", "12", "--seed", "3", "--output", str(file), "--format", "json")
    assert json.loads(ended.stdout) == {"shape": "ring", "seed": 3, "written": 12}
    assert list(read_files([str(file)])) == list(generate(Shape.RING, 12, 3).versions())


def test_a_made_catalogue_is_printed_without_a_file() -> None:
    first, second = (run("generate", "--shape", "giant", "--agents", "50") for _ in range(2))
    assert first == second
    assert len(first.stdout.splitlines()) == 50
    assert first.stderr == "50 agents written\n"
    checked = run("check", "-", "--every-agent", "--fail-on", "loop", stdin=first.stdout.encode())
    assert checked.status == 1
