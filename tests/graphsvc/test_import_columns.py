from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsvc.columns import columns_of
from graphsvc.domain.answers import Imported
from graphsvc.domain.errors import StaleVersion, VersionConflict
from graphsvc.domain.limits import LimitPolicy, Limits
from graphsvc.domain.model import AgentVersion, declare
from graphsvc.domain.names import parse_agent
from graphsvc.domain.redaction import EVERYTHING
from graphsvc.service import GraphService
from graphsvc.store.memory import MemoryStore

_T = TypeVar("_T")
NAMES = ["*:a", "acme:a", "acme/x:b", "acme:é"]
EVENTS = st.lists(st.sampled_from(["e", "f", "ק"]), max_size=3, unique=True)
EMITS = st.lists(
    st.sampled_from(["e", "f", {"event": "g", "artifacts": ["notes"]}, {"event": "h", "context": "kind"}]),
    max_size=3,
    unique_by=lambda emit: emit if isinstance(emit, str) else emit["event"],
)
BARE = st.sampled_from([[], ["g"], ["h"], ["g", "h"]])


def service() -> GraphService:
    return GraphService(MemoryStore(patience_s=5.0), LimitPolicy(default=Limits(), ceiling=Limits()))


@st.composite
def catalogues(draw: st.DrawFn) -> list[AgentVersion]:
    names = draw(st.lists(st.sampled_from(NAMES), max_size=4, unique=True))
    return [
        AgentVersion(parse_agent(name), draw(st.sampled_from([0, 0, 1, 2])), declare(draw(EMITS | BARE), draw(EVENTS)))
        for name in names
    ]


def outcome(load: Callable[[_T], Imported], catalogue: _T) -> Imported | str:
    try:
        return load(catalogue)
    except (StaleVersion, VersionConflict) as error:
        return str(error)


@pytest.mark.promise("G-20", "G-22")
@given(st.lists(catalogues(), max_size=4), st.sampled_from([None, *NAMES]))
def test_columns_are_imported_as_their_versions_are(steps, retired):
    one, other = service(), service()
    for step, catalogue in enumerate(steps):
        outcomes = [outcome(one.import_versions, catalogue), outcome(other.import_columns, columns_of(catalogue))]
        for each in (one, other):
            if step == 1 and retired and any(version.agent == parse_agent(retired) for version in each.export(EVERYTHING)[1]):
                each.retire(parse_agent(retired))
        assert outcomes[0] == outcomes[1]
        assert list(one.export(EVERYTHING)[1]) == list(other.export(EVERYTHING)[1])
    assert one.revision == other.revision
