"""The order in which agents arrive tells nothing, but for the order among hidden ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsvc.domain.limits import Limits
from graphsvc.graph import Kernel
from tests.graphsvc.folding import KERNELS
from tests.properties.worlds import World, json_bytes, limits, worlds


def settled(world: World) -> World:
    """The world without what was published earlier and is no more."""
    return replace(world, history=tuple(world.published))


def rearranged(world: World, data: st.DataObject) -> World:
    """The same publications in another order, in which hidden agents follow one another as before."""
    order = data.draw(st.permutations(world.history))
    hidden = iter([one for one in world.history if world.hides(one.ref)])
    return replace(world, history=tuple(next(hidden) if world.hides(one.ref) else one for one in order))


@pytest.mark.promise("G-11", "G-15")
@settings(max_examples=100)
@given(worlds().map(settled), limits, st.data())
def test_any_order_of_arrival_and_any_kernel_gives_the_same_bytes(world: World, limits: Limits, data: st.DataObject) -> None:
    reports = [each.report(limits, kernel) for each in (world, rearranged(world, data)) for kernel in KERNELS.values()]
    assert len({json_bytes(report) for report in reports}) == 1


@pytest.mark.promise("G-11")
@settings(max_examples=100)
@given(worlds(), limits, st.sampled_from(list(KERNELS.values())))
def test_what_was_published_earlier_and_is_no_more_leaves_no_trace(world: World, limits: Limits, kernel: Kernel) -> None:
    assert json_bytes(settled(world).report(limits, kernel)) == json_bytes(world.report(limits, kernel))
