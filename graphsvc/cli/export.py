"""graphsvc export: the published versions as a file that can be imported again."""

from __future__ import annotations

from typing import Annotated

import typer

from graphsvc.cli.connection import Flags, Server, StoreUrl, Tls, TlsCa, TlsCertificate, TlsKey, TokenFile
from graphsvc.cli.context import composition
from graphsvc.cli.output import COMMAND_LINE, Answered, Format, Output, counted, deliver, tell
from graphsvc.domain.names import parse_scope


def register(app: typer.Typer) -> None:
    """Add the command to an app."""

    @app.command("export")
    def export(
        ctx: typer.Context,
        server: Server = None,
        store: StoreUrl = None,
        scope: Annotated[
            list[str] | None,
            typer.Option(help="Only agents of this scope; several times. [default: all]", metavar="SCOPE", show_default=False),
        ] = None,
        output: Output = None,
        token_file: TokenFile = None,
        tls: Tls = False,
        tls_ca: TlsCa = None,
        tls_certificate: TlsCertificate = None,
        tls_key: TlsKey = None,
        format: Answered = Format.TEXT,  # noqa: A002 - the name of the flag
    ) -> None:
        """Write the published versions, by name, then scope: the same graph gives the same bytes.

        Example: graphsvc export --server 127.0.0.1:50051 --scope acme --output acme.jsonl

        Example: graphsvc export --store sqlite:///graphsvc.db > everything.jsonl
        """
        flags = Flags(
            server=server,
            store=store,
            token_file=token_file,
            tls=tls,
            tls_ca=tls_ca,
            tls_certificate=tls_certificate,
            tls_key=tls_key,
        )
        scopes = [parse_scope(text, "--scope", COMMAND_LINE) for text in scope or []]
        with flags.target(composition(ctx), create=False) as target:
            revision, versions = target.export(scopes)
            exported = deliver(counted(versions, "agents exported", printed=output is None), output)
        answer = {"revision": revision, "exported": exported}
        tell(answer, f"{exported} agents exported at revision {revision}", format, output)
