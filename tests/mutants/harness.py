"""Breaks the code on purpose, one place at a time, and demands that the tests of a promise notice.

Each mutant is applied to a copy of the tree, which the tests then import instead of the checkout; the checkout is never touched.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from ruamel.yaml import YAML

MUTANTS = Path("tests/mutants/mutants.yaml")
TESTS_FAILED = 1
"""Exit status of pytest when it ran and a test failed; anything above means that it could not judge."""

NO_TESTS = 5
"""Exit status of pytest when it found no test."""

_NOT_COPIED = shutil.ignore_patterns(
    ".venv", ".git", "__pycache__", ".*_cache", ".hypothesis", ".data", ".benchmarks", "*.egg-info"
)
_GRACE_S = 20.0
UNCHANGED_TIMEOUT_S = 3600.0
PREPARE_TIMEOUT_S = 600.0
COMPILED = (Path("graphsvc/kernels/jit.py"), Path("graphsvc/kernels/rows.py"), Path("graphsvc/audit/shortest.py"))


class MutantFault(Exception):
    """The list of mutants or one of its entries is wrong."""


class Mutant(BaseModel):
    """One small fault in the code.

    find: text that occurs exactly once in the file. replace: what stands there instead. tests: where to look for the promise's
    tests, all of tests/ when empty. timeout_s: most seconds for them. timeout_kills: whether running out of time is the failure
    meant, as it is where the fault makes a search endless.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    promise: str
    file: Path
    find: Annotated[str, Field(min_length=1)]
    replace: str
    tests: tuple[Path, ...] = ()
    timeout_s: Annotated[float, Field(gt=0)] = 300.0
    timeout_kills: bool = False

    def apply(self, tree: Path) -> None:
        """Change the file in a copy of the tree. Raises MutantFault when the text is not there exactly once."""
        path = tree / self.file
        if not path.is_file():
            raise MutantFault(f"{self.file} does not exist")
        text = path.read_text(encoding="utf-8")
        if (count := text.count(self.find)) != 1:
            raise MutantFault(f"the text to find stands {count} times in {self.file}; it must stand there exactly once")
        if self.find == self.replace:
            raise MutantFault("the replacement changes nothing")
        path.write_text(text.replace(self.find, self.replace), encoding="utf-8")


class Outcome(StrEnum):
    """What became of a mutant. UNJUDGED: the tests could not run, or none was chosen."""

    KILLED = "killed"
    SURVIVED = "survived"
    TIMED_OUT = "timed out"
    UNJUDGED = "unjudged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome of one mutant; `detail` is the first failing test, or why there is none, and `output` what pytest printed."""

    mutant: Mutant
    outcome: Outcome
    seconds: float
    detail: str
    output: str = ""

    @property
    def satisfies(self) -> bool:
        """Whether the tests noticed the fault in the way its entry says."""
        return self.outcome is Outcome.KILLED or (self.outcome is Outcome.TIMED_OUT and self.mutant.timeout_kills)


def read_mutants(path: Path) -> list[Mutant]:
    """The mutants of a list. Raises MutantFault for an id given twice, pydantic's ValidationError for a wrong entry."""
    mutants = TypeAdapter(list[Mutant]).validate_python(YAML(typ="safe").load(path.read_text(encoding="utf-8")) or [])
    ids = [mutant.id for mutant in mutants]
    if twice := sorted({name for name in ids if ids.count(name) > 1}):
        raise MutantFault(f"{path}: these ids are given more than once: {', '.join(twice)}")
    return mutants


@dataclass(frozen=True, slots=True)
class _Run:
    """How a run of pytest ended: its exit status, or None when its time ran out, and all that it printed."""

    status: int | None
    output: str


