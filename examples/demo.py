"""The demonstration behind `make demo`: a catalogue of agents, a loop, its warning as two people see it, an artifact by reference,
the loop at work, a ticket that is delegated, and a proposal whose pipeline runs.

Set DEMO_EXIT=1 to end when everything was shown; otherwise the platform goes on answering until Ctrl-C.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

CATALOGUE = Path(__file__).parent / "catalogue"
HANDOVER = Path(__file__).parent / "handover"
TEAMWORK = Path(__file__).parent / "teamwork"
DEVELOPER, REVIEWER = "acme/platform:developer", "acme/platform:reviewer"
COLLECTOR, ANALYST = "acme/support:collector", "acme/support:analyst"
STOP_S = 60
CHAIN_S = 300
"""Longest wait for a chain to come to its end, on a machine that does other things too."""


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


def get(server: str, token_file: Path, path: str, **query: str) -> Any:
    """What the server answers to the token's owner."""
    headers = {"Authorization": f"Bearer {token_file.read_text(encoding='utf-8').strip()}"}
    answer = httpx.get(f"{server}{path}", params=query, headers=headers, timeout=STOP_S)
    answer.raise_for_status()
    return answer.json()


def show_report(server: str, token_file: Path, version: int, language: str) -> None:
    """Print the report of a version as the token's owner sees it."""
    path = f"/v1/agents/{quote(DEVELOPER, safe='')}/versions/{version}/report"
    print(get(server, token_file, path, language=language)["text"], flush=True)


def ended_chain(server: str, token_file: Path, run: int) -> dict[str, Any]:
    """The chain of a run, once every run of it has ended and its events have left or were withheld."""
    end, pause = time.monotonic() + CHAIN_S, threading.Event()
    while True:
        chain: dict[str, Any] = get(server, token_file, f"/v1/chains/{run}")
        if all(one["state"] == "finished" and one["outcomes"] for one in chain["runs"]):
            return chain
        if time.monotonic() > end:
            sys.exit(f"the chain of run {run} did not come to its end within {CHAIN_S} s")
        pause.wait(0.2)


def show_loop_at_work(server: str, publisher: Path, reader: Path, admin: Path) -> None:
    """Let the loop run until the chain stops it, and show what its last run says, to two people."""
    asked = ("--server", server, "--token-file")
    heading("The loop at work: somebody opens a run of the developer, and each event starts the next")
    told = agentplat("run", "open", DEVELOPER, *asked, str(publisher))
    chain = ended_chain(server, admin, int(told.split()[1]))
    for hop in range(chain["limits"]["hops"] + 1):
        agents = [one["agent"].partition(":")[2] for one in chain["runs"] if one["hop"] == hop]
        print(f"hop {hop}: {', '.join(f'{agents.count(name)} × {name}' for name in sorted(set(agents)))}", flush=True)
    at_limit = {one["run"] for one in chain["runs"] if one["agent"] == DEVELOPER}
    last = next(stop["run"] for stop in chain["stops"] if stop["run"] in at_limit and stop["loop"] == [DEVELOPER, REVIEWER])
    heading("The trail of a run at the last hop: it executed, and its closing step says what was withheld and why")
    for token in (publisher, reader):
        agentplat("trail", "show", str(last), *asked, str(token))
    heading("Proof that every finished run was handled")
    agentplat("dispatch", "reconcile", *asked, str(admin))


def show_artifacts(server: str, publisher: Path, admin: Path) -> None:
    """Hand an artifact over by reference: read by name, refused by digest, stopped by the barrier."""
    asked = ("--server", server, "--token-file")
    heading("An artifact by reference: one agent publishes it, two listen to the event that names it")
    agentplat("publish", *map(str, sorted(HANDOVER.glob("*.yaml"))), *asked, str(publisher))
    told = agentplat("run", "open", COLLECTOR, *asked, str(publisher))
    chain = ended_chain(server, admin, int(told.split()[1]))
    heading("The one reads it by name, and is refused when it tries the digest, although it is the right one")
    reading = next(one["run"] for one in chain["runs"] if one["agent"] == ANALYST)
    agentplat("trail", "show", str(reading), *asked, str(publisher))
    heading("The other is in another area: the barrier keeps its run from being opened, and the outcome says why")
    agentplat("dispatch", "chain", str(reading), *asked, str(publisher))


