"""graphsvc import: load files of declarations into a graph, all of them or none."""

from __future__ import annotations

from typing import Annotated

import typer

from graphsvc.cli.connection import Flags, Server, StoreUrl, Tls, TlsCa, TlsCertificate, TlsKey, TokenFile
from graphsvc.cli.context import composition
from graphsvc.cli.output import FILES, Answered, Format, counted, show
from graphsvc.declarations.files import read_files


def register(app: typer.Typer) -> None:
    """Add the command to an app."""

    @app.command("import")
    def import_(
        ctx: typer.Context,
        files: Annotated[list[str], typer.Argument(help=FILES, show_default=False)],
        server: Server = None,
        store: StoreUrl = None,
        dry_run: Annotated[bool, typer.Option("--dry-run", help="Only read and check the files.")] = False,
        token_file: TokenFile = None,
        tls: Tls = False,
        tls_ca: TlsCa = None,
        tls_certificate: TlsCertificate = None,
        tls_key: TlsKey = None,
        format: Answered = Format.TEXT,  # noqa: A002 - the name of the flag
    ) -> None:
        """Load files into a graph: all of their agents, or none where anything is wrong.

        An agent without a version number gets its next one, where its content differs from its current version.

        Example: graphsvc import team.jsonl tools.yaml --server 127.0.0.1:50051

        Example: graphsvc import team.parquet --store sqlite:///graphsvc.db
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
        versions = counted(read_files(files), "agents read")
        if dry_run:
            checked = sum(1 for _ in versions)
            show({"checked": checked}, f"{checked} agents are well formed; nothing was stored", format)
            return
        with flags.target(composition(ctx), create=True) as target:
            done = target.import_versions(versions)
        answer = {"revision": done.revision, "created": done.created, "unchanged": done.unchanged}
        show(
            answer, f"{done.created} versions created, {done.unchanged} unchanged; the graph is at revision {done.revision}", format
        )
