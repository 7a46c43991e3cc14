"""The command: its sources, its ends, its baselines, and going on where an audit was interrupted."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from structlog.testing import capture_logs

from graphsvc.audit import local
from graphsvc.audit.shortest import Found
from graphsvc.declarations.files import read_files, write_file
from graphsvc.declarations.generator import Shape, generate
from tests.graphsvc.cli.running import Ended, run
from tests.graphsvc.rpc.serving import serving

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden"
TEAM = str(GOLDEN / "team.jsonl")
PATIENCE_S = 180
ACCEPT = ("--owner", "platform team", "--reason", "meant", "--expires", "2027-01-31")


def audit(*arguments: str, stdin: bytes = b"") -> Ended:
    return run("audit", *arguments, stdin=stdin)


@pytest.fixture(autouse=True)
def _server_logs_apart() -> Iterator[None]:
    with capture_logs():
        yield


@pytest.mark.promise("O-9", "O-10")
def test_files_are_audited_as_the_golden_answer_says() -> None:
    ended = audit(TEAM)
    assert (ended.status, ended.stderr) == (0, "")
    assert ended.stdout == (GOLDEN / "audit-everything.text").read_text(encoding="utf-8")


@pytest.mark.promise("O-9")
def test_files_a_store_and_a_service_give_the_same_findings(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'graph.db'}"
    assert run("import", TEAM, "--store", url).status == 0
    for flags in ((), ("--reader", "acme"), ("--scope", "globex"), ("--max-length", "5"), ("--max-visits", "3")):
        lines = [audit(*source, *flags, "--format", "jsonl") for source in ((TEAM,), ("--url", url), ("--store", url))]
        with serving(versions=tuple(read_files([TEAM]))) as running:
            lines.append(audit("--server", running.address, *flags, "--format", "jsonl"))
        assert {ended.stderr for ended in lines} == {""}
        assert {ended.status for ended in lines} == {3 if "--max-visits" in flags else 0}
        assert len({ended.stdout.partition("\n")[2] for ended in lines}) == 1
        headings = [json.loads(ended.stdout.partition("\n")[0])["audit"] for ended in lines]
        revision = len(list(read_files([TEAM])))
        assert [heading.pop("revision") for heading in headings] == [None, revision, revision, revision]
        assert all(heading == headings[0] for heading in headings)


@pytest.mark.promise("O-2", "O-9")
@pytest.mark.parametrize(
    ("record", "level"),
    [
        ('{"agent": "a", "emits": ["x"], "listens": ["y"]}\n{"agent": "b", "emits": ["y"], "listens": ["x"]}', "loop"),
        ('{"agent": "a", "emits": ["x"], "listens": ["x"]}', "self"),
        ('{"agent": "a", "emits": ["x"]}', "notice"),
        ('{"agent": "a", "listens": ["x"]}', "notice"),
        ('{"agent": "a"}', None),
    ],
)
def test_the_exit_status_tells_the_least_finding_that_counts(record: str, level: str | None) -> None:
    levels = ["loop", "self", "notice"]
    for i, fail_on in enumerate(levels):
        ended = audit("-", "--fail-on", fail_on, stdin=record.encode())
        assert ended.status == int(level in levels[: i + 1])
    assert audit("-", stdin=record.encode()).status == 0


@pytest.mark.promise("O-2", "O-9")
def test_a_search_cut_short_goes_before_findings_and_no_baseline_accepts_it(tmp_path: Path) -> None:
    baseline = str(tmp_path / "baseline.json")
    assert audit(TEAM, "--fail-on", "loop", "--max-visits", "0").status == 3
    assert audit(TEAM, "--max-visits", "0", "--write-baseline", baseline, *ACCEPT).status == 3
    assert audit(TEAM, "--baseline", baseline, "--as-of", "2027-01-01", "--max-visits", "0", "--fail-on", "notice").status == 3


@pytest.mark.promise("O-9")
def test_a_baseline_takes_what_is_there_and_tells_what_is_new_gone_or_out_of_date(tmp_path: Path) -> None:
    baseline = str(tmp_path / "baseline.json")
    written = audit(TEAM, "--write-baseline", baseline, *ACCEPT)
    assert written.stderr == f"baseline: 16 findings accepted in {baseline}\n"
    on_the_day = ("--baseline", baseline, "--fail-on", "notice", "--as-of", "2027-01-31")
    ended = audit(TEAM, *on_the_day)
    assert (ended.status, ended.stdout, ended.stderr) == (0, "no findings; 19 accepted in the baseline\n", "")
    new = audit(TEAM, "-", *on_the_day, stdin=b'{"agent": "newcomer", "emits": ["nobody.hears"]}\n')
    assert (new.status, new.stdout.count("\n"), new.stderr) == (1, 2, "")
    gone = audit("-", *on_the_day, stdin=b'{"agent": "newcomer"}\n')
    assert (gone.status, gone.stderr) == (0, "baseline: 16 entries are not found any more; they can be taken out\n")
    late = audit(TEAM, *on_the_day[:-1], "2027-02-01")
    assert late.status == 1
    assert late.stderr.count(" of platform team counted until 2027-01-31") == 16
    # A new baseline keeps who stood for what before.
    again = str(tmp_path / "again.json")
    audit(TEAM, *on_the_day, "--write-baseline", again, "--owner", "x", "--reason", "y", "--expires", "2028-01-01")
    assert Path(again).read_bytes() == Path(baseline).read_bytes()


@pytest.mark.promise("O-2")
@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ((), "FILES"),
        ((TEAM, "--url", "sqlite:///x.db"), "FILES"),
        ((TEAM, "--server", "127.0.0.1:1"), "FILES"),
        (("--url", "sqlite:///x.db", "--server", "127.0.0.1:1"), "FILES"),
        (("--url", "sqlite:///x.db"), "store"),
        ((TEAM, "--tls"), "--tls"),
        (("--url", "sqlite:///x.db", "--token-file", "x"), "--token-file"),
        (("--server", "127.0.0.1:1", "--resume", "parts"), "--resume"),
        ((TEAM, "--reader", "a/b/c"), "--reader.area"),
        ((TEAM, "--scope", ""), "--scope.company"),
        ((TEAM, "--owner", "me"), "--owner"),
        ((TEAM, "--expires", "2027-01-31"), "--expires"),
        ((TEAM, "--write-baseline", "b.json"), "--owner"),
        ((TEAM, "--write-baseline", "b.json", *ACCEPT[:-1], "tomorrow"), "--expires"),
        ((TEAM, "--as-of", "yesterday"), "--as-of"),
        ((TEAM, "--baseline", "nowhere.json"), "baseline"),
        (("nowhere.jsonl",), "file"),
        ((TEAM, "--resume", TEAM), "--resume"),
    ],
)
def test_wrong_use_is_refused_with_its_flag_and_nothing_is_printed(
    arguments: tuple[str, ...], field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for form in ("text", "json", "sarif"):
        ended = audit(*arguments, "--format", form)
        assert (ended.status, ended.stdout) == (2, "")
        assert f"{field}: " in ended.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.promise("O-2")
def test_bad_input_is_told_before_anything_is_printed() -> None:
    ended = audit("-", "--format", "json", stdin=b'{"agent": "a"}\n{"agent": "a"}\n')
    assert (ended.status, ended.stdout) == (2, "")
    assert "is given already" in ended.stderr


@pytest.mark.promise("O-2")
def test_a_service_that_is_not_there_ends_with_4() -> None:
    ended = audit("--server", "127.0.0.1:1")
    assert (ended.status, ended.stdout) == (4, "")


@pytest.mark.promise("O-9")
def test_an_interrupted_audit_goes_on_from_the_parts_that_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, parts = str(tmp_path / "giant.jsonl"), tmp_path / "parts"
    write_file(file, generate(Shape.GIANT, 400, 2).versions())
    monkeypatch.setattr(local, "PART_AGENTS", 50)
    whole = audit(file, "--format", "json").stdout
    searched: list[int] = []
    calls = count(1)
    search = local.shortest_loops

    def counting(*arguments: object) -> Found:
        searched.append(call := next(calls))
        if call == 3:
            raise MemoryError
        return search(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(local, "shortest_loops", counting)
    assert audit(file, "--resume", str(parts)).status == 70
    kept = list(parts.rglob("*.npz"))
    assert kept
    # A part that was not written whole is none, and neither is what another audit kept.
    kept[0].write_bytes(kept[0].read_bytes()[:100])
    searched.clear()
    ended = audit(file, "--resume", str(parts), "--format", "json")
    assert (ended.status, ended.stdout) == (0, whole)
    chunks = len(list(parts.rglob("*.npz")))
    assert len(searched) == chunks - len(kept) + 1
    audit(file, "--resume", str(parts), "--format", "json")
    assert len(searched) == chunks - len(kept) + 1, "nothing is searched twice"
    audit(file, "--resume", str(parts), "--reader", "company-1")
    audit(file, "--resume", str(parts), "--max-length", "5")
    assert len(list(parts.iterdir())) == 3
    assert not list(parts.rglob("*.partial"))
    with np.load(sorted(parts.rglob("*.npz"))[0], allow_pickle=False) as part:
        assert set(part) == {"lengths", "ends", "loops"}


@pytest.mark.promise("O-9")
def test_a_terminal_sees_how_far_the_audit_is_and_the_answer_stays_clean() -> None:
    def all_of(descriptor: int) -> str:
        shown = b""
        with suppress(OSError):  # a pseudo-terminal whose other end is closed
            while chunk := os.read(descriptor, 65_536):
                shown += chunk
        return shown.decode()

    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": str(ROOT)}
    with (
        ThreadPoolExecutor() as readers,
        subprocess.Popen(
            [sys.executable, "-m", "graphsvc", "audit", TEAM], cwd=ROOT, stdout=subprocess.PIPE, stderr=theirs, env=environment
        ) as process,
    ):
        os.close(theirs)
        reading = readers.submit(all_of, ours)
        stdout, _ = process.communicate(timeout=PATIENCE_S)
        shown = reading.result(PATIENCE_S)
    os.close(ours)
    assert (process.returncode, stdout.decode()) == (0, (GOLDEN / "audit-everything.text").read_text(encoding="utf-8"))
    assert "looking at events" in shown
