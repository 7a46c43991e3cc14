"""Versions drawn at random, for what must hold of any catalogue."""

from __future__ import annotations

from hypothesis import strategies as st

from graphsvc.domain.model import AgentVersion, declare
from graphsvc.domain.names import AgentRef, Scope

_INNER = 'ab0-._ :/*"\\#é東ק😀\u00a0'
_OUTER = 'ab0-._:/*"\\#é東ק😀'

names = st.text(_OUTER, min_size=1, max_size=2) | st.builds(
    "".join, st.tuples(st.sampled_from(_OUTER), st.text(_INNER), st.sampled_from(_OUTER))
)
_parts = st.text("ab0-._#é東ק😀", min_size=1, max_size=8)
scopes = st.just(Scope()) | st.builds(Scope, _parts, st.none() | _parts)
_contracts = st.fixed_dictionaries(
    {"event": names, "context": st.none() | names, "artifacts": st.lists(names, max_size=3, unique=True)}
)
_emits = st.lists(names | _contracts, max_size=4, unique_by=lambda emit: emit if isinstance(emit, str) else emit["event"])
declarations = st.builds(declare, _emits, st.lists(names, max_size=4, unique=True))


def versions(numbers: st.SearchStrategy[int]) -> st.SearchStrategy[list[AgentVersion]]:
    """Catalogues in which every agent stands once. numbers: of the versions."""
    one = st.builds(AgentVersion, st.builds(AgentRef, scopes, names), numbers, declarations)
    return st.lists(one, max_size=8, unique_by=lambda version: version.agent)
