"""Whole reports against brute force."""

from __future__ import annotations

import hashlib
from itertools import combinations

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsvc.domain.limits import Limits
from graphsvc.domain.report import BreakingSet, Proof, Verification
from graphsvc.domain.wording import Language, report_text
from graphsvc.graph import Kernel
from tests import oracle
from tests.properties.worlds import World, kernels, limits, renamed, worlds


@pytest.mark.promise("G-1", "G-3", "G-4", "G-5", "G-6", "G-8", "G-13", "G-14", "G-15", "G-17", "G-18")
@settings(max_examples=400)
@given(worlds(), limits, kernels)
def test_a_report_is_what_brute_force_finds(world: World, limits: Limits, kernel: Kernel) -> None:
    report = world.report(limits, kernel)
    found = report.as_json()
    expected = oracle.report(
        world.published,
        world.proposed,
        world.reader,
        max_loops=limits.max_loops,
        max_visits=limits.max_visits,
        chain_limit=limits.chain_limit,
    )
    found["notices"] = [notice for notice in found["notices"] if notice["kind"] != "breaking_set"]
    assert {key: found[key] for key in expected} == expected
    assert report.warns == bool(expected["loops"])
    proven = report.verification is Verification.COMPLETE and all(loop.is_self for loop in report.loops)
    assert (report.proof is Proof.ORDER) == proven
    assert (report.visits is None) == (proven or "*" not in world.reader)


@pytest.mark.promise("G-19")
@settings(max_examples=150)
@given(worlds(), limits, kernels)
def test_the_breaking_set_breaks_every_loop_named_and_nothing_of_it_could_be_left_out(
    world: World, limits: Limits, kernel: Kernel
) -> None:
    report = world.report(limits, kernel)
    own = [(world.proposed,)] if world.proposed.hears & world.proposed.emits else []
    named = own + oracle.loops(world.published, world.proposed, world.reader)[: limits.max_loops]
    breaking = [notice for notice in report.notices if isinstance(notice, BreakingSet)]
    assert len(breaking) == bool(named)
    for notice in breaking:
        items = [(True, name) for name in notice.triggers] + [(False, name) for name in notice.events]
        assert oracle.breaks(named, world.proposed, notice.triggers, notice.events)
        for kept in combinations(items, len(items) - 1):
            triggers, events = ([name for is_trigger, name in kept if is_trigger == wanted] for wanted in (True, False))
            assert not oracle.breaks(named, world.proposed, triggers, events)
        assert set(notice.triggers) <= world.proposed.hears
        assert set(notice.events) <= world.proposed.emits


@pytest.mark.promise("G-11", "G-21")
@given(worlds(), limits, kernels)
def test_the_digest_is_sha_256_over_the_canonical_json_without_revision_and_visits(
    world: World, limits: Limits, kernel: Kernel
) -> None:
    values = world.report(limits, kernel).as_json()
    digest = values.pop("digest")
    del values["revision"], values["visits"]
    assert digest == hashlib.sha256(rfc8785.dumps(values)).hexdigest()


@pytest.mark.promise("G-8", "G-9", "G-10")
@settings(max_examples=150)
@given(worlds(), kernels, st.data())
def test_smaller_limits_give_the_beginning_and_say_so(world: World, kernel: Kernel, data: st.DataObject) -> None:
    graph = world.graph()
    full = world.report(Limits(max_loops=50), kernel, graph)
    own = [loop for loop in full.loops if loop.is_self]
    asked = Limits(max_loops=data.draw(st.integers(1, 50)), max_visits=data.draw(st.integers(0, 150)))
    some = world.report(asked, kernel, graph)
    assert some.loops == full.loops[: len(some.loops)]
    longer = len(some.loops) - len(own)
    match some.verification:
        case Verification.COMPLETE:
            assert some.loops == full.loops
            assert full.verification is Verification.COMPLETE
        case Verification.MORE_LOOPS:
            assert longer == asked.max_loops
            assert len(full.loops) > len(some.loops) or full.verification is Verification.MORE_LOOPS
        case Verification.WALK_LIMITED:
            assert longer >= 1
        case Verification.NOT_VERIFIED:
            assert longer == 0


@pytest.mark.promise("G-16", "P-9")
@given(worlds(), limits, kernels, st.sampled_from(Language))
def test_no_text_holds_a_name_that_its_reader_may_not_read(
    world: World, limits: Limits, kernel: Kernel, language: Language
) -> None:
    hidden = sorted({one.ref for one in world.published if world.hides(one.ref)})
    agents = {ref: (f"hidden {i}", "secret/place") for i, ref in enumerate(hidden)}
    text = report_text(renamed(world, agents, lambda _, event: event).report(limits, kernel), language)
    assert "hidden" not in text
    assert "secret" not in text
