"""Every text that a refusal on a page can be made of, as it stands in the code of what the pages' forms come to.

A reason or a remedy is a text without values, or a phrase. Neither may be put together in any other way there, or nobody could word
it in another language.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import agentplat.domain
from agentplat.domain.pipelines import PipelineState, ProposalState
from agentplat.domain.runs import RunState

import graphsvc.domain

MODULES = (
    *(f"graphsvc/{name}.py" for name in ("domain/names", "domain/model")),
    *(f"graphsvc/declarations/{name}.py" for name in ("faults", "fields", "manifest", "yaml_tree")),
    *(f"agentplat/domain/{name}.py" for name in ("actions", "errors", "mentions")),
    *(f"agentplat/usecases/{name}.py" for name in ("texts", "speak", "manage_workspaces", "manage_spaces", "manage_tickets")),
    *(
        f"agentplat/usecases/{name}.py"
        for name in ("decide_proposal", "decide_approval", "cancel_run", "cancel_pipeline", "open_run")
    ),
    *(f"agentplat/studio/{name}.py" for name in ("app", "monitoring", "publishing", "visitors")),
    "agentplat/loop_check.py",
)
_ROOTS = {
    name: Path(module.__path__[0]).parent.parent
    for name, module in (("graphsvc", graphsvc.domain), ("agentplat", agentplat.domain))
}

ELSEWHERE = frozenset(
    {
        # Of settings and files of the server, of links between repositories, of labels that no form carries.
        "graph_ca",
        "link",
        "_demand_passage",
        "open_loop_check",
        # What a guard keeps from being started is told in the conversation, word for word as it is stored.
        "_demand_start",
        # Bytes of a file.
        "_text",
        # How a mention was passed over, which no page tells.
        "_ignored",
        "mention",
    }
)
"""Functions whose texts no form of a page leads to."""

DYNAMIC = frozenset({"this workspace", *(state.value for states in (RunState, PipelineState, ProposalState) for state in states)})
"""Phrases that are made of the value of something."""

_HELD = {"reason", "remedy", "said", "has", "given", "problem", "kind"}
_LAST_TWO = {"refuse", "_refuse", "_Wrong", "_wrong"}
_FIRST = {"Conflict", "phrase", "__init__"}


class Texts(ast.NodeVisitor):
    """What stands at the places of reasons, remedies and refusals. faults: where something else stands there."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: set[str] = set()
        self.faults: list[str] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Look into a function that a form can lead to."""
        if node.name not in ELSEWHERE or (node.name == "_text" and "actions" in self.file):
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """The arguments of what refuses."""
        called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if called == "Violation":
            self._take(*(one.value for one in node.keywords if one.arg in ("reason", "remedy")))
        elif called == "Told":
            self._take(*(one.value for one in node.keywords if one.arg == "reason"))
        elif called in _LAST_TWO:
            self._take(*node.args[-2:])
        elif called in _FIRST:
            self._take(*node.args[:1])
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """What is put aside under a name of a reason or a remedy."""
        for target in node.targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            for name, value in zip(names, values, strict=False):
                if isinstance(name, ast.Name) and name.id in _HELD - {"kind"}:
                    self._take(value)
        self.generic_visit(node)

    def _take(self, *values: ast.expr) -> None:
        for value in values:
            match value:
                case ast.Constant(value=str() as text):
                    self.found |= {text} - {""}
                case ast.JoinedStr() | ast.BinOp():
                    self.faults.append(f"{self.file}:{value.lineno}")
                case ast.IfExp():
                    self._take(value.body, value.orelse)
                case _:
                    pass


def _looked_through() -> Iterator[Texts]:
    for file in MODULES:
        root = _ROOTS[file.partition("/")[0]]
        texts = Texts(file)
        texts.visit(ast.parse((root / file).read_text(encoding="utf-8")))
        yield texts


def refusal_texts() -> set[str]:
    """What a translator has to know."""
    return {text for texts in _looked_through() for text in texts.found} | DYNAMIC


def put_together() -> list[str]:
    """Where a reason or a remedy is put together so that nobody can word it anew."""
    return [fault for texts in _looked_through() for fault in texts.faults]
