"""JUnit XML, for build servers: a suite for each rule, a failed case for each finding, and one that passes where there is none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape, quoteattr

from graphsvc.audit.baseline import Judged
from graphsvc.audit.formats.heading import Heading
from graphsvc.audit.messages import message_of
from graphsvc.domain.rules import RULES, Level, Rule

# Advice fails nothing; what was not looked at is an error, as JUnit has it, and no failure.
_ELEMENTS = {Level.LOOP: "failure", Level.SELF: "failure", Level.NOTICE: "failure", Level.DOUBT: "error"}


def _case(rule: Rule, name: str, inner: str) -> str:
    start = f"<testcase classname={quoteattr(rule.name)} name={quoteattr(name)}"
    return f"{start}>{inner}</testcase>" if inner else f"{start}/>"


def _found(judged: Judged) -> str:
    finding = judged.finding
    rule, message = finding.rule, message_of(finding)
    if judged.accepted is not None:
        why = f"{judged.accepted.reason} (owner: {judged.accepted.owner}, until {judged.accepted.expires.isoformat()})"
        return _case(rule, message, f"<skipped message={quoteattr(why)}/>")
    element = _ELEMENTS.get(rule.level)
    if element is None:
        return _case(rule, message, f"<system-out>{escape(rule.remedy)}</system-out>")
    return _case(
        rule, message, f"<{element} type={quoteattr(rule.id)} message={quoteattr(message)}>{escape(rule.remedy)}</{element}>"
    )


def _suite(rule: Rule, cases: list[str]) -> Iterator[str]:
    counts = {kind: sum(f"<{element} " in case for case in cases) for kind, element in _COUNTED.items()}
    numbers = " ".join(f'{kind}="{count}"' for kind, count in counts.items())
    yield f'<testsuite name={quoteattr(f"{rule.id} {rule.name}")} tests="{max(1, len(cases))}" {numbers}>'
    yield from cases or [_case(rule, "nothing found", "")]
    yield "</testsuite>"


_COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def junit(_: Heading, judged: Iterable[Judged]) -> Iterator[str]:
    """One document. Its suites say first how many cases they have, so that all findings are held until then."""
    cases: dict[str, list[str]] = {rule.id: [] for rule in RULES}
    for each in judged:
        cases[each.finding.rule.id].append(_found(each))
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<testsuites name="graphsvc audit">'
    for rule in RULES:
        yield from _suite(rule, cases[rule.id])
    yield "</testsuites>"
