"""Approvals: what a run waits for, with exactly what would run, and a person's answer (U-7, A-14)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Path
from starlette.responses import Response

from agentplat.domain.errors import Conflict, InvalidInput
from agentplat.studio.refusals import Told, told
from agentplat.studio.rendering import Page
from agentplat.studio.visitors import Actor, Reader, Visitor, go_to
from agentplat.usecases.decide_approval import ShownApproval

router = APIRouter()

_PLAIN = ("tool", "effect", "description", "agent", "version", "run", "call")
Id = Annotated[int, Path(ge=1, le=2**63 - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalPage(Page):
    """One question. facts: what would run, by name; arguments: as JSON. refusal: why an answer was not taken."""

    template: ClassVar[str] = "approval.html"
    shown: ShownApproval
    facts: tuple[tuple[str, str], ...]
    labels: tuple[str, ...]
    arguments: str
    waits: bool
    refusal: tuple[Told, ...] = ()


@router.get("/approvals/{approval}", response_model=None)
def approval(found: Reader, approval: Id) -> Response:
    """One question, with exactly what would run."""
    return found.show(_page(found, approval), "inbox")


@router.post("/approvals/{approval}", response_model=None)
def answer(found: Actor, approval: Id) -> Response:
    """Grant or refuse what was shown: the form carries its digest."""
    granted, reason = found.form.get("answer") == "grant", found.form.get("reason", "").strip() or None
    try:
        run = found.cases.governing.approvals.decide(found.person, approval, found.form.get("digest", ""), granted, reason)
    except (Conflict, InvalidInput) as error:
        return found.show(_page(found, approval, told(error)), "inbox", status=409 if isinstance(error, Conflict) else 422)
    return go_to(f"/runs/{run.id}")


def _page(found: Visitor, approval_id: int, refusal: tuple[Told, ...] = ()) -> ApprovalPage:
    shown = found.cases.governing.approvals.one(found.person, approval_id)
    order: dict[str, Any] = shown.order or {}
    return ApprovalPage(
        shown=shown,
        facts=tuple((name, str(order[name])) for name in _PLAIN if order.get(name) is not None),
        labels=tuple(order.get("labels", ())),
        arguments=json.dumps(order.get("arguments"), indent=2, ensure_ascii=False),
        waits=shown.approval.granted is None and shown.run.state.value == "waiting",
        refusal=refusal,
    )
