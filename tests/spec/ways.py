"""``python -m tests.spec.ways``: write docs/guards.md, every way to make work with the guards that cover it, from the code.

What makes work is read from the sources: each call of `open_work`, `make_ticket`, `runs.open` and `tickets.make`. From there the
calls are followed back to whoever begins them: routes, tools, processes. A function counts as calling all that it names, and all
methods of a class that it names, so that a way is rather listed twice than missed.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

import agentplat
from agentplat.domain.tools import ToolSpec
from agentplat.usecases.catalogue import UseCases, build_acting

PAGE = Path("docs/guards.md")
PACKAGE = Path(agentplat.__file__).parent
HTTP = frozenset({"get", "post", "put", "patch", "delete"})
PROCESSES = {
    "dispatcher": "the dispatcher",
    "worker": "a worker",
    "courier": "the courier",
    "pipeline_runner": "the runner of pipelines",
}

_CHAIN = "limit of hops, budget of runs, barrier, pause"
# What stands before each place that makes work, by the function that does. A new one has to be given its guards here.
GUARDS: Mapping[str, tuple[str, str]] = {
    "usecases.hand_over:hand_over": (
        "a delegated ticket",
        "depth, cycle, autonomy, budget; where a person delegates: depth, cycle",
    ),
    "usecases.hand_over:_opened": ("the delegate's run", f"after those of its ticket: {_CHAIN}"),
    "usecases.speak:_Calling.mention": ("the run of a mention", f"{_CHAIN}; an agent's: autonomy, messages of a pair"),
    "usecases.manage_tickets:ManageTickets.create": ("a ticket that hands nothing on", "depth where it has a parent"),
    "usecases.ticket_tools:CreateTicket.act": ("a ticket that hands nothing on", "depth where it has a parent"),
    "usecases.open_run:OpenRun.__call__": ("a person's run, which begins a chain", "barrier"),
    "usecases.dispatch_events:_Leaving._open": ("the run of an event", f"{_CHAIN}, own events"),
    "usecases.move_pipeline:Movement._opened": ("the run of a pipeline's step", f"{_CHAIN}, the pipeline's budget"),
    # The one place for each that others go through, with the guards above.
    "usecases.make_ticket:make_ticket": ("", ""),
    "usecases.open_work:open_work": ("", ""),
}


@dataclass(frozen=True)
class Way:
    """A way to make work. begins: what it begins with. maker: the function that makes the work."""

    kind: str
    begins: str
    maker: str


@dataclass
class _Sources:
    """Functions of the package by ``module:name``, what each names, and where its use cases are called. methods: by class."""

    names: dict[str, set[str]] = field(default_factory=dict)
    makers: set[str] = field(default_factory=set)
    cases: dict[str, set[str]] = field(default_factory=dict)
    routes: dict[str, str] = field(default_factory=dict)
    methods: dict[str, list[str]] = field(default_factory=dict)

    def reached(self, starts: set[str]) -> set[str]:
        """All functions that are called from these, themselves among them."""
        found, waiting = set(starts), list(starts)
        while waiting:
            new = self._next(waiting.pop()) - found
            found |= new
            waiting.extend(new)
        return found

    def _next(self, name: str) -> set[str]:
        called = self.names.get(name, set())
        # Whoever names a class may call any of its methods.
        return {known for one in called for known in (one, *self._methods(one)) if known in self.names}

    def _methods(self, name: str) -> list[str]:
        if not self.methods:
            for known in self.names:
                self.methods.setdefault(known.rpartition(".")[0], []).append(known)
        return self.methods.get(name, [])


def _module(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def _imported(tree: ast.Module) -> dict[str, str]:
    """What names of a module stand for that come from elsewhere in the package."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("agentplat."):
            module = node.module.removeprefix("agentplat.")
            found |= {alias.asname or alias.name: f"{module}:{alias.name}" for alias in node.names}
    return found


def _dotted(node: ast.AST) -> list[str]:
    """``a.b.c`` as its parts; what it begins with may be any expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [*([node.id] if isinstance(node, ast.Name) else [""]), *reversed(parts)]


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.AST, str | None]]:
    """Functions and methods with their names, and the class that they are of."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node, None
        elif isinstance(node, ast.ClassDef):
            yield (
                node.name,
                ast.Module(body=[one for one in node.body if not isinstance(one, ast.FunctionDef)], type_ignores=[]),
                None,
            )
            for one in node.body:
                if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{node.name}.{one.name}", one, node.name
        else:
            yield "", node, None


def _makes(dotted: list[str]) -> bool:
    return dotted[-1] in ("open_work", "make_ticket") or dotted[-2:] in (["runs", "open"], ["tickets", "make"])


