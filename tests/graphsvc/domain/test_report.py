"""The report as a value: what its digest covers, when it warns, and its JSON form."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest

from graphsvc.domain.limits import Limits
from graphsvc.domain.names import parse_agent
from graphsvc.domain.report import BreakingSet, Hop, Loop, Report, UnfedTrigger, UnheardEvent, Verification

DEVELOPER, REVIEWER = parse_agent("acme/platform:developer"), parse_agent("acme:reviewer")
OWN_EVENT = Loop((DEVELOPER,), (Hop(("code.pushed",)),))
THROUGH_A_HIDDEN_ONE = Loop((DEVELOPER, None, REVIEWER), (Hop(("code.pushed",)), Hop(None), Hop(("review.done",), barrier=True)))
REPORT = Report(
    agent=DEVELOPER,
    verification=Verification.COMPLETE,
    loops=(OWN_EVENT, THROUGH_A_HIDDEN_ONE),
    notices=(UnheardEvent("ping"), UnfedTrigger("orders", "order"), BreakingSet(("review.done",), ())),
    limits=Limits(),
    visits=12,
    revision=7,
)


@pytest.mark.promise("G-11", "G-21")
def test_the_digest_is_of_the_canonical_json_without_revision_and_visits() -> None:
    judged = {key: value for key, value in REPORT.as_json().items() if key not in ("revision", "visits", "digest")}
    canonical = json.dumps(judged, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    assert REPORT.digest == hashlib.sha256(canonical.encode()).hexdigest()
    assert replace(REPORT, visits=None, revision=900).digest == REPORT.digest


@pytest.mark.promise("G-11")
@pytest.mark.parametrize(
    "change",
    [
        {"agent": REVIEWER},
        {"verification": Verification.MORE_LOOPS},
        {"loops": (OWN_EVENT,)},
        {"loops": (THROUGH_A_HIDDEN_ONE, OWN_EVENT)},
        {"loops": (OWN_EVENT, THROUGH_A_HIDDEN_ONE._replace(over_chain_limit=True))},
        {"notices": ()},
        {"limits": Limits(max_loops=11)},
    ],
)
def test_the_digest_changes_with_everything_that_was_judged(change: dict[str, object]) -> None:
    assert replace(REPORT, **change).digest != REPORT.digest


@pytest.mark.promise("O-3", "G-14")
def test_the_json_form_has_null_for_a_hidden_agent_and_for_a_hop_between_hidden_ends() -> None:
    assert REPORT.as_json() == {
        "agent": "acme/platform:developer",
        "verification": "complete",
        "loops": [
            {
                "agents": ["acme/platform:developer"],
                "length": 1,
                "self": True,
                "over_chain_limit": False,
                "hops": [{"events": ["code.pushed"], "barrier": False}],
            },
            {
                "agents": ["acme/platform:developer", None, "acme:reviewer"],
                "length": 3,
                "self": False,
                "over_chain_limit": False,
                "hops": [
                    {"events": ["code.pushed"], "barrier": False},
                    {"events": None, "barrier": False},
                    {"events": ["review.done"], "barrier": True},
                ],
            },
        ],
        "notices": [
            {"kind": "unheard_event", "event": "ping"},
            {"kind": "unfed_trigger", "event": "orders", "hint": "order"},
            {"kind": "breaking_set", "triggers": ["review.done"], "events": []},
        ],
        "limits": {"max_loops": 10, "max_visits": 1_000_000, "chain_limit": 8},
        "visits": 12,
        "revision": 7,
        "digest": REPORT.digest,
    }


@pytest.mark.promise("G-8", "P-4")
@pytest.mark.parametrize(
    ("verification", "may_be_more", "fully_verified", "warns_without_loops"),
    [
        (Verification.COMPLETE, False, True, False),
        (Verification.MORE_LOOPS, True, True, True),
        (Verification.WALK_LIMITED, True, False, True),
        (Verification.NOT_VERIFIED, False, False, True),
    ],
)
def test_each_verification_says_what_it_leaves_open(
    verification: Verification, may_be_more: bool, fully_verified: bool, warns_without_loops: bool
) -> None:
    assert (verification.may_be_more, verification.fully_verified) == (may_be_more, fully_verified)
    assert replace(REPORT, loops=(), verification=verification).warns is warns_without_loops
    assert replace(REPORT, verification=verification).warns


@pytest.mark.promise("G-17", "P-4")
def test_notices_alone_do_not_warn() -> None:
    assert not replace(REPORT, loops=()).warns
