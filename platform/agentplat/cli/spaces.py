"""agentplat space: conversations in which work is handed to agents, through the HTTP API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

import typer

from agentplat.cli.outcomes import Format, show
from agentplat.cli.publishing import Connect, Form, Server, TokenFile
from agentplat.cli.working import Who, WorkspaceId
from agentplat.domain.autonomy import Autonomy
from agentplat.domain.modes import Mode

SpaceId = Annotated[int, typer.Argument(help="The space's number.", min=1, max=2**63 - 1, show_default=False)]
ModeName = Annotated[Mode, typer.Argument(help="chat, plan or orchestrate", show_default=False)]


def register(app: typer.Typer, connect: Connect) -> None:
    """Add the commands to an app."""
    spaces = typer.Typer(help="Conversations in which work is handed to agents.", no_args_is_help=True)
    app.add_typer(spaces, name="space")
    _register_making(spaces, connect)
    _register_settings(spaces, connect)
    _register_talking(spaces, connect)


def _path(workspace: int, space: int, *more: str) -> str:
    return "/".join((f"/v1/workspaces/{workspace}/spaces/{space}", *(quote(part, safe="") for part in more)))


def _line(space: Mapping[str, Any]) -> str:
    return f"{space['id']}  {space['mode']}  {space['name']}"


def _register_making(app: typer.Typer, connect: Connect) -> None:
    @app.command("list")
    def list_all(workspace: WorkspaceId, server: Server = None, token_file: TokenFile = None, form: Form = Format.TEXT) -> None:
        """List the spaces of a workspace.

        Example: agentplat space list 1 --token-file ana.token
        """
        with connect(server, token_file) as remote:
            for space in remote.get(f"/v1/workspaces/{workspace}/spaces", page_size=1_000)["spaces"]:
                show(space, _line(space), form)

    @app.command()
    def create(
        workspace: WorkspaceId,
        name: Annotated[str, typer.Argument(help="What to call it.", show_default=False)],
        mode: Annotated[Mode, typer.Option(help="chat, plan or orchestrate")] = Mode.CHAT,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Create a space.

        Example: agentplat space create 1 "Spring release" --mode plan --token-file ana.token
        """
        with connect(server, token_file) as remote:
            made = remote.post(f"/v1/workspaces/{workspace}/spaces", {"name": name, "mode": mode.value})
        show(made, _line(made), form)

    @app.command()
    def review(
        workspace: WorkspaceId,
        pull_request: Annotated[str, typer.Argument(help="How you refer to it.", show_default=False)],
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Create the space in which a pull request is reviewed.

        Example: agentplat space review 1 website#42 --token-file ana.token
        """
        with connect(server, token_file) as remote:
            made = remote.post(f"/v1/workspaces/{workspace}/review-spaces", {"pull_request": pull_request})
        show(made, _line(made), form)

    @app.command("show")
    def show_one(
        workspace: WorkspaceId, space: SpaceId, server: Server = None, token_file: TokenFile = None, form: Form = Format.TEXT
    ) -> None:
        """Show a space with who takes part, its runs and its work trees.

        Example: agentplat space show 1 3 --token-file ana.token
        """
        with connect(server, token_file) as remote:
            found = remote.get(_path(workspace, space))
        lines = [_line(found)]
        lines += [f"participant {one['agent']} ({one['autonomy']})" for one in found["participants"]]
        lines += [f"run {run['run']} of {run['agent']}: {run['state']}" for run in found["runs"]]
        lines += [f"work tree {tree['path']} on {tree['host']}, branch {tree['branch']}" for tree in found["work_trees"]]
        show(found, "\n".join(lines), form)

    @app.command()
    def remove(
        workspace: WorkspaceId, space: SpaceId, server: Server = None, token_file: TokenFile = None, form: Form = Format.TEXT
    ) -> None:
        """Remove a space and its work trees. Commits that are nowhere else stay on their branch.

        Example: agentplat space remove 1 3 --token-file ana.token
        """
        with connect(server, token_file) as remote:
            answer = remote.ask("DELETE", _path(workspace, space), None)
        kept = f"; these branches stay: {', '.join(answer['branches'])}" if answer["branches"] else ""
        show(answer, f"space {space} is removed{kept}", form)


def _register_settings(app: typer.Typer, connect: Connect) -> None:
    @app.command()
    def mode(
        workspace: WorkspaceId,
        space: SpaceId,
        mode: ModeName,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Choose the mode from the next message on.

        Example: agentplat space mode 1 3 plan --token-file ana.token
        """
        with connect(server, token_file) as remote:
            after = remote.put(_path(workspace, space, "mode"), {"mode": mode.value})
        show(after, _line(after), form)

    @app.command()
    def add(
        workspace: WorkspaceId,
        space: SpaceId,
        agent: Who,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Let an agent take part, so that other participants may mention it.

        Example: agentplat space add 1 3 acme/platform:reviewer --token-file ana.token
        """
        with connect(server, token_file) as remote:
            answer = remote.put(_path(workspace, space, "participants", agent))
        show(answer, f"{agent} takes part", form)

    @app.command()
    def drop(
        workspace: WorkspaceId,
        space: SpaceId,
        agent: Who,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Let an agent take part no longer.

        Example: agentplat space drop 1 3 acme/platform:reviewer --token-file ana.token
        """
        with connect(server, token_file) as remote:
            answer = remote.ask("DELETE", _path(workspace, space, "participants", agent), None)
        show(answer, f"{agent} takes no part", form)

    @app.command()
    def autonomy(
        workspace: WorkspaceId,
        space: SpaceId,
        agent: Who,
        level: Annotated[Autonomy, typer.Argument(help="How far it acts by itself.", show_default=False)],
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Set how far an agent acts by itself in the space.

        Example: agentplat space autonomy 1 3 acme/platform:reviewer proposeOnly --token-file admin.token
        """
        with connect(server, token_file) as remote:
            answer = remote.put(_path(workspace, space, "autonomy", agent), {"level": level.value})
        show(answer, f"{agent}: {level.value}", form)


def _said(message: Mapping[str, Any]) -> str:
    lines = [f"{message['id']}  {message['by']['name'] or 'somebody'}  {message['kind']}: {message['body']}"]
    lines += [
        f"    {mention['name'] or 'somebody'}: {mention['outcome']}"
        + (f", run {mention['run']}" if mention["run"] else "")
        + (f", {mention['reason']}" if mention["reason"] else "")
        for mention in message["mentions"]
    ]
    return "\n".join(lines)


def _register_talking(app: typer.Typer, connect: Connect) -> None:
    @app.command()
    def say(
        workspace: WorkspaceId,
        space: SpaceId,
        text: Annotated[str, typer.Argument(help="@name mentions somebody, #12 refers to a ticket.", show_default=False)],
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Say something. An agent that you mention takes the work up.

        Example: agentplat space say 1 3 "@developer please mend #12" --token-file ana.token
        """
        with connect(server, token_file) as remote:
            message = remote.post(_path(workspace, space, "messages"), {"body": text})
        show(message, _said(message), form)

    @app.command()
    def read(
        workspace: WorkspaceId,
        space: SpaceId,
        after: Annotated[int, typer.Option(help="The last message that you know.", min=0, max=2**63 - 1)] = 0,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Read what was said, oldest first.

        Example: agentplat space read 1 3 --after 40 --token-file ana.token
        """
        with connect(server, token_file) as remote:
            while messages := (page := remote.get(_path(workspace, space, "messages"), after=after, page_size=500))["messages"]:
                for message in messages:
                    show(message, _said(message), form)
                after = page["next"]
