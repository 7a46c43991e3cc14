"""The audit on one machine: all cores, progress, and parts that are kept so that an interrupted audit goes on where it was."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np

from graphsvc.audit.bounds import least_lengths
from graphsvc.audit.components import find_components
from graphsvc.audit.findings import EVENT_FINDINGS, component_findings
from graphsvc.audit.parts import Parts
from graphsvc.audit.shortest import Found, shortest_loops
from graphsvc.audit.tenant import read_tenant
from graphsvc.audit.view import View, view_of
from graphsvc.collecting import uncollected
from graphsvc.columns import Columns
from graphsvc.domain.audit import AuditLimits, Finding, Progress, ShortestLoop
from graphsvc.domain.names import Scope
from graphsvc.domain.redaction import Reader

PART_AGENTS = 2_048
"""Agents whose shortest loops are searched as one part."""

_READ_STEP = 5_000
_TOLD_STEP = 1_000

Tell = Callable[[Progress], None]


def _untold(_: Progress) -> None:
    """For callers that want no progress."""


def audit(
    parts: Iterable[Columns],
    reader: Reader,
    *,
    scopes: Sequence[Scope] = (),
    limits: AuditLimits | None = None,
    folder: Path | None = None,
    tell: Tell = _untold,
) -> Iterator[Finding]:
    """The findings about the graph of versions in columns, each agent given once: the same bytes whatever order they come in.

    reader: for whom. scopes: only agents of these; of all that the reader may read where there is none. folder: where finished
    parts are kept, so that an audit of the same graph goes on from them. tell: called with what is being done.

    The call reads and searches; the findings are put into words as they are taken. Progress counts what the reader may read and no
    more. What `tell` raises ends the audit.
    """
    limits = limits or AuditLimits()
    with uncollected():
        tenant = read_tenant(_counted(parts, reader, tell))
    tell(Progress(step="finding components", done=0, total=None))
    core = find_components(tenant)
    view = view_of(tenant, core, reader, scopes, limits)
    found = _search(view, Parts(folder, view) if folder else None, tell)
    return _in_words(view, found, tell)


def _counted(parts: Iterable[Columns], reader: Reader, tell: Tell) -> Iterator[Columns]:
    seen, told = 0, 0
    for columns in parts:
        yield columns
        seen += int(np.count_nonzero(np.array([reader.may_read(scope) for scope in columns.scopes], np.bool_)[columns.scope]))
        if seen // _READ_STEP > told // _READ_STEP:
            told = seen
            tell(Progress(step="reading agents", done=seen, total=None))
    tell(Progress(step="reading agents", done=seen, total=seen))


def _search(view: View, parts: Parts | None, tell: Tell) -> Found:
    """The shortest loops of all agents asked for that lie in components, in their order."""
    asked = view.searched()
    chunks = [asked[at : at + PART_AGENTS] for at in range(0, len(asked), PART_AGENTS)]
    results: dict[int, Found] = {}

    least = least_lengths(view.core, view.readable_inside, view.limits.max_length)

    def search(number: int) -> Found:
        found = shortest_loops(view.core, view.readable_inside, least, chunks[number], view.limits)
        if parts:
            parts.write(number, found)  # here, not by whoever waits: what was searched is kept although another part fails
        return found

    done = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        running: dict[Future[Found], int] = {}
        try:
            for number, chunk in enumerate(chunks):
                kept = parts.read(number) if parts else None
                if kept is None:
                    running[pool.submit(search, number)] = number
                else:
                    results[number] = kept
                    done += len(chunk)
            tell(Progress(step="searching loops", done=done, total=len(asked)))
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    number = running.pop(future)
                    results[number] = future.result()
                    done += len(chunks[number])
                    tell(Progress(step="searching loops", done=done, total=len(asked)))
        finally:
            for future in running:
                future.cancel()
    return _joined([results[number] for number in range(len(chunks))])


def _joined(results: list[Found]) -> Found:
    if not results:
        return Found(np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int32))
    first = np.append(0, np.cumsum([len(result.loops) for result in results]))
    return Found(
        np.concatenate([result.lengths for result in results]),
        np.concatenate([result.ends + before for result, before in zip(results, first, strict=False)]),
        np.concatenate([result.loops for result in results]),
    )


def _in_words(view: View, found: Found, tell: Tell) -> Iterator[Finding]:
    done, total = 0, int(np.count_nonzero(found.lengths > 0))
    for component in view.reported().tolist():
        for number, finding in enumerate(component_findings(view, component, found)):
            if number % _TOLD_STEP == 0:
                tell(Progress(step="describing loops", done=done, total=total))
            if isinstance(finding, ShortestLoop):
                done += len(finding.shortest_for)  # every agent with a loop is served by one of them
            yield finding
    tell(Progress(step="looking at events", done=0, total=len(EVENT_FINDINGS)))
    for done, findings in enumerate(EVENT_FINDINGS, start=1):
        yield from findings(view)
        tell(Progress(step="looking at events", done=done, total=len(EVENT_FINDINGS)))
