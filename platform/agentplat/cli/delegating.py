"""agentplat delegation: handing work on to agents, and the tree that comes of it, through the HTTP API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from agentplat.cli.outcomes import Format, show
from agentplat.cli.publishing import Connect, Form, Server, TokenFile
from agentplat.cli.runs import schema_of
from agentplat.cli.working import TicketNumber, WorkspaceId

_HIDDEN = "an agent outside your access"
_MARGIN = "  "


def _node_lines(node: Mapping[str, Any], margin: str) -> Iterator[str]:
    by = f", delegated by {node['delegated_by'] or _HIDDEN}" if node["delegated"] else ""
    yield f"{margin}#{node['ticket']} {node['title']} ({node['status']}): {node['assignee'] or 'nobody that you may see'}{by}"
    for run in node["runs"]:
        which = "a run outside your access" if run["run"] is None else f"run {run['run']} of {run['agent']}"
        yield f"{margin}{_MARGIN}{which}: {run['state']}"
        yield from (f"{margin}{_MARGIN}{_MARGIN}{reason}" for reason in run["refusals"])
    for child in node["children"]:
        yield from _node_lines(child, margin + _MARGIN)
    if node["more"]:
        yield f"{margin}{_MARGIN}and more; look at those tickets on their own"


def register(app: typer.Typer, connect: Connect) -> None:
    """Add the commands to an app."""
    delegation = typer.Typer(help="Hands work on to agents, and shows what was handed on.", no_args_is_help=True)
    app.add_typer(delegation, name="delegation")

    @delegation.command()
    def start(
        workspace: WorkspaceId,
        agent: Annotated[str, typer.Argument(help="SCOPE:NAME, or a name that one agent has.", show_default=False)],
        title: Annotated[str, typer.Argument(help="What is to be done, in one line.", show_default=False)],
        space: Annotated[int, typer.Option(help="The space to work in.", min=1, show_default=False)],
        description: Annotated[str, typer.Option(help="All that the agent needs to know.")] = "",
        parent: Annotated[int | None, typer.Option(help="The ticket that it is part of.", min=1, show_default=False)] = None,
        output_schema: Annotated[Path | None, typer.Option(help="File with its JSON Schema.", show_default=False)] = None,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Make a ticket for an agent and start its run on it.

        Example: agentplat delegation start 1 developer 'Find the cause' --space 1 --token-file ana.token
        """
        given: dict[str, Any] = {"agent": agent, "title": title, "space_id": space, "description": description}
        given["parent_ticket_id"] = parent
        given["expected_output_schema"] = None if output_schema is None else schema_of(output_schema)
        with connect(server, token_file) as remote:
            made = remote.post(f"/v1/workspaces/{workspace}/tickets:delegate", given)
        show(made, f"#{made['ticket']} is delegated to {made['agent']}, which works on it in run {made['run']}", form)

    @delegation.command()
    def tree(
        workspace: WorkspaceId, number: TicketNumber, server: Server = None, token_file: TokenFile = None, form: Form = Format.TEXT
    ) -> None:
        """Show what was delegated from a ticket, and why delegations were refused.

        Example: agentplat delegation tree 1 12 --token-file ana.token
        """
        with connect(server, token_file) as remote:
            found = remote.get(f"/v1/workspaces/{workspace}/tickets/{number}/tree")
        show(found, "\n".join(_node_lines(found, "")), form)
