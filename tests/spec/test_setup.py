"""What `make setup` installs is what the project uses and pins, and it finds a Python that can do it."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import distributions, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PINS = [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
OURS = {"agentplat", "graphsvc", "tests"}


def declared() -> list[Requirement]:
    """Every library that pyproject.toml names, for running, extras and development."""
    named = [*PROJECT["project"]["dependencies"]]
    for group in (*PROJECT["project"]["optional-dependencies"].values(), *PROJECT["dependency-groups"].values()):
        named += group
    return [Requirement(text) for text in named]


def pinned() -> dict[NormalizedName, str]:
    """Releases by canonical name."""
    return {canonicalize_name(name): release for name, _, release in (line.partition("==") for line in PINS)}


@pytest.mark.promise("O-1")
def test_pins_are_exact_releases_and_nothing_else() -> None:
    assert [line for line in PINS if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line)] == []
    assert len(pinned()) == len(PINS)


@pytest.mark.promise("O-1")
def test_every_library_the_project_names_is_pinned_within_its_range() -> None:
    releases = pinned()
    astray = [str(library) for library in declared() if releases.get(canonicalize_name(library.name), "") not in library.specifier]
    assert astray == [], "run: make pins"


@pytest.mark.promise("O-1")
def test_what_is_installed_with_them_is_pinned_and_is_the_release_pinned() -> None:
    installed = {canonicalize_name(found.name): found for found in distributions()}
    waiting, needed = declared(), set[NormalizedName]()
    while waiting:
        library = waiting.pop()
        found = installed.get(canonicalize_name(library.name))
        if found is None or canonicalize_name(library.name) in needed:
            continue  # libraries for benchmarks only are installed by `make bench`
        needed.add(canonicalize_name(library.name))
        extras = library.extras or {""}
        further = map(Requirement, found.requires or [])
        waiting += [
            entry for entry in further if not entry.marker or any(entry.marker.evaluate({"extra": extra}) for extra in extras)
        ]
    assert {name: installed[name].version for name in needed if pinned().get(name) != installed[name].version} == {}
    assert len(needed) > len(PROJECT["project"]["dependencies"])


@pytest.mark.promise("O-1")
@pytest.mark.parametrize(("folders", "also"), [(["graphsvc", "platform"], []), (["tests", "proto", "examples"], ["dev"])])
def test_every_library_imported_is_named_in_the_project_file(folders: list[str], also: list[str]) -> None:
    texts = [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"]["parquet"]]
    texts += [text for group in also for text in PROJECT["dependency-groups"][group]]
    named = {canonicalize_name(Requirement(text).name) for text in texts}
    suppliers = packages_distributions()
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")) if not path.match("graphsvc/v1/*")]
    unnamed = {
        f"{path.relative_to(ROOT)}: {library}"
        for path in files
        for library in _libraries(path)
        if not named & {canonicalize_name(supplier) for supplier in suppliers.get(library, [])}
    }
    assert sorted(unnamed) == []


def _libraries(path: Path) -> set[str]:
    imported: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                imported |= {alias.name.partition(".")[0] for alias in names}
            case ast.ImportFrom(module=str(module), level=0):
                imported.add(module.partition(".")[0])
    return imported - OURS - set(sys.stdlib_module_names)


def find_python(*arguments: str, path: str) -> subprocess.CompletedProcess[str]:
    """Run the script that chooses the interpreter, with programs looked for in `path` only."""
    command = ["/bin/sh", str(ROOT / ".ci" / "python"), *arguments]
    return subprocess.run(command, env={"PATH": path}, capture_output=True, text=True, timeout=60)


def write_program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.mark.promise("O-1")
def test_setup_passes_over_a_python_that_does_not_run_or_is_too_old(tmp_path: Path) -> None:
    write_program(tmp_path / "python3.11", 'echo "python3.11: not installed" >&2; exit 127')
    write_program(tmp_path / "python3", f'exec "{sys.executable}" "$@"')
    found = find_python(path=str(tmp_path))
    assert (found.returncode, found.stdout.strip()) == (0, "python3"), found.stderr


@pytest.mark.promise("O-1")
def test_setup_says_what_is_missing_where_there_is_no_python(tmp_path: Path) -> None:
    write_program(
        tmp_path / "python3", f'exec "{sys.executable}" -c "import sys; sys.version_info = (3, 10); exec(sys.argv[1])" "$2"'
    )
    found = find_python(path=str(tmp_path))
    assert (found.returncode, found.stdout) == (1, "")
    assert "No Python 3.11 or newer" in found.stderr
    assert "make setup PYTHON=" in found.stderr


@pytest.mark.promise("O-1")
def test_ci_runs_the_command_that_people_run() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert [line for line in script.read_text(encoding="utf-8").splitlines() if line.startswith("make")] == ["make test </dev/null"]
