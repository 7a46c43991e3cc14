"""The demonstration behind `make demo`: both processes, a catalogue of agents, a loop, and its warning as two people see it.

Set DEMO_EXIT=1 to end when everything was shown; otherwise the platform goes on answering until Ctrl-C.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

CATALOGUE = Path(__file__).parent / "catalogue"
DEVELOPER = "acme/platform:developer"
STOP_S = 60


def heading(text: str) -> None:
    """Begin a part of the demonstration."""
    print(f"\n== {text}", flush=True)


def agentplat(*arguments: str) -> str:
    """Run one command of the platform as a user would, show it and what it prints."""
    shown = " ".join(Path(a).name if os.sep in a and Path(a).exists() else a for a in arguments)
    print(f"$ agentplat {shown}", flush=True)
    done = subprocess.run([sys.executable, "-m", "agentplat", *arguments], check=True, stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="", flush=True)
    return done.stdout


@contextmanager
def running(folder: Path) -> Iterator[dict[str, Any]]:
    """`agentplat up` on free ports of this machine; gives its ready line. Both processes have ended when the block is left."""
    command = [sys.executable, "-m", "agentplat", "up", "--data-dir", str(folder), "--listen", "127.0.0.1:0"]
    command += ["--graph-target", "127.0.0.1:0", "--log-level", "error", "--format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            line = process.stdout.readline()
            if not line:
                sys.exit(f"agentplat up ended with status {process.wait(STOP_S)} before it was ready")
            yield json.loads(line)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_S)


def person(folder: Path, ref: str, role: str, scope: str) -> Path:
    """Somebody with one grant; returns the file with their token."""
    database = f"sqlite:///{folder / 'agentplat.db'}"
    file = folder / f"{ref.partition(':')[2]}-of-{ref.partition(':')[0]}.token"
    for arguments in (("add", ref), ("grant", ref, role, scope), ("token", ref, "--out", str(file))):
        subprocess.run(
            [sys.executable, "-m", "agentplat", "user", *arguments, "--database-url", database],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    print(f"{ref}: {role} on {scope}", flush=True)
    return file


def show_report(server: str, token_file: Path, version: int, language: str) -> None:
    """Print the report of a version as the token's owner sees it."""
    answer = httpx.get(
        f"{server}/v1/agents/{quote(DEVELOPER, safe='')}/versions/{version}/report",
        params={"language": language},
        headers={"Authorization": f"Bearer {token_file.read_text(encoding='utf-8').strip()}"},
    )
    answer.raise_for_status()
    print(answer.json()["text"], flush=True)


def show(folder: Path, ready: dict[str, Any]) -> None:
    """The demonstration itself."""
    server = f"http://{ready['address']}"
    print(f"platform on {server}, graph service on {ready['graph']}")

    heading("Three people")
    publisher = person(folder, "acme:publisher", "author", "acme")
    supplier = person(folder, "globex:publisher", "author", "globex")
    reader = person(folder, "acme:reader", "viewer", "acme/platform")

    heading("A catalogue of two companies, without a loop")
    acme = [str(file) for file in sorted(CATALOGUE.glob("acme-*.yaml")) if not file.stem.endswith("-2")]
    globex = [str(file) for file in sorted(CATALOGUE.glob("globex-*.yaml"))]
    agentplat("publish", *acme, "--server", server, "--token-file", str(publisher))
    agentplat("publish", *globex, "--server", server, "--token-file", str(supplier))

    second = str(CATALOGUE / "acme-platform-developer-2.yaml")
    heading("Preview: what would version 2 of the developer change?")
    agentplat("preview", second, "--server", server, "--token-file", str(publisher))

    heading("Publishing it: the loops it closes, as its publisher may see them")
    agentplat("publish", second, "--server", server, "--token-file", str(publisher))

    for language, words in (("en", "English"), ("pt", "Portuguese"), ("he", "Hebrew")):
        heading(f"The same report for a reader of acme/platform alone, in {words}")
        show_report(server, reader, 2, language)


def main() -> None:
    """Show everything, then go on serving unless DEMO_EXIT is set."""
    with tempfile.TemporaryDirectory(prefix="loopwarden-") as name, running(Path(name)) as ready:
        show(Path(name), ready)
        if os.environ.get("DEMO_EXIT"):
            return
        heading(f"Still answering on http://{ready['address']}; Ctrl-C ends it")
        try:
            signal.pause()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
