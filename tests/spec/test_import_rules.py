"""The rule that a package may import only what is listed finds what is not."""

from __future__ import annotations

import pytest
from grimp import ImportGraph

from tests.spec.import_rules import MayImportOnly


def broken_by(imported: str) -> list[str]:
    """What the rule says about a shop whose tills import this."""
    graph = ImportGraph()
    for module in ("shop", "shop.tills", "shop.tills.cash", "shop.words", "shop.cellar"):
        graph.add_module(module)
    for library in ("decimal", "numpy", "numbers_of_mine"):
        graph.add_module(library, is_squashed=True)
    graph.add_import(importer="shop.tills.cash", imported=imported, line_number=3, line_contents="import …")
    options = {"name": "tills", "packages": ["shop.tills"], "allowed": ["shop.words", "numpy"]}
    check = MayImportOnly(name="tills", session_options={}, contract_options=options).check(graph, verbose=False)
    assert check.kept == (not check.metadata["strays"])
    return list(check.metadata["strays"])


@pytest.mark.parametrize("imported", ["decimal", "numpy", "shop.words", "shop.tills"])
def test_the_package_itself_the_standard_library_and_what_is_listed_are_fine(imported: str) -> None:
    assert broken_by(imported) == []


@pytest.mark.parametrize("imported", ["shop.cellar", "shop", "numbers_of_mine"])
def test_anything_else_breaks_the_rule_and_is_named_with_its_line(imported: str) -> None:
    assert broken_by(imported) == [f"shop.tills.cash imports {imported} (line 3)"]
