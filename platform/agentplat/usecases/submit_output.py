"""submit_output: the way in which a run meets its output contract (D-10 to D-12). No ticket is touched by it."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from agentplat.content.port import ContentStore
from agentplat.domain.artifacts import Blob
from agentplat.domain.autonomy import Autonomy
from agentplat.domain.contracts import MOST_TRIES, OUTPUT_FIELD, Checked, ContractMode, contract_words
from agentplat.domain.errors import Refused
from agentplat.domain.steps import ContractAccepted, ContractRejected, ResultKind
from agentplat.domain.tools import SUBMIT_OUTPUT, Asked, Effect, Given, Move, Place, ToolSpec
from agentplat.store.port import Work
from agentplat.usecases.keeping import keep_named
from agentplat.usecases.tool import WorkTool

SPEC = ToolSpec(
    name=SUBMIT_OUTPUT,
    description="Submits the output of this run, which has to fit the run's contract.",
    schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        # What the output has to look like is no schema of arguments: a wrong one is a try, and is told in full.
        "properties": {OUTPUT_FIELD: {"description": "The output itself, any JSON value, without a wrapping of its own."}},
        "required": [OUTPUT_FIELD],
        "additionalProperties": False,
    },
    # It changes nothing but the run itself, and two equal outputs are two tries.
    effect=Effect.READ,
    longest_ms=10_000,
    labels=frozenset(),
    free_from=Autonomy.PROPOSE_ONLY,
    place=Place(modes=None, contract=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitOutput(WorkTool):
    """The tool."""

    content: ContentStore

    @property
    @override
    def spec(self) -> ToolSpec:
        return SPEC

    @override
    def fault(self, asked: Asked) -> str | None:
        return None

    @override
    def artifact(self, asked: Asked) -> str | None:
        return None

    @override
    def moves(self, work: Work, asked: Asked) -> tuple[Move, ...]:
        return ()  # it stays in the run

    @override
    def within(self, work: Work, asked: Asked) -> Given:
        contract = work.contracts.of_run(asked.run.id)
        assert contract is not None  # the run would not have the tool
        if contract.output is not None:
            raise Refused("an output of this run was accepted already, and it stays; finish the run")
        checked = contract.declared.check(asked.arguments[OUTPUT_FIELD])
        output = self.content.put(checked.data)
        keep_named(work, self.content, {output: checked.data})
        if checked.faults and contract.mode is ContractMode.STRICT:
            return self._rejected(work, asked, checked, output)
        work.contracts.accept(asked.run.id, output)
        step = ContractAccepted(output=output, faults=checked.count, paths=checked.shown_paths)
        data = contract_words(checked, "the output is kept").encode()
        return Given(result=ResultKind.DONE, data=data, reason=None, steps=(step,))

    def _rejected(self, work: Work, asked: Asked, checked: Checked, output: Blob) -> Given:
        left = max(0, MOST_TRIES - work.contracts.reject(asked.run.id))
        step = ContractRejected(output=output, faults=checked.count, tries_left=left, paths=checked.shown_paths)
        reason = f"the output does not fit the contract of this run; tries left: {left}"
        ends = None if left else f"its output was rejected {MOST_TRIES} times by its contract"
        told = reason if left else f"{reason}, so that the run has failed"
        data = contract_words(checked, told).encode()
        return Given(result=ResultKind.REFUSED, data=data, reason=reason, steps=(step,), ends=ends)
