"""graphsvc generate: made catalogues for trying things out and for load tests."""

from __future__ import annotations

from typing import Annotated

import typer

from graphsvc.cli.output import Answered, Format, Output, counted, deliver, tell
from graphsvc.declarations.generator import MAX_AGENTS, Shape, generate


def register(app: typer.Typer) -> None:
    """Add the command to an app."""

    @app.command("generate")
    def generate_(
        shape: Annotated[Shape, typer.Option(help="How agents and events hang together.", show_default=False)],
        agents: Annotated[int, typer.Option(help="How many agents.", min=2, max=MAX_AGENTS)] = 1_000,
        seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.", min=0, max=2**63 - 1)] = 0,
        output: Output = None,
        format: Answered = Format.TEXT,  # noqa: A002 - the name of the flag
    ) -> None:
        """Write a made catalogue.

        Shapes: pipelines are short chains, some with a step back; hubs share one event among up to 200 000 agents; giant is one
        large component of loops; in layered, layer feeds layer; in tenant, companies share a few events; ring is one loop of all
        agents; in diamonds, many ways lead to one dead end.

        Example: graphsvc generate --shape giant --agents 100000 --seed 7 --output giant.jsonl
        """
        written = deliver(counted(generate(shape, agents, seed).versions(), "agents written", printed=output is None), output)
        tell({"shape": shape.value, "seed": seed, "written": written}, f"{written} agents written", format, output)
