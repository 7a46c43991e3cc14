"""graphsvc import: load files of declarations into a graph, in portions that are stored all or none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Annotated

import typer

from graphsvc.cli.connection import Flags, Server, StoreUrl, Target, Tls, TlsCa, TlsCertificate, TlsKey, TokenFile
from graphsvc.cli.context import composition
from graphsvc.cli.output import FILES, Answered, Format, counted, say, show
from graphsvc.collecting import uncollected
from graphsvc.columns import Columns
from graphsvc.declarations.bulk import read_columns
from graphsvc.declarations.files import STANDARD_INPUT
from graphsvc.declarations.portions import portions
from graphsvc.domain.answers import Imported

DEFAULT_AT_ONCE = 50_000
MOST_AT_ONCE = 1_000_000


def register(app: typer.Typer) -> None:
    """Add the command to an app."""

    @app.command("import")
    def import_(
        ctx: typer.Context,
        files: Annotated[list[str], typer.Argument(help=FILES, show_default=False)],
        server: Server = None,
        store: StoreUrl = None,
        at_once: Annotated[int, typer.Option(help="Most agents stored in one step.", min=1, max=MOST_AT_ONCE)] = DEFAULT_AT_ONCE,
        dry_run: Annotated[bool, typer.Option("--dry-run", help="Only read and check the files.")] = False,
        token_file: TokenFile = None,
        tls: Tls = False,
        tls_ca: TlsCa = None,
        tls_certificate: TlsCertificate = None,
        tls_key: TlsKey = None,
        format: Answered = Format.TEXT,  # noqa: A002 - the name of the flag
    ) -> None:
        """Load files into a graph: all of their agents, or none where anything is wrong with the files.

        An agent without a version number gets its next one, where its content differs from its current version.

        More agents than --at-once are stored in several steps, each whole and durable. What was interrupted goes on when the
        command is typed again: what is stored already is passed over.

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
        if not dry_run:
            flags.check()
        checked, held = _read(files, at_once)
        if dry_run:
            show({"checked": checked}, f"{checked} agents are well formed; nothing was stored", format)
            return
        with uncollected(), flags.target(composition(ctx), create=True) as target:
            done = _store(target, portions(held or read_columns(files), at_once), checked)
        answer = {"revision": done.revision, "created": done.created, "unchanged": done.unchanged}
        show(
            answer, f"{done.created} versions created, {done.unchanged} unchanged; the graph is at revision {done.revision}", format
        )


def _read(files: Sequence[str], at_once: int) -> tuple[int, list[Columns]]:
    """How many agents the files have, all well formed. They come along themselves where they are few, or where something can
    not be read twice, as standard input or a pipe."""
    checked, held = 0, []
    once = any(path == STANDARD_INPUT or not Path(path).is_file() for path in files)
    for columns in counted(read_columns(files), "agents read", size=attrgetter("size")):
        checked += columns.size
        if checked <= at_once or once:
            held.append(columns)
        else:
            held = []
    return checked, held


def _store(target: Target, parts: Iterable[Columns], total: int) -> Imported:
    """Store one portion after the other. Where something stops that, how far it came is told."""
    done = Imported(revision=0, created=0, unchanged=0)
    stored = 0
    try:
        for columns in counted(parts, "agents stored", size=attrgetter("size"), total=total):
            part = target.import_columns(columns)
            created, unchanged = done.created + part.created, done.unchanged + part.unchanged
            done = Imported(revision=part.revision, created=created, unchanged=unchanged)
            stored += columns.size
    finally:
        if 0 < stored < total:
            say(f"{stored} of {total} agents are stored; type the command again to go on")
    return done
