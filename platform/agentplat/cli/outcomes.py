"""How commands end, and how they print."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from enum import IntEnum, StrEnum
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import track

T = TypeVar("T")


class Exit(IntEnum):
    """The exit statuses of O-2."""

    FINE = 0
    FINDINGS = 1
    WRONG = 2
    NOT_VERIFIED = 3
    NO_ANSWER = 4
    FAULT = 70


class Format(StrEnum):
    """How an answer is printed."""

    TEXT = "text"
    JSON = "json"


class FailOn(StrEnum):
    """The least finding that makes a command end with status 1."""

    NEVER = "never"
    LOOP = "loop"
    SELF = "self"
    NOTICE = "notice"


class ServerSilent(Exception):
    """The server did not answer."""


class ServerRefused(Exception):
    """The server refused; the message is its own. status: of HTTP; problem: the whole answer."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        self.status, self.problem = status, problem
        super().__init__(str(problem.get("detail") or problem.get("title") or f"HTTP status {status}"))

    @property
    def exit(self) -> Exit:
        """The exit status that fits."""
        if self.status in (429, 502, 503, 504):
            return Exit.NO_ANSWER
        return Exit.FAULT if self.status >= 500 else Exit.WRONG


def show(answer: Any, text: str, form: Format) -> None:
    """Print an answer in one of its two forms."""
    print(json.dumps(answer, ensure_ascii=False) if form is Format.JSON else text)


def with_progress(things: Sequence[T], doing: str) -> Iterable[T]:
    """The things one after the other, with a bar on a terminal where there are several."""
    hidden = len(things) < 2 or not sys.stderr.isatty()
    return track(things, doing, console=Console(stderr=True), transient=True, disable=hidden)
