"""graphsvc audit: the loops of a whole graph and what leads nowhere in it, from files, a store or a running service."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from graphsvc.audit.baseline import (
    Acceptance,
    Baseline,
    Judged,
    acceptance_of,
    check_text,
    parse_day,
    read_baseline,
    write_baseline,
)
from graphsvc.audit.formats.choice import AuditFormat, writer
from graphsvc.audit.formats.heading import Heading
from graphsvc.audit.local import Tell, audit
from graphsvc.cli.connection import Flags, Server, Tls, TlsCa, TlsCertificate, TlsKey, TokenFile
from graphsvc.cli.context import Composition, composition
from graphsvc.cli.output import COMMAND_LINE, Exit, FailOn, say, wrong
from graphsvc.declarations.bulk import Given, read_columns
from graphsvc.domain.answers import Audited
from graphsvc.domain.audit import DEFAULT_AUDIT_VISITS, DEFAULT_MAX_LENGTH, MAX_LENGTH, AuditLimits, Finding, Progress
from graphsvc.domain.names import Scope, parse_scope
from graphsvc.domain.redaction import EVERYTHING, Reader, reader_of
from graphsvc.domain.rules import Level

AUDITED = "Declarations: .jsonl, .ndjson, .parquet, .yaml or .yml; - for JSON lines on standard input. None with --url or --server."
MOST_VISITS = 2**53 - 1
MOST_EXPIRED = 20
"""Most entries of a baseline listed because their day has passed."""

_LEVELS = {
    FailOn.NEVER: set[Level](),
    FailOn.LOOP: {Level.LOOP},
    FailOn.SELF: {Level.LOOP, Level.SELF},
    FailOn.NOTICE: {Level.LOOP, Level.SELF, Level.NOTICE},
}


@contextmanager
def _progress() -> Iterator[tuple[Tell, Callable[[], None]]]:
    """Shows on standard error how far an audit is, where that is a terminal; the second function ends that."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None, lambda: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as bar:
        task = bar.add_task("starting", total=None)

        def tell(progress: Progress) -> None:
            bar.update(task, description=progress.step, completed=progress.done, total=progress.total)

        yield tell, bar.stop


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What is asked of the audit."""

    files: Sequence[str]
    flags: Flags
    reader: Reader | None
    scopes: Sequence[Scope]
    limits: AuditLimits
    folder: Path | None
    given: Given

    def check(self) -> None:
        """Raises InvalidInput unless exactly one graph is named, with flags that go with it."""
        given = [bool(self.files), self.flags.store is not None, self.flags.server is not None]
        if sum(given) != 1:
            raise wrong("FILES", "and --url and --server are not given one alone", "give files, or a store, or a service")
        if not self.files:
            self.flags.check()
        else:
            self.flags.check_unused()


@contextmanager
def _findings(asked: _Asked, opens: Composition, tell: Tell) -> Iterator[Audited]:
    if asked.files:
        reader = asked.reader or EVERYTHING
        found = audit(
            read_columns(asked.files, asked.given), reader, scopes=asked.scopes, limits=asked.limits, folder=asked.folder, tell=tell
        )
        yield Audited(None, asked.limits, found)
        return
    with asked.flags.target(opens, create=False) as target:
        yield target.audit(asked.reader, asked.scopes, asked.limits, folder=asked.folder, tell=tell)


@dataclass(slots=True)
class _Ending:
    """What the findings that pass by make of the exit status, and what accepts them."""

    fail_on: FailOn
    status: Exit = Exit.FINE

    def note(self, judged: Iterable[Judged]) -> Iterator[Judged]:
        """The same findings."""
        for each in judged:
            level = each.finding.rule.level
            if level is Level.DOUBT:
                self.status = Exit.NOT_VERIFIED
            elif each.accepted is None and level in _LEVELS[self.fail_on]:
                self.status = max(self.status, Exit.FINDINGS)
            yield each


@dataclass(frozen=True, slots=True, kw_only=True)
class _Accepting:
    """Where all findings are accepted to, and by whom."""

    path: Path
    owner: str
    reason: str
    expires: date

    def keep(self, judged: Iterable[Judged], entries: list[Acceptance]) -> Iterator[Judged]:
        """The same findings; fills the entries of a new baseline with them."""
        for each in judged:
            entry = each.accepted or acceptance_of(each.finding, self.owner, self.reason, self.expires)
            if entry is not None and entry.fingerprint == each.finding.fingerprint:
                entries.append(entry)
            yield each


def _accepting(path: Path | None, owner: str | None, reason: str | None, expires: str | None) -> _Accepting | None:
    if path is None:
        for flag, value in (("--owner", owner), ("--reason", reason), ("--expires", expires)):
            if value is not None:
                raise wrong(flag, "is given without --write-baseline", "leave it out, or name the file to write")
        return None
    return _Accepting(
        path=path,
        owner=check_text(owner, "--owner", COMMAND_LINE),
        reason=check_text(reason, "--reason", COMMAND_LINE),
        expires=parse_day(expires, "--expires", COMMAND_LINE),
    )


def _begun(findings: Iterator[Finding]) -> Iterator[Finding]:
    """The same findings, the first of them looked for at once: what goes wrong until then leaves nothing half printed."""
    first = list(islice(findings, 1))
    return chain(first, findings)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def _tell_baseline(baseline: Baseline) -> None:
    for entry in baseline.expired[:MOST_EXPIRED]:
        say(f"baseline: {entry.rule} {entry.fingerprint[:12]} of {entry.owner} counted until {entry.expires.isoformat()}")
    if len(baseline.expired) > MOST_EXPIRED:
        say(f"baseline: {len(baseline.expired) - MOST_EXPIRED} more entries have run out")
    if baseline.unmet:
        say(f"baseline: {len(baseline.unmet)} entries are not found any more; they can be taken out")


def register(app: typer.Typer) -> None:
    """Add the command to an app."""

    @app.command("audit")
    def audit_(
        ctx: typer.Context,
        files: Annotated[list[str] | None, typer.Argument(help=AUDITED, show_default=False)] = None,
        url: Annotated[
            str | None,
            typer.Option(
                "--url", "--store", help="Store to audit: sqlite:///FILE or postgresql://…", metavar="URL", show_default=False
            ),
        ] = None,
        server: Server = None,
        reader: Annotated[
            list[str] | None,
            typer.Option(help="Audit for a reader of this scope; several. [default: all]", metavar="SCOPE", show_default=False),
        ] = None,
        scope: Annotated[
            list[str] | None,
            typer.Option(help="Only agents of this scope; several. [default: all]", metavar="SCOPE", show_default=False),
        ] = None,
        max_length: Annotated[
            int, typer.Option(help="Most agents of the loops listed.", min=2, max=MAX_LENGTH)
        ] = DEFAULT_MAX_LENGTH,
        max_visits: Annotated[
            int, typer.Option(help="Most incidences looked at for one agent.", min=0, max=MOST_VISITS)
        ] = DEFAULT_AUDIT_VISITS,
        format: Annotated[AuditFormat, typer.Option(help="How findings are printed.")] = AuditFormat.TEXT,  # noqa: A002 - the flag
        fail_on: Annotated[FailOn, typer.Option(help="The least finding that makes the exit status 1.")] = FailOn.NEVER,
        baseline: Annotated[
            Path | None, typer.Option(help="Hide what this file accepts.", metavar="FILE", show_default=False)
        ] = None,
        as_of: Annotated[
            str | None, typer.Option(help="The day expiry is judged on. [default: today, UTC]", metavar="DAY", show_default=False)
        ] = None,
        write: Annotated[
            Path | None,
            typer.Option("--write-baseline", help="Accept all that is found.", metavar="FILE", show_default=False),
        ] = None,
        owner: Annotated[str | None, typer.Option(help="Who accepts it.", show_default=False)] = None,
        reason: Annotated[str | None, typer.Option(help="Why it is accepted.", show_default=False)] = None,
        expires: Annotated[
            str | None, typer.Option(help="Until when, such as 2027-01-31.", metavar="DAY", show_default=False)
        ] = None,
        resume: Annotated[
            Path | None,
            typer.Option(help="Keep finished parts here, and go on from those kept.", metavar="FOLDER", show_default=False),
        ] = None,
        token_file: TokenFile = None,
        tls: Tls = False,
        tls_ca: TlsCa = None,
        tls_certificate: TlsCertificate = None,
        tls_key: TlsKey = None,
    ) -> None:
        """Tell every loop component of a graph, its shortest loops and what to drop, and the events that lead nowhere.

        Ends with 1 for findings at or above --fail-on that no baseline accepts, 2 for bad input, and 3 where --max-visits cut a
        search short. The same graph gives the same bytes.

        Example: graphsvc audit team.jsonl --fail-on loop --baseline accepted.json --format sarif

        Example: graphsvc audit --server 127.0.0.1:50051 --scope acme --format json
        """
        flags = Flags(
            server=server,
            store=url,
            token_file=token_file,
            tls=tls,
            tls_ca=tls_ca,
            tls_certificate=tls_certificate,
            tls_key=tls_key,
        )
        readers = [parse_scope(text, "--reader", COMMAND_LINE) for text in reader or []]
        asked = _Asked(
            files=files or [],
            flags=flags,
            reader=reader_of(readers) if readers else None,
            scopes=[parse_scope(text, "--scope", COMMAND_LINE) for text in scope or []],
            limits=AuditLimits(max_length=max_length, max_visits=max_visits),
            folder=resume,
            given=Given(files or []),
        )
        asked.check()
        today = datetime.now(UTC).date() if as_of is None else parse_day(as_of, "--as-of", COMMAND_LINE)
        accepted = Baseline({}, today) if baseline is None else read_baseline(baseline, today)
        raise typer.Exit(_run(asked, composition(ctx), accepted, _accepting(write, owner, reason, expires), format, fail_on))


def _run(
    asked: _Asked, opens: Composition, baseline: Baseline, accepting: _Accepting | None, form: AuditFormat, fail_on: FailOn
) -> Exit:
    ending = _Ending(fail_on)
    entries: list[Acceptance] = []
    with _progress() as (tell, finish), _findings(asked, opens, tell) as audited:
        findings = _begun(audited.findings)
        if sys.stdout.isatty():
            finish()  # the findings now show how far it is, and a bar would stand between them
        heading = Heading(
            reader=None if asked.reader is None else tuple(sorted(scope.text for scope in asked.reader.scopes)),
            scopes=tuple(sorted(scope.text for scope in asked.scopes)),
            limits=audited.limits,
            revision=audited.revision,
            place_of=asked.given.of,
        )
        judged = ending.note(baseline.judge(findings))
        if accepting:
            judged = accepting.keep(judged, entries)
        _print(writer(form)(heading, judged))
    _tell_baseline(baseline)
    if accepting:
        say(f"baseline: {write_baseline(accepting.path, entries)} findings accepted in {accepting.path}")
    return ending.status
