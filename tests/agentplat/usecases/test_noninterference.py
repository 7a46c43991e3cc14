"""Two executions that differ only in an artifact which nobody was allowed to read look the same to all who may not read it."""

from __future__ import annotations

import re
import shutil
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from agentplat.domain.access import Role
from agentplat.domain.artifacts import blob_of
from agentplat.domain.canonical import canonical_json
from agentplat.domain.chains import Judgement
from agentplat.domain.errors import NotFound
from agentplat.domain.labels import parse_labels
from agentplat.domain.runs import Run, RunState
from agentplat.domain.scopes import Ref
from agentplat.domain.steps import Closing
from agentplat.store.migrating import migrate
from agentplat.store.sql import open_store
from agentplat.usecases.erase_artifact import EraseArtifact
from agentplat.usecases.verify_trail import VerifyTrail
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agentplat.access_records import access
from tests.agentplat.tool_records import Shop, emission, shop

PAYER, LISTENER, NEXT = Ref("acme/finance", "payer"), Ref("acme/platform", "listener"), Ref("acme/platform", "next")
DIGEST = re.compile(r"[0-9a-f]{64}")
SECRETS = st.text(st.characters(codec="utf-8"), max_size=30) | st.sampled_from(["", "budget: 100", "x" * 5_000])
GUESSES = st.sampled_from(["name", "digest", "ref", "other digest", "empty", "look", "note", "again", "pay", "nothing"])


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("template") / "agentplat.db"
    migrate(f"sqlite:///{file}")
    return file


@pytest.fixture
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that stands still: two executions differ in nothing but the secret."""
    for module in ("call_tool", "finish_run", "erase_artifact", "read_artifact"):
        monkeypatch.setattr(f"agentplat.usecases.{module}.now_ms", lambda: 1_000)
    monkeypatch.setattr("agentplat.usecases.call_tool.time", SimpleNamespace(monotonic=lambda: 0.0))


def _arguments(guess: str, secret: str) -> tuple[str, dict[str, str]]:
    blob = blob_of(secret.encode())
    names = {"name": "numbers", "digest": blob.digest, "ref": blob.ref, "other digest": "0" * 64, "empty": ""}
    if guess in names:
        return "read_artifact", {"name": names[guess]}
    return ("note" if guess == "again" else guess), {"text": "x" if guess == "again" else guess}


def _seen(template: Path, folder: Path, secret: str, guessed: str, guesses: list[str], erased: bool) -> list[str]:
    """All that a reader of the area sees of one execution, digests masked."""
    folder.mkdir()
    shutil.copy(template, folder / "agentplat.db")
    with closing(open_store(f"sqlite:///{folder / 'agentplat.db'}")) as store:
        platform = shop(store, folder)
        platform.publish(PAYER, emits=[emission("paid", "numbers")])
        platform.publish(LISTENER, emits=[emission("heard", "copy", "final_answer")], listens=["paid"])
        platform.publish(NEXT, listens=["heard"])
        source = platform.finish(platform.open(PAYER, parse_labels(["secret"])), {"numbers": secret})
        told = platform.delivery(source, "paid")
        judged = platform.deliver(source, "paid", LISTENER)
        assert isinstance(judged, Judgement)
        if erased:
            admin = access(store, "acme:root", (Role.ADMIN, "*"))
            EraseArtifact(store=store, content=platform.content)(admin, source.id, "numbers", "why")
        # The worst that a broken dispatcher could do.
        run = platform.force(source, told, LISTENER)
        run = _act(platform, run, guesses, guessed)
        if not run.ended:
            run = platform.finish(run, {"copy": "what I could find out"})
            following = platform.deliver(run, "heard", NEXT)
            assert isinstance(following, Run)
            following, _ = platform.call(following, 1, "read_artifact", {"name": "copy"})
            platform.finish(following)
        return [repr(judged), *_trails(platform, source)]


def _act(platform: Shop, run: Run, guesses: list[str], guessed: str) -> Run:
    for number, guess in enumerate(guesses, 1):
        tool, arguments = _arguments(guess, guessed)
        if guess == "pay":
            # It waits for a person, who cancels it.
            waiting = platform.waits(run, number, tool, arguments)
            with platform.store.writing() as work:
                return work.runs.close(waiting, Closing(state=RunState.CANCELLED), 1_000)
        run, _ = platform.call(run, number, tool, arguments)
    return run


def _trails(platform: Shop, source: Run) -> list[str]:
    reader = access(platform.store, "acme:bo", (Role.VIEWER, "acme/platform"))
    verify = VerifyTrail(store=platform.store)
    with pytest.raises(NotFound):
        verify(reader, source.id)
    with platform.store.reading() as work:
        runs = work.runs.page(["*"], None, 100)
    seen = []
    for run in runs:
        if run.id != source.id:
            _, trail, fault = verify(reader, run.id)
            assert fault is None
            seen.extend(DIGEST.sub("#", canonical_json(step.as_json())) for step in trail)
    return seen


@pytest.mark.promise("A-5", "A-8", "A-9")
@pytest.mark.usefixtures("stopped_clock")
@settings(max_examples=15, deadline=None)
@given(secrets=st.tuples(SECRETS, SECRETS), guesses=st.lists(GUESSES, max_size=6), erased=st.booleans())
def test_a_secret_that_nobody_may_read_leaves_no_trace_for_those_without_access(
    template: Path,
    tmp_path_factory: pytest.TempPathFactory,
    secrets: tuple[str, str],
    guesses: list[str],
    erased: bool,
) -> None:
    folder = tmp_path_factory.mktemp("worlds")
    # In both worlds the first one's digest is guessed: rightly in one, wrongly in the other.
    one, other = (
        _seen(template, folder / str(i), secret, secrets[0], guesses, erased and i == 1) for i, secret in enumerate(secrets)
    )
    assert "\n".join(one) == "\n".join(other)
    assert len(one) > len(guesses)
