"""Reading the record of who did what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentplat.domain.access import Access, Role
from agentplat.domain.acts import Act
from agentplat.store.port import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ListActs:
    """For auditors: acts on agents and people of the scopes that they audit."""

    store: Store

    def __call__(self, access: Access, before: int | None, size: int) -> Sequence[Act]:
        """Newest first, with an id under `before`; nothing for who audits nothing. Raises StoreUnavailable."""
        with self.store.reading() as work:
            return [_redacted(access, act) for act in work.acts.page(access.scopes_with(Role.AUDITOR), before, size)]


def _redacted(access: Access, act: Act) -> Act:
    """The act without names of scopes that the auditor may not read."""
    scope = act.details.get("scope")
    hidden = scope is not None and not access.may_read(scope)
    return replace(act, actor=access.visible(act.actor), details={**act.details, "scope": None} if hidden else act.details)
