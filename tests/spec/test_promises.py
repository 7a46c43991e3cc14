"""The manifest of promises, the marks on the tests, the mutants and the page of guarantees say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.mutants.harness import MUTANTS, read_mutants
from tests.spec.guarantees import AREAS, PAGE, render
from tests.spec.manifest import PROMISES, all_marks, marks_in, read_promises

ROOT = Path(__file__).resolve().parents[2]
IN_FORCE = read_promises(ROOT / PROMISES)


def test_every_promise_in_force_is_marked_on_a_test() -> None:
    proved = {mark.promise for mark in all_marks(ROOT / "tests")}
    missing = [name for name in IN_FORCE if name not in proved]
    assert not missing, f"no test carries {' '.join(missing)}"


def test_every_mark_on_a_test_names_a_promise_in_force() -> None:
    assert [f"{mark.place}: {mark.promise}" for mark in all_marks(ROOT / "tests") if mark.promise not in IN_FORCE] == []


def test_every_promise_in_force_has_a_mutant() -> None:
    broken = {mutant.promise for mutant in read_mutants(ROOT / MUTANTS)}
    missing = [name for name in IN_FORCE if name not in broken]
    assert not missing, f"no mutant breaks {' '.join(missing)}"


def test_every_mutant_fits_the_code_and_breaks_a_promise_in_force() -> None:
    mutants = read_mutants(ROOT / MUTANTS)
    assert [mutant.id for mutant in mutants if mutant.promise not in IN_FORCE] == []
    texts = {mutant.file: (ROOT / mutant.file).read_text(encoding="utf-8") for mutant in mutants}
    assert [mutant.id for mutant in mutants if texts[mutant.file].count(mutant.find) != 1] == []
    assert [str(path) for mutant in mutants for path in mutant.tests if not (ROOT / path).exists()] == []


def test_promises_have_well_formed_ids_in_order_and_one_sentence_each() -> None:
    assert [name for name in IN_FORCE if not re.fullmatch(r"[A-Z]-[1-9][0-9]*", name)] == []
    order = [(list(AREAS).index(area), int(number)) for area, _, number in (name.partition("-") for name in IN_FORCE)]
    assert order == sorted(order)
    assert [name for name, sentence in IN_FORCE.items() if not sentence.endswith(".") or "\n" in sentence] == []


def test_the_page_of_guarantees_is_fresh() -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == render(IN_FORCE), "run: make guarantees"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import pytest\n@pytest.mark.promise('G-1', 'G-2')\ndef test_a(): ...", ["G-1", "G-2"]),
        ("from pytest import mark\npytestmark = mark.promise('G-3')", ["G-3"]),
        ("import pytest\ncases = [pytest.param(1, marks=pytest.mark.promise('G-4'))]", ["G-4"]),
        ("text = \"pytest.mark.promise('G-5')\"", []),
        ("import pytest\n@pytest.mark.promise(*world.promises)\ndef test_a(): ...", []),
    ],
)
def test_marks_are_found_where_they_are_written_and_nowhere_else(tmp_path: Path, source: str, found: list[str]) -> None:
    path = tmp_path / "test_it.py"
    path.write_text(source, encoding="utf-8")
    assert [mark.promise for mark in marks_in(path)] == found
