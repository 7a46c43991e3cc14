"""A rule for import-linter: a package may import only what is listed, libraries included."""

from __future__ import annotations

import sys
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class MayImportOnly(Contract):
    """The modules of `packages` import themselves, the standard library and what is `allowed`: modules or libraries.

    import-linter's own contracts name what is forbidden; a new library would slip through such a list.
    """

    # Fields stand in the class and their values in its instances, which types cannot tell.
    packages: Any = fields.ListField(subfield=fields.StringField())
    allowed: Any = fields.ListField(subfield=fields.StringField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002  # import-linter hands it over
        strays = [
            stray
            for package in self.packages
            for module in sorted({package, *graph.find_descendants(package)})
            for stray in self._strays(graph, module, [package, *(self.allowed or [])])
        ]
        return ContractCheck(kept=not strays, metadata={"strays": strays})

    def _strays(self, graph: ImportGraph, module: str, allowed: list[str]) -> list[str]:
        return [
            f"{module} imports {imported} (line {detail['line_number']})"
            for imported in sorted(graph.find_modules_directly_imported_by(module))
            if imported.partition(".")[0] not in sys.stdlib_module_names
            and not any(imported == name or imported.startswith(f"{name}.") for name in allowed)
            for detail in graph.get_import_details(importer=module, imported=imported)
        ]

    def render_broken_contract(self, check: ContractCheck) -> None:
        for stray in check.metadata["strays"]:
            output.print_error(stray)
        output.new_line()
