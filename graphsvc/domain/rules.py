"""The rules of an audit: what a finding can be about, under ids that stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How much a finding weighs: loops stand above own-event loops, those above notices; advice and doubts weigh nothing."""

    LOOP = "loop"
    SELF = "self"
    NOTICE = "notice"
    ADVICE = "advice"
    DOUBT = "doubt"


@dataclass(frozen=True, slots=True)
class Rule:
    """What a finding is about. id: never used for anything else. meaning, remedy: what it is, and what may be done."""

    id: str
    name: str
    level: Level
    meaning: str
    remedy: str


LOOP_COMPONENT = Rule(
    "LW101",
    "loop-component",
    Level.LOOP,
    "Agents each of which leads back to itself through the others.",
    "Drop triggers as the finding triggers-to-drop of the component says, or accept the component in a baseline.",
)
CROSSING_COMPANIES = Rule(
    "LW102",
    "crossing-companies",
    Level.LOOP,
    "A loop component has agents of more than one company.",
    "See whether the companies mean to start each other's agents.",
)
SHORTEST_LOOP = Rule(
    "LW103",
    "shortest-loop",
    Level.LOOP,
    "The shortest loop through the agents named.",
    "Drop the trigger of one of its hops.",
)
TRIGGERS_TO_DROP = Rule(
    "LW104",
    "triggers-to-drop",
    Level.ADVICE,
    "Dropping these triggers leaves a component without a loop through an agent that the auditor may read.",
    "Choose from them; where the set is not proved to be smallest, fewer may do.",
)
SEARCH_CUT = Rule(
    "LW105",
    "search-cut",
    Level.DOUBT,
    "Searches for the shortest loops of these agents used up their visits.",
    "Raise the limit on visits.",
)
OWN_EVENT = Rule(
    "LW201",
    "own-event",
    Level.SELF,
    "An agent hears its own event, which never starts it.",
    "Take the trigger out, unless other agents emit the event too.",
)
UNHEARD_EVENT = Rule(
    "LW301",
    "unheard-event",
    Level.NOTICE,
    "An agent emits an event that no agent the auditor may read hears.",
    "Take the event out, or add a listener.",
)
UNFED_TRIGGER = Rule(
    "LW302",
    "unfed-trigger",
    Level.NOTICE,
    "An agent hears an event that no agent the auditor may read emits; it may come from outside.",
    "Take the trigger out, or see where the event comes from.",
)
NEAR_MISS = Rule(
    "LW303",
    "near-miss-name",
    Level.NOTICE,
    "A trigger nobody emits is named almost like an event that is emitted.",
    "Write the trigger as the event is written.",
)
RULES: tuple[Rule, ...] = (
    LOOP_COMPONENT,
    CROSSING_COMPANIES,
    SHORTEST_LOOP,
    TRIGGERS_TO_DROP,
    SEARCH_CUT,
    OWN_EVENT,
    UNHEARD_EVENT,
    UNFED_TRIGGER,
    NEAR_MISS,
)
RULE_OF: Mapping[str, Rule] = {rule.id: rule for rule in RULES}
