"""graphsvc schema: the JSON Schema of manifests, for editors and checkers."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from graphsvc.cli.output import Format, show
from graphsvc.declarations.manifest import manifest_schema


def register(app: typer.Typer) -> None:
    """Add the command to an app."""

    @app.command("schema")
    def schema(
        format: Annotated[Format, typer.Option(help="json: on one line; text: indented.")] = Format.TEXT,  # noqa: A002 - the name of the flag
    ) -> None:
        """Print the JSON Schema (2020-12) of a manifest.

        Example: graphsvc schema > manifest.schema.json
        """
        show(manifest_schema(), json.dumps(manifest_schema(), ensure_ascii=False, indent=2), format)
