"""A process of its own that publishes agents one after another and prints what it then answers; run by the tests.

Standard input, as JSON: "store", a URL; "kernel", its name; "publish" and "check", lists of records of agents; "readers", lists of
scopes. Standard output: the report and its texts for each check and reader.
"""

from __future__ import annotations

import json
import sys
from contextlib import closing
from typing import Any

from graphsvc.domain.limits import LimitPolicy, Limits
from graphsvc.domain.model import AgentVersion, declare
from graphsvc.domain.names import AgentRef, parse_scope
from graphsvc.domain.redaction import reader_of
from graphsvc.domain.wording import Language, report_text
from graphsvc.kernels import jit, reference
from graphsvc.service import GraphService
from graphsvc.store.opening import open_store

KERNELS = {"reference": reference.search, "jit": jit.search}
POLICY = LimitPolicy(default=Limits(), ceiling=Limits())


def version(record: dict[str, Any]) -> AgentVersion:
    """The first version of an agent. Its events pass through sets, as those of careless callers do."""
    declaration = declare(list(set(record["emits"])), list(set(record["hears"])))
    return AgentVersion(AgentRef(parse_scope(record["scope"]), record["name"]), 1, declaration)


def answers(asked: dict[str, Any]) -> list[dict[str, Any]]:
    """What a service on this store says."""
    with closing(GraphService(open_store(asked["store"]), POLICY, KERNELS[asked["kernel"]])) as service:
        for record in asked["publish"]:
            service.import_versions([version(record)])
        reports = [
            service.check(judged.agent, judged.declaration, reader_of(set(map(parse_scope, scopes))))
            for judged in map(version, asked["check"])
            for scopes in asked["readers"]
        ]
    return [{**report.as_json(), "texts": [report_text(report, language) for language in Language]} for report in reports]


if __name__ == "__main__":
    json.dump(answers(json.load(sys.stdin)), sys.stdout, ensure_ascii=False)