@dataclass(slots=True)
class _Bench:
    """A folder where copies of the tree are tested one after the other, always at the same path.

    Compiled kernels are found again by path, time and size of the file they stand in, so that a copy finds those of the copy
    before it. They do not tell what the file calls: where kernels are changed, none are to be found.
    """

    folder: Path
    checkout: Path
    running: subprocess.Popen[bytes] | None = None
    closed: bool = False

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    def lay(self, source: Path) -> None:
        """Put a fresh copy of a tree here, with the virtual environment and the shared data where its tests look for them."""
        if self.tree.exists():
            shutil.rmtree(self.tree)
        shutil.copytree(source, self.tree, ignore=_NOT_COPIED, symlinks=True)
        for link, real in (
            (self.tree / ".venv", self.checkout / ".venv"),
            (self.folder / "shared", self.checkout.parent / "shared"),
        ):
            if real.exists() and not link.exists():
                link.symlink_to(real)

    def pytest(self, arguments: Sequence[str], timeout_s: float, *, prepare: Sequence[str], compiled: str = "compiled") -> _Run:
        """Run pytest in the copy, after what makes it ready; `compiled` names the folder for compiled kernels."""
        options = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.mutants.guard", "--hypothesis-profile=ci"]
        if prepare:
            self._python(prepare, PREPARE_TIMEOUT_S, compiled)  # where a fault breaks even this, the tests will tell
        return self._python([*options, *arguments], timeout_s, compiled)

    def _python(self, arguments: Sequence[str], timeout_s: float, compiled: str) -> _Run:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(self.tree), str(self.tree / "platform")]),
            "NUMBA_CACHE_DIR": str(self.folder / compiled),
            "MUTANTS_CHECKOUT": str(self.checkout),
        }
        log = self.folder / "output.log"
        if self.closed:
            raise MutantFault("the run was ended")
        with log.open("wb") as out:
            process = self.running = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=self.tree,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                status: int | None = process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                self.clear()
        return _Run(status, log.read_text(encoding="utf-8", errors="replace"))

    def clear(self) -> None:
        """Interrupt what runs here, so that it takes down the servers it started, then end whatever is left of its group."""
        process, self.running = self.running, None  # its number may soon be another one's
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_S)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _choice(mutants: Sequence[Mutant]) -> list[str]:
    """The arguments that choose the tests of these mutants' promises, in the places that they name."""
    promises = [part for promise in sorted({mutant.promise for mutant in mutants}) for part in ("--promise", promise)]
    return [*promises, *sorted({str(path) for mutant in mutants for path in mutant.tests})]


def _judge(mutant: Mutant, pristine: Path, bench: _Bench, prepare: Sequence[str]) -> Verdict:
    began = time.perf_counter()

    def verdict(outcome: Outcome, detail: str, output: str = "") -> Verdict:
        return Verdict(mutant=mutant, outcome=outcome, seconds=time.perf_counter() - began, detail=detail, output=output)

    bench.lay(pristine)
    try:
        mutant.apply(bench.tree)
    except MutantFault as fault:
        return verdict(Outcome.UNJUDGED, str(fault))
    arguments = ["-x", "--numprocesses=0", *_choice([mutant])]
    compiled = f"compiled-{mutant.id}" if mutant.file in COMPILED else "compiled"
    run = bench.pytest(arguments, mutant.timeout_s, prepare=prepare, compiled=compiled)
    if run.status is None:
        return verdict(Outcome.TIMED_OUT, f"after {mutant.timeout_s:g} s", run.output)
    if run.status == 0:
        return verdict(Outcome.SURVIVED, "its tests pass", run.output)
    if run.status != TESTS_FAILED:
        return verdict(Outcome.UNJUDGED, f"pytest ended with status {run.status}", run.output)
    first = re.search(r"^(?:FAILED|ERROR) (\S+)", run.output, re.MULTILINE)
    return verdict(Outcome.KILLED, first.group(1) if first else "", run.output)


def _demand_passing(bench: _Bench, arguments: Sequence[str], prepare: Sequence[str]) -> None:
    unchanged = bench.pytest(arguments, UNCHANGED_TIMEOUT_S, prepare=prepare)
    if unchanged.status not in (0, NO_TESTS):  # where there are none, their mutants stay unjudged
        raise MutantFault(f"the tests do not pass on the unchanged tree (status {unchanged.status}):\n{unchanged.output}")


def judge(mutants: Iterable[Mutant], checkout: Path, *, prepare: Sequence[str] = (), workers: int = 2) -> Iterator[Verdict]:
    """The verdict on each mutant, as they come in. prepare: what Python is to run before the tests, such as a module to compile.

    Raises MutantFault when the promises' tests do not pass on the unchanged tree, as their failure would prove nothing then.
    """
    chosen = list(mutants)
    with TemporaryDirectory(prefix="mutants-") as folder:
        benches = [_Bench(Path(folder) / str(number), checkout) for number in range(workers)]
        # The checkout may be edited meanwhile: every mutant is made from what was tested unchanged.
        pristine = Path(folder) / "pristine"
        shutil.copytree(checkout, pristine, ignore=_NOT_COPIED, symlinks=True)
        benches[0].lay(pristine)
        for group in ([m for m in chosen if m.tests], [m for m in chosen if not m.tests]):
            if group:
                _demand_passing(benches[0], [f"--numprocesses={workers if workers > 1 else 0}", *_choice(group)], prepare)
        free: SimpleQueue[_Bench] = SimpleQueue()
        for bench in benches:
            free.put(bench)

        def next_one(mutant: Mutant) -> Verdict:
            bench = free.get()
            try:
                return _judge(mutant, pristine, bench, prepare)
            finally:
                free.put(bench)

        pool = ThreadPoolExecutor(workers)
        try:
            for done in as_completed([pool.submit(next_one, mutant) for mutant in chosen]):
                yield done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for bench in benches:
                bench.closed = True
                bench.clear()
            pool.shutdown()
