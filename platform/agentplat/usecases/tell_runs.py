"""Words for runs and trails: the same on every edge (P-9)."""

from __future__ import annotations

from agentplat.domain.languages import Language
from agentplat.domain.run_texts import RUN_SENTENCES, say, step_text
from agentplat.domain.runs import Run
from agentplat.domain.shown_runs import ShownRun, ShownStep
from agentplat.domain.trail import Fault


def run_text(shown: ShownRun, language: Language) -> str:
    """A run in one line."""
    run = shown.run
    what = "cancel_asked" if run.cancel_asked_at is not None and not run.ended else "run"
    state = RUN_SENTENCES[language][run.state.value]
    return say(what, language, run=run.id, agent=run.agent.text, version=run.number, state=state)


def shown_step_text(step: ShownStep, language: Language) -> str:
    """A step in one line."""
    return step_text(step.kind.value, step.body, step.hidden, language)


def verification_text(run: Run, fault: Fault | None, language: Language) -> str:
    """What looking through a trail came to."""
    if fault is None:
        return say("intact", language, run=run.id, steps=run.steps)
    return say("fault", language, run=run.id, number=fault.number, fault=RUN_SENTENCES[language][f"fault.{fault.kind.value}"])
