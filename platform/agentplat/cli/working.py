"""agentplat workspace and agentplat ticket: where people and agents work together, and on what, through the HTTP API."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from agentplat.cli.outcomes import Format, show
from agentplat.cli.publishing import Connect, Form, Server, TokenFile
from agentplat.domain.tickets import PartyKind, Status, TicketRole

WorkspaceId = Annotated[int, typer.Argument(help="The workspace's number.", min=1, max=2**63 - 1, show_default=False)]
TicketNumber = Annotated[int, typer.Argument(help="The number behind the #.", min=1, max=2**31 - 1, show_default=False)]
RoleName = Annotated[TicketRole, typer.Argument(help="The role.", show_default=False)]
Kind = Annotated[PartyKind, typer.Argument(help="agent or person", show_default=False)]
Who = Annotated[str, typer.Argument(help="SCOPE:NAME", show_default=False)]


def register(app: typer.Typer, connect: Connect) -> None:
    """Add the commands to an app."""
    workspaces = typer.Typer(help="Where people and agents work together.", no_args_is_help=True)
    app.add_typer(workspaces, name="workspace")
    _register_workspaces(workspaces, connect)
    tickets = typer.Typer(help="Pieces of work.", no_args_is_help=True)
    app.add_typer(tickets, name="ticket")
    _register_tickets(tickets, connect)
    _register_changes(tickets, connect)


def _register_workspaces(app: typer.Typer, connect: Connect) -> None:
    @app.command("list")
    def list_all(server: Server = None, token_file: TokenFile = None, form: Form = Format.TEXT) -> None:
        """List the workspaces that you may read.

        Example: agentplat workspace list --token-file ana.token
        """
        with connect(server, token_file) as remote:
            for workspace in remote.get("/v1/workspaces", page_size=1_000)["workspaces"]:
                show(workspace, f"{workspace['id']}  {workspace['scope']}  {workspace['name']}", form)

    @app.command()
    def create(
        scope: Annotated[str, typer.Argument(help="'*', acme or acme/platform", show_default=False)],
        name: Annotated[str, typer.Argument(help="What to call it.", show_default=False)],
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Create a workspace of a scope.

        Example: agentplat workspace create acme/platform Platform --token-file ana.token
        """
        with connect(server, token_file) as remote:
            made = remote.post("/v1/workspaces", {"scope": scope, "name": name})
        show(made, f"workspace {made['id']}: {made['name']}", form)

    @app.command("show")
    def show_one(workspace: WorkspaceId, server: Server = None, token_file: TokenFile = None, form: Form = Format.TEXT) -> None:
        """Show a workspace with its agents, members and repositories.

        Example: agentplat workspace show 1 --token-file ana.token
        """
        with connect(server, token_file) as remote:
            found = remote.get(f"/v1/workspaces/{workspace}")
        lines = [f"workspace {found['id']} of {found['scope']}: {found['name']}"]
        lines += [f"member {name}" for name in found["members"]]
        lines += [f"agent {name}" for name in found["agents"]]
        lines += [f"repository {linked['name']}: {linked['path']} on {linked['host']}" for linked in found["repositories"]]
        show(found, "\n".join(lines), form)

    @app.command()
    def link(
        workspace: WorkspaceId,
        name: Annotated[str, typer.Argument(help="What to call it.", show_default=False)],
        path: Annotated[Path, typer.Argument(help="Its folder on the server's host, from / on.", show_default=False)],
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Link a git repository of the server's host; only an admin of the installation does.

        Example: agentplat workspace link 1 website /srv/git/website --token-file admin.token
        """
        with connect(server, token_file) as remote:
            made = remote.post(f"/v1/workspaces/{workspace}/repositories", {"name": name, "path": str(path)})
        show(made, f"linked {made['name']}: {made['path']} on {made['host']}", form)


def ticket_line(ticket: Mapping[str, Any]) -> str:
    """A ticket in one line."""
    return f"#{ticket['number']}  {ticket['status']}  {ticket['title']}"


def _register_tickets(app: typer.Typer, connect: Connect) -> None:
    @app.command("list")
    def list_all(
        workspace: WorkspaceId,
        status: Annotated[Status | None, typer.Option(help="Only those with this status.", show_default=False)] = None,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """List the newest tickets of a workspace.

        Example: agentplat ticket list 1 --status open --token-file ana.token
        """
        chosen = None if status is None else status.value
        with connect(server, token_file) as remote:
            found = remote.get(f"/v1/workspaces/{workspace}/tickets", status=chosen, page_size=1_000)["tickets"]
        for ticket in found:
            show(ticket, ticket_line(ticket), form)

    @app.command()
    def create(
        workspace: WorkspaceId,
        title: Annotated[str, typer.Argument(help="What is to be done, in a line.", show_default=False)],
        description: Annotated[str, typer.Option(help="What there is to know.")] = "",
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Make a ticket.

        Example: agentplat ticket create 1 "Mend the build" --description "It fails on main." --token-file ana.token
        """
        with connect(server, token_file) as remote:
            made = remote.post(f"/v1/workspaces/{workspace}/tickets", {"title": title, "description": description})
        show(made, ticket_line(made), form)

    @app.command("show")
    def show_one(
        workspace: WorkspaceId,
        ticket: TicketNumber,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Show a ticket with who is involved, its comments, and the tickets and runs that belong to it.

        Example: agentplat ticket show 1 12 --token-file ana.token
        """
        with connect(server, token_file) as remote:
            found = remote.get(f"/v1/workspaces/{workspace}/tickets/{ticket}")
        lines = [ticket_line(found), f"version {found['version']}", *filter(None, [found["description"]])]
        lines += [f"{one['role']}: {one['name'] or 'somebody outside your access'}" for one in found["involved"]]
        lines += [f"{one['by']['name'] or 'somebody'}: {one['body']}" for one in found["comments"]]
        lines += _tree(found["children"], "  ")
        lines += [f"run {run['run']} of {run['agent']}: {run['state']}" for run in found["runs"]]
        show(found, "\n".join(lines), form)


def _tree(children: list[dict[str, Any]], indent: str) -> list[str]:
    lines = []
    for child in children:
        by = f"  delegated by {child['by']}" if child["by"] else ""
        lines += [f"{indent}{ticket_line(child)}{by}", *_tree(child["children"], indent + "  ")]
    return lines


def _register_changes(app: typer.Typer, connect: Connect) -> None:
    @app.command()
    def change(
        workspace: WorkspaceId,
        ticket: TicketNumber,
        version: Annotated[int, typer.Option(help="The version that you saw.", min=1, show_default=False)],
        status: Annotated[Status | None, typer.Option(help="The new status.", show_default=False)] = None,
        title: Annotated[str | None, typer.Option(help="The new title.", show_default=False)] = None,
        description: Annotated[str | None, typer.Option(help="The new description.", show_default=False)] = None,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Change a ticket; refused where somebody changed it since you looked.

        Example: agentplat ticket change 1 12 --version 3 --status in_review --token-file ana.token
        """
        body = {"version": version, "title": title, "description": description, "status": status and status.value}
        with connect(server, token_file) as remote:
            after = remote.ask("PATCH", f"/v1/workspaces/{workspace}/tickets/{ticket}", body)
        show(after, f"{ticket_line(after)}  version {after['version']}", form)

    @app.command()
    def comment(
        workspace: WorkspaceId,
        ticket: TicketNumber,
        text: Annotated[str, typer.Argument(help="What to say.", show_default=False)],
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Comment on a ticket.

        Example: agentplat ticket comment 1 12 "It fails on other machines too." --token-file ana.token
        """
        with connect(server, token_file) as remote:
            made = remote.post(f"/v1/workspaces/{workspace}/tickets/{ticket}/comments", {"body": text})
        show(made, f"comment {made['id']} on #{ticket}", form)

    @app.command()
    def involve(
        workspace: WorkspaceId,
        ticket: TicketNumber,
        role: RoleName,
        kind: Kind,
        name: Who,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Record that somebody has a role. It starts nothing: mention an agent in a space to hand it the work.

        Example: agentplat ticket involve 1 12 assignee agent acme/platform:developer --token-file ana.token
        """
        with connect(server, token_file) as remote:
            answer = remote.put(_role_path(workspace, ticket, role, kind, name))
        show(answer, f"{name} is {role.value} of #{ticket}", form)

    @app.command()
    def release(
        workspace: WorkspaceId,
        ticket: TicketNumber,
        role: RoleName,
        kind: Kind,
        name: Who,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Take a role away.

        Example: agentplat ticket release 1 12 reviewer person acme:ana --token-file ana.token
        """
        with connect(server, token_file) as remote:
            answer = remote.ask("DELETE", _role_path(workspace, ticket, role, kind, name), None)
        show(answer, f"{name} is not {role.value} of #{ticket}", form)


def _role_path(workspace: int, ticket: int, role: TicketRole, kind: PartyKind, name: str) -> str:
    return f"/v1/workspaces/{workspace}/tickets/{ticket}/roles/{role.value}/{kind.value}/{quote(name, safe='')}"
