"""The git command, called so that nothing of a repository or of its host decides what runs beside it.

No hook, no filter and no helper that a repository names is run, no configuration of a person or of the host is read, nothing is
asked for at a terminal, and no other machine is reached.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentplat.domain.errors import Conflict

GIT_S = 120.0
"""Longest time that one call gets, in seconds."""

MOST_TOLD = 300
"""Characters of git's own message that a refusal repeats."""

_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.untrackedCache": "false",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "credential.helper": "",
    "submodule.recurse": "false",
    "diff.ignoreSubmodules": "dirty",
    "user.name": "agentplat",
    "user.email": "agentplat@localhost",
}
_FILTER = re.compile(r"filter\.(.+)\.(clean|smudge|process|required)", re.DOTALL)


class GitFailed(Conflict):
    """Git did not do what it was called for."""


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    usual = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_EDITOR": "true",
    }
    return {**usual, **extra}


def _run(
    settings: Sequence[tuple[str, str]], folder: Path, arguments: Sequence[str], keeps: Sequence[int], extra: Mapping[str, str]
) -> subprocess.CompletedProcess[bytes]:
    # By the environment and not by `-c`, whose names end at the first "=": names of filters may hold one.
    given = {"GIT_CONFIG_COUNT": str(len(settings))}
    for i, (name, value) in enumerate(settings):
        given |= {f"GIT_CONFIG_KEY_{i}": name, f"GIT_CONFIG_VALUE_{i}": value}
    try:
        return subprocess.run(
            ["git", *arguments],
            cwd=folder,
            env=_environment({**given, **extra}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_S,
            check=False,
            pass_fds=tuple(keeps),
        )
    except subprocess.TimeoutExpired as error:
        raise GitFailed(f"git {arguments[0]} took longer than {GIT_S:g} s") from error
    except OSError as error:
        raise GitFailed(f"git cannot be run here: {error.strerror}") from error


class Git:
    """Git in one folder. keeps: open files that git holds too, so that a lock on one lasts until git has ended."""

    def __init__(self, folder: Path, trusts: Sequence[Path] = (), keeps: Sequence[int] = ()) -> None:
        self._folder, self._keeps = folder, keeps
        trusted = [("safe.directory", str(path)) for path in (folder, *trusts)]
        self._settings: list[tuple[str, str]] = [*_SETTINGS.items(), *trusted]
        self._settings += self._without_filters()

    def _without_filters(self) -> list[tuple[str, str]]:
        """What makes the filters that the repository names do nothing. Reading its settings runs none of them."""
        listed = _run(self._settings, self._folder, ["config", "--null", "--name-only", "--list"], self._keeps, {})
        names = {
            match[1] for key in listed.stdout.decode(errors="surrogateescape").split("\0") if (match := _FILTER.fullmatch(key))
        }
        idle = {"clean": "", "smudge": "", "process": "", "required": "false"}
        return [(f"filter.{name}.{key}", value) for name in sorted(names) for key, value in idle.items()]

    def __call__(self, *arguments: str, **extra: str) -> str:
        """What git prints, without the last line's end. extra: variables of its environment. Raises GitFailed."""
        done = _run(self._settings, self._folder, arguments, self._keeps, extra)
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip()[:MOST_TOLD]
            raise GitFailed(f"git {arguments[0]} failed: {said}")
        return os.fsdecode(done.stdout).removesuffix("\n")

    def succeeds(self, *arguments: str) -> bool:
        """Whether git ends well. Raises GitFailed where it cannot be run."""
        return _run(self._settings, self._folder, arguments, self._keeps, {}).returncode == 0
