"""How commands print, show progress and end; the same for all of them."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum, StrEnum
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from graphsvc.client import ServiceFault, Unanswered, Unreadable
from graphsvc.declarations.files import write_file
from graphsvc.declarations.jsonlines import write_json_lines
from graphsvc.domain.errors import (
    DeadlinePassed,
    GraphError,
    InvalidInput,
    LogDamaged,
    Overloaded,
    StoreUnavailable,
    Violation,
)
from graphsvc.domain.model import AgentVersion
from graphsvc.domain.report import BreakingSet, Report

DEBUG_VARIABLE = "LOOPWARDEN_DEBUG"
"""Set to anything, it makes a fault of ours show where it happened."""

COMMAND_LINE = "command line"
"""The place of a faulty flag."""

FILES = "Declarations: .jsonl, .ndjson, .parquet, .yaml or .yml; - for JSON lines on standard input."


class Format(StrEnum):
    """How an answer is printed."""

    TEXT = "text"
    JSON = "json"


Output = Annotated[
    str | None,
    typer.Option(help=".jsonl, .ndjson or .parquet. [default: JSON lines, printed]", metavar="FILE", show_default=False),
]
Answered = Annotated[Format, typer.Option(help="How the answer is printed.")]

MAX_SHOWN = 500
"""Most characters of one line about bad input, which may quote it."""

_PROGRESS_EVERY = 5_000
_T = TypeVar("_T")


class Exit(IntEnum):
    """The exit statuses of every command."""

    FINE = 0
    FINDINGS = 1
    WRONG = 2
    NOT_VERIFIED = 3
    NO_ANSWER = 4
    FAULT = 70


class FailOn(StrEnum):
    """The least finding that makes a command end with status 1: loops stand above own-event loops, and those above notices."""

    NEVER = "never"
    LOOP = "loop"
    SELF = "self"
    NOTICE = "notice"


def exit_for(report: Report, fail_on: FailOn) -> Exit:
    """How a command ends that showed this report alone. A search that a limit cut short goes before any finding."""
    if not report.verification.fully_verified:
        return Exit.NOT_VERIFIED
    found = {FailOn.SELF if loop.is_self else FailOn.LOOP for loop in report.loops}
    if any(not isinstance(notice, BreakingSet) for notice in report.notices):
        found.add(FailOn.NOTICE)
    levels = {
        FailOn.NEVER: set(),
        FailOn.LOOP: {FailOn.LOOP},
        FailOn.SELF: {FailOn.LOOP, FailOn.SELF},
        FailOn.NOTICE: {FailOn.LOOP, FailOn.SELF, FailOn.NOTICE},
    }
    return Exit.FINDINGS if found & levels[fail_on] else Exit.FINE


def wrong(flag: str, reason: str, remedy: str) -> InvalidInput:
    """A refusal of a flag."""
    return InvalidInput([Violation(field=flag, place=COMMAND_LINE, reason=reason, remedy=remedy)])


def printable(text: str) -> str:
    """A text as one line that cannot steer a terminal, however it came in."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: MAX_SHOWN + 1])
    return shown if len(text) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}…"


def say(line: str) -> None:
    """Print a line beside the answer, on standard error."""
    print(line, file=sys.stderr)


def show(answer: Any, text: str, form: Format) -> None:
    """Print an answer in one of its two forms."""
    print(to_json(answer) if form is Format.JSON else text)


def to_json(value: Any) -> str:
    """A value as one line of JSON, names as they are."""
    return json.dumps(value, ensure_ascii=False)


def deliver(versions: Iterable[AgentVersion], output: str | None) -> int:
    """Write versions to a file, or as JSON lines to standard output, and say how many there were. Raises InvalidInput."""
    if output is not None:
        return write_file(output, versions)
    sys.stdout.flush()
    return write_json_lines(versions, sys.stdout.buffer)


def tell(answer: Any, text: str, form: Format, output: str | None) -> None:
    """Print what was delivered; beside the answer where standard output holds the versions themselves."""
    if output is None:
        say(to_json(answer) if form is Format.JSON else text)
    else:
        show(answer, text, form)


def _one(_: object) -> int:
    return 1


def counted(
    items: Iterable[_T], what: str, *, printed: bool = False, size: Callable[[_T], int] = _one, total: int | None = None
) -> Iterator[_T]:
    """The same items, with a count of those done with on standard error, where that is a terminal.

    printed: whether the items go to standard output as they pass; where that is a terminal too, they need no count. size: for how
    many an item counts. total: what the count comes to, where that is known.
    """
    console = Console(stderr=True)
    if not console.is_terminal or (printed and sys.stdout.isatty()):
        yield from items
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}: {task.completed:,.0f}" + (f" of {total:,}" if total else "")),
        TimeElapsedColumn(),
    )
    # Not redirected: the library would send what is printed meanwhile to standard error.
    with Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as progress:
        task = progress.add_task(what, total=None)
        done = told = 0
        for item in items:
            yield item
            done += size(item)
            if done - told >= _PROGRESS_EVERY:
                told = done
                progress.update(task, completed=done)
        progress.update(task, completed=done)


def end(error: Exception) -> Exit:
    """Tell on standard error why a command failed, and say how it ends."""
    if isinstance(error, InvalidInput):
        for violation in error.violations:
            say(printable(str(violation)))
        return Exit.WRONG
    if isinstance(error, (Unanswered, StoreUnavailable, DeadlinePassed, Overloaded)):
        say(f"error: {printable(str(error))}")
        return Exit.NO_ANSWER
    if isinstance(error, (ServiceFault, Unreadable, LogDamaged)):
        say(f"error: {printable(str(error))}")
        return Exit.FAULT
    if isinstance(error, GraphError):
        say(f"error: {printable(str(error))}")
        return Exit.WRONG
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exception(error)
    say(f"error: a fault of ours ({type(error).__name__}); set {DEBUG_VARIABLE}=1 to see where it happened, and report it")
    return Exit.FAULT
