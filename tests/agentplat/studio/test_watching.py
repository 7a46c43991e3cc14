"""The watcher behind the open pages."""

from __future__ import annotations

import asyncio

import pytest
from agentplat.domain.errors import Overloaded
from agentplat.domain.scopes import Ref
from agentplat.studio.watching import MOST_OF_ONE, Stream, Watcher, events

from tests.agentplat.run_records import stored
from tests.agentplat.world import PATIENCE_S
from tests.browser.stage import Stage


async def _next(told: object, kind: str = "id: ") -> str:
    """The next event, signs of life passed over."""
    async with asyncio.timeout(PATIENCE_S):
        async for text in told:  # type: ignore[attr-defined]
            if text.startswith(kind):
                return str(text)
    return ""


@pytest.mark.promise("U-9")
def test_a_stream_tells_nothing_that_the_page_has_and_ends_with_its_run(stage: Stage) -> None:
    agent = Ref("acme/support", "streamed")
    stage.bench.settle()
    stage.shop.publish(agent)
    run = stage.shop.open(agent)
    watcher = Watcher(stage.world.cases.monitor_runs, 0.01)

    async def follow() -> None:
        stream = Stream(person_id=1, loop=asyncio.get_running_loop(), run_id=run.id)
        watcher.open(stream)
        told = events(watcher, stream, str(run.steps))
        await asyncio.to_thread(stage.shop.call, run, 1, "look", {"text": "1"})
        steps = stored(stage.world.store, run.id).steps
        while not (event := await _next(told)).startswith(f"id: {steps}\n"):
            assert int(event.split("\n")[0].removeprefix("id: ")) > run.steps
        await asyncio.to_thread(stage.shop.finish, stored(stage.world.store, run.id))
        while '"state": "finished"' not in (event := await _next(told)):
            assert event
        assert await _next(told) == ""

    asyncio.run(follow())
    assert watcher.close(PATIENCE_S)


@pytest.mark.promise("U-9")
def test_a_person_cannot_open_streams_without_end_and_a_server_that_stops_ends_them(stage: Stage) -> None:
    watcher = Watcher(stage.world.cases.monitor_runs, 0.01)

    async def crowd() -> None:
        loop = asyncio.get_running_loop()
        streams = [Stream(person_id=1, loop=loop, scopes=("acme",)) for _ in range(MOST_OF_ONE)]
        for stream in streams:
            watcher.open(stream)
        with pytest.raises(Overloaded):
            watcher.open(Stream(person_id=1, loop=loop, scopes=("acme",)))
        watcher.open(Stream(person_id=2, loop=loop, scopes=("acme",)))
        told = events(watcher, streams[0], "")
        assert (await _next(told)).startswith("id: ")
        assert await asyncio.to_thread(watcher.close, PATIENCE_S)
        assert await _next(told) == ""
        with pytest.raises(Overloaded):
            watcher.open(Stream(person_id=3, loop=loop, scopes=("acme",)))

    asyncio.run(crowd())


@pytest.mark.promise("U-4", "U-9")
def test_a_stream_of_a_space_tells_what_is_said_there_though_nobody_works(stage: Stage) -> None:
    together = stage.world.cases.together
    workspace = together.workspaces.create(stage.author, "acme/platform", "heard")
    space, other = (together.spaces.create(stage.author, workspace.id, name) for name in ("hall", "corridor"))
    stage.bench.settle()
    watcher = Watcher(stage.world.cases.monitor_runs, 0.01)

    async def follow() -> None:
        stream = Stream(person_id=1, loop=asyncio.get_running_loop(), scopes=("acme/platform",), space_id=space.id)
        watcher.open(stream)
        told = events(watcher, stream, "")
        first = await _next(told)
        await asyncio.to_thread(together.converse.post, stage.author, workspace.id, other.id, "not here")
        await asyncio.to_thread(together.converse.post, stage.author, workspace.id, space.id, "here")
        assert await _next(told) not in (first, "")

    asyncio.run(follow())
    assert watcher.close(PATIENCE_S)