def read_sources() -> _Sources:
    """Look through the whole package."""
    found = _Sources()
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        module, imported = _module(path), _imported(tree)
        local = {name.partition(".")[0] for name, _, _ in _functions(tree)}
        for name, node, owner in _functions(tree):
            full = f"{module}:{name}"
            names = found.names.setdefault(full, set())
            inner = {one.value for one in ast.walk(node) if isinstance(one, ast.Attribute)}
            for one in ast.walk(node):
                if isinstance(one, ast.Call) and _makes(_dotted(one.func)):
                    found.makers.add(full)
                if isinstance(one, ast.Name):
                    names |= {imported[one.id]} if one.id in imported else set()
                    names |= {f"{module}:{one.id}"} if one.id in local else set()
                if isinstance(one, ast.Attribute):
                    dotted = _dotted(one)
                    if dotted[0] == "self" and owner is not None:
                        names.add(f"{module}:{owner}.{dotted[1]}")
                    if "use_cases" in dotted and one not in inner:
                        found.cases.setdefault(full, set()).add(".".join(dotted[dotted.index("use_cases") + 1 :]))
            for said in _routes_of(node):
                found.routes[f"{full} {said}"] = said
    return found


def _routes_of(node: ast.AST) -> Iterator[str]:
    """The method and path of each route that a function answers, as far as its decorator says it."""
    for decorator in getattr(node, "decorator_list", ()):
        if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Attribute) and decorator.func.attr in HTTP:
            [where] = [str(one.value) for one in decorator.args[:1] if isinstance(one, ast.Constant)]
            yield f"{decorator.func.attr.upper()} {where}"


def _prefix(module: str) -> str:
    """What the router of a module puts before its paths."""
    tree = ast.parse((PACKAGE / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _dotted(node.func)[-1] == "APIRouter":
            given = {one.arg: one.value for one in node.keywords}
            prefix = given.get("prefix")
            return str(prefix.value) if isinstance(prefix, ast.Constant) else ""
    return ""


def _case(chain: str) -> str:
    """The function that ``together.tickets.create`` stands for."""
    kind: Any = UseCases
    parts = chain.split(".")
    while parts and parts[0] in get_type_hints(kind):
        kind = get_type_hints(kind)[parts.pop(0)]
    method = parts[0] if parts else "__call__"
    return f"{kind.__module__.removeprefix('agentplat.')}:{kind.__name__}.{method}"


def _tools() -> Mapping[str, tuple[ToolSpec, type]]:
    """The tools of the platform, with their classes."""
    nothing: Any = None
    installed = build_acting(nothing, nothing, 1.0).act.tools.gate.tools
    return {name: (tool.spec, type(tool)) for name, tool in sorted(installed.items())}


def ways() -> list[Way]:
    """Every way to make work, in the order of the page."""
    sources = read_sources()
    found: list[Way] = []
    for place, said in sorted(sources.routes.items()):
        full = place.partition(" ")[0]
        module = full.partition(":")[0]
        begun = {_case(chain) for one in sources.reached({full}) for chain in sources.cases.get(one, ())}
        method, _, where = said.partition(" ")
        kind = "page" if module.startswith("studio") else "HTTP"
        found += _made(sources, begun, kind, f"`{method} {_prefix(module)}{where}`")
    for name, (_, kind_of_tool) in _tools().items():
        classes = [one for one in inspect.getmro(kind_of_tool) if one.__module__.startswith("agentplat.usecases")]
        owners = tuple(f"{one.__module__.removeprefix('agentplat.')}:{one.__name__}." for one in classes)
        found += _made(sources, {known for known in sources.names if known.startswith(owners)}, "tool", f"`{name}`")
    for module, said in PROCESSES.items():
        found += _made(sources, {known for known in sources.names if known.startswith(f"{module}:")}, "process", said)
    unreached = {maker for maker in sources.makers if maker in GUARDS and GUARDS[maker][0]} - {way.maker for way in found}
    if unreached or not sources.makers <= GUARDS.keys():
        missing = sorted(unreached | (sources.makers - GUARDS.keys()))
        raise LookupError(f"makes work without a known way to it, or without guards in tests/spec/ways.py: {', '.join(missing)}")
    return found


def _made(sources: _Sources, starts: set[str], kind: str, begins: str) -> list[Way]:
    makers = sorted(one for one in sources.reached(starts) & sources.makers if GUARDS.get(one, ("?", ""))[0])
    return [Way(kind=kind, begins=begins, maker=maker) for maker in makers]


def render(found: list[Way]) -> str:
    """The page as Markdown."""
    lines = [
        "# Ways to make work, and the guards before each",
        "",
        "Work begins as a ticket or as a run. Tickets are made in `make_ticket` alone, runs in `open_work`, by the dispatcher, and",
        "by `open_run` for people. This page is read from the code: a route, a tool or a process that comes to one has a row.",
        "",
        "<!-- Made from the code by: python -m tests.spec.ways -->",
        "",
        "| begins with | | makes | guards | in |",
        "|---|---|---|---|---|",
    ]
    for way in found:
        makes, guards = GUARDS.get(way.maker, ("?", "?"))
        lines.append(f"| {way.begins} | {way.kind} | {makes} | {guards} | `{way.maker}` |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(ways()), encoding="utf-8")
