"""The harness tells faults that tests notice from faults that they do not, and never judges what it could not run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants.harness import Mutant, MutantFault, Outcome, Verdict, judge, read_mutants
from tests.spec.sample import FILES, write_sample

ARITHMETIC = Path("arithmetic.py")
MUTANTS = [
    Mutant(id="noticed", promise="G-1", file=ARITHMETIC, find="n * 2", replace="n * 3"),
    Mutant(id="not-noticed", promise="P-1", file=ARITHMETIC, find="n * 2", replace="n * 3"),
    Mutant(id="endless", promise="P-2", file=ARITHMETIC, find="n -= 1", replace="pass", timeout_s=5),
    Mutant(id="ambiguous", promise="G-1", file=ARITHMETIC, find="return n", replace="return 0"),
    Mutant(id="without-its-tests", promise="G-1", file=ARITHMETIC, find="n * 2", replace="n * 3", tests=(Path("tests/spec"),)),
]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    sample = write_sample(tmp_path_factory.mktemp("sample") / "project")
    found = {verdict.mutant.id: verdict for verdict in judge(MUTANTS, sample)}
    assert (sample / ARITHMETIC).read_text(encoding="utf-8") == FILES["arithmetic.py"], "the checkout was touched"
    return found


@pytest.mark.parametrize(
    ("name", "outcome", "satisfies"),
    [
        ("noticed", Outcome.KILLED, True),
        ("not-noticed", Outcome.SURVIVED, False),
        ("endless", Outcome.TIMED_OUT, False),
        ("ambiguous", Outcome.UNJUDGED, False),
        ("without-its-tests", Outcome.UNJUDGED, False),
    ],
)
def test_each_kind_of_mutant_gets_its_verdict(verdicts: dict[str, Verdict], name: str, outcome: Outcome, satisfies: bool) -> None:
    verdict = verdicts[name]
    assert (verdict.outcome, verdict.satisfies) == (outcome, satisfies), verdict


def test_running_out_of_time_counts_only_where_the_fault_is_meant_to_be_endless(verdicts: dict[str, Verdict]) -> None:
    endless = verdicts["endless"]
    meant = replace(endless, mutant=endless.mutant.model_copy(update={"timeout_kills": True}))
    assert (endless.satisfies, meant.satisfies) == (False, True)


def test_a_kill_names_the_test_that_failed(verdicts: dict[str, Verdict]) -> None:
    assert verdicts["noticed"].detail == "tests/test_arithmetic.py::test_double"


def test_nothing_is_judged_by_tests_that_fail_already(tmp_path: Path) -> None:
    sample = write_sample(tmp_path / "project")
    (sample / ARITHMETIC).write_text(FILES["arithmetic.py"].replace("n * 2", "n"), encoding="utf-8")
    with pytest.raises(MutantFault, match="do not pass on the unchanged tree"):
        list(judge([MUTANTS[0].model_copy(update={"find": "return n\n"})], sample, workers=1))


def test_tests_that_reach_round_the_copy_to_the_checkout_are_refused(tmp_path: Path) -> None:
    sample = write_sample(tmp_path / "project")
    detour = f"import sys\nsys.path.insert(0, {str(sample)!r})\n" + FILES["tests/test_arithmetic.py"]
    (sample / "tests" / "test_arithmetic.py").write_text(detour, encoding="utf-8")
    with pytest.raises(MutantFault, match="imported from the checkout, not from the copy under test"):
        list(judge(MUTANTS[:1], sample, workers=1))


ENTRY = "- {id: a, promise: G-1, file: a.py, find: x, replace: y}\n"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (ENTRY + ENTRY, "more than once: a"),
        (ENTRY.replace("replace: y", "replace: y, instead: z"), "instead"),
        (ENTRY.replace("find: x", "find: ''"), "find"),
        (ENTRY.replace("find: x, ", ""), "find"),
    ],
)
def test_a_faulty_list_of_mutants_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "mutants.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises((MutantFault, ValueError), match=fault):
        read_mutants(path)