def until_ended(server: str, token_file: Path, path: str, what: str) -> dict[str, Any]:
    """What a path answers once nothing of it goes on any more."""
    end, pause = time.monotonic() + CHAIN_S, threading.Event()
    while True:
        found: dict[str, Any] = get(server, token_file, path)
        going_on = [one for one in found.get("runs", [found]) if one["state"] in ("queued", "running", "waiting")]
        if not going_on:
            return found
        if time.monotonic() > end:
            sys.exit(f"{what} did not come to its end within {CHAIN_S} s")
        pause.wait(0.2)


def show_delegation(server: str, publisher: Path) -> None:
    """Hand a ticket to an agent in a space, and see it delegated, refused and held to a contract."""
    asked = ("--server", server, "--token-file", str(publisher))
    heading("A ticket is handed to an agent in a space")
    agentplat("publish", *map(str, sorted(TEAMWORK.glob("*.yaml"))), *asked)
    agentplat("workspace", "create", "acme/delivery", "Delivery", *asked)
    agentplat("ticket", "create", "1", "Export the customer list", "--description", "People ask for it every week.", *asked)
    agentplat("space", "create", "1", "Export", *asked)
    agentplat("space", "say", "1", "1", "@lead please see to #1", *asked)
    [opened] = get(server, publisher, "/v1/workspaces/1/spaces/1/messages")["messages"][0]["mentions"]
    chain = until_ended(server, publisher, f"/v1/chains/{opened['run']}", "the delegation")
    heading("It delegated: the tree of the ticket, with what was refused word for word")
    agentplat("delegation", "tree", "1", "1", *asked)
    heading("What the space says of it")
    agentplat("space", "read", "1", "1", *asked)
    heading("The builder's output: rejected with its fault, then accepted")
    builder = next(one["run"] for one in chain["runs"] if one["agent"] == "acme/delivery:builder")
    agentplat("trail", "show", str(builder), *asked)


def show_orchestration(server: str, publisher: Path) -> None:
    """Approve what an agent proposes, and let its pipeline run."""
    asked = ("--server", server, "--token-file", str(publisher))
    heading("An orchestration is proposed by an agent and approved by a person")
    agentplat("space", "create", "1", "Plans", "--mode", "orchestrate", *asked)
    agentplat("space", "say", "1", "2", "@organiser what should the export become?", *asked)
    [opened] = get(server, publisher, "/v1/workspaces/1/spaces/2/messages")["messages"][0]["mentions"]
    until_ended(server, publisher, f"/v1/chains/{opened['run']}", "the proposal")
    agentplat("proposal", "show", "1", *asked)
    digest = get(server, publisher, "/v1/proposals/1")["digest"]
    agentplat("proposal", "approve", "1", "--revision", "1", "--digest", digest, *asked)
    until_ended(server, publisher, "/v1/pipelines/1", "the pipeline")
    heading("Its pipeline ran: one run for each sub-ticket, and the page at the end")
    agentplat("pipeline", "show", "1", *asked)


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
    admin = Path(ready["token_file"])
    show_artifacts(server, publisher, admin)
    show_loop_at_work(server, publisher, reader, admin)
    show_delegation(server, publisher)
    show_orchestration(server, publisher)


def main() -> None:
    """Show everything, then go on serving unless DEMO_EXIT is set."""
    with tempfile.TemporaryDirectory(prefix="loopwarden-") as name, running(Path(name)) as ready:
        show(Path(name), ready)
        if os.environ.get("DEMO_EXIT"):
            return
        heading(f"Studio is at http://{ready['address']}; sign in with the token in {ready['token_file']}. Ctrl-C ends it")
        try:
            signal.pause()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
