"""Limits and sizes of chains in SQL."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from typing_extensions import override

from agentplat.domain.chains import ChainLimits
from agentplat.store import runtime_schema as schema
from agentplat.store.port import Chains
from agentplat.store.registry import insert


class SqlChains(Chains):
    """Chains in SQL; `store.port` says what each method does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @override
    def limits(self) -> ChainLimits:
        limits = schema.platform_limits.c
        row = self._connection.execute(sa.select(limits.chain_hops, limits.chain_runs)).one()
        return ChainLimits(hops=row.chain_hops, runs=row.chain_runs)

    @override
    def set_limits(self, limits: ChainLimits) -> None:
        row = schema.platform_limits.update().values(chain_hops=limits.hops, chain_runs=limits.runs)
        self._connection.execute(row)

    @override
    def take(self, chain: int, most: int) -> bool:
        # Counting in the chain's row, and not in the runs, lets no two who open a run at once both take the last place.
        if self._count_one_more(chain, most):
            return True
        # The row is there unless an older worker opened the chain.
        self._connection.execute(insert(self._connection, schema.chains).values(run_id=chain).on_conflict_do_nothing())
        return self._count_one_more(chain, most)

    def _count_one_more(self, chain: int, most: int) -> bool:
        chains = schema.chains
        free = sa.and_(chains.c.run_id == chain, chains.c.runs < most)
        return self._connection.execute(chains.update().where(free).values(runs=chains.c.runs + 1)).rowcount == 1

    @override
    def size(self, chain: int) -> int:
        chains = schema.chains.c
        return self._connection.execute(sa.select(chains.runs).where(chains.run_id == chain)).scalar() or 1
