"""The shape of a manifest as a JSON Schema, and its bounds; what reads a manifest takes the fields that it knows from here."""

from __future__ import annotations

from typing import Any

from graphsvc.domain.model import MAX_EVENTS
from graphsvc.domain.names import MAX_NAME_BYTES

API_VERSION = "agentplat/v1"
KIND = "Agent"
DRIVERS = ("scripted", "model", "external")
STAGES = ("draft", "beta", "stable")
MAX_DESCRIPTION_BYTES = 4 * 1024
MAX_INSTRUCTIONS_BYTES = 64 * 1024
MAX_TOOLS = 100
LARGEST_NUMBER = 2**53 - 1
"""The largest whole number that every reader of JSON keeps exactly."""

_NAME: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": MAX_NAME_BYTES}
_SCOPE: dict[str, Any] = {"type": ["string", "null"], "minLength": 1, "maxLength": MAX_NAME_BYTES, "pattern": "^[^/:]+$"}
_WHOLE: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": LARGEST_NUMBER}
_NUMBER: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": LARGEST_NUMBER}

_METADATA: dict[str, Any] = {
    "type": "object",
    "description": "Which agent this is.",
    "additionalProperties": False,
    "required": ["name"],
    "properties": {
        "name": {**_NAME, "description": "The agent's name, unique within its company and area."},
        "company": {**_SCOPE, "description": "The company the agent belongs to; left out for an agent of the whole installation."},
        "area": {**_SCOPE, "description": "The area of the company; left out for an agent of the whole company."},
        "description": {
            "type": ["string", "null"],
            "maxLength": MAX_DESCRIPTION_BYTES,
            "description": "What the agent is for, in a sentence or two for people.",
        },
    },
}

_EMIT: dict[str, Any] = {
    "description": "An event: its name, or the name with the artifact contract that its listeners can rely on.",
    "oneOf": [
        _NAME,
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["event"],
            "properties": {
                "event": {**_NAME, "description": "The event's name, one namespace for the whole installation."},
                "context": {
                    **_NAME,
                    "type": ["string", "null"],
                    "description": "The kind of context that listeners receive.",
                },
                "artifacts": {
                    "type": ["array", "null"],
                    "items": _NAME,
                    "uniqueItems": True,
                    "maxItems": MAX_EVENTS,
                    "description": "Names of the artifacts that listeners may ask for.",
                },
            },
        },
    ],
}

_SPEC: dict[str, Any] = {
    "type": ["object", "null"],
    "description": "What the version does.",
    "additionalProperties": False,
    "properties": {
        "emits": {
            "type": ["array", "null"],
            "items": _EMIT,
            "maxItems": MAX_EVENTS,
            "description": "The events that the agent emits.",
        },
        "listens": {
            "type": ["array", "null"],
            "items": _NAME,
            "uniqueItems": True,
            "maxItems": MAX_EVENTS,
            "description": "The events that start the agent.",
        },
        "driver": {
            "type": ["object", "null"],
            "required": ["kind"],
            "properties": {"kind": {"enum": list(DRIVERS), "description": "What runs the agent."}},
            "description": "What runs the agent; fields beside `kind` are options of that driver.",
        },
        "instructions": {
            "type": ["string", "null"],
            "maxLength": MAX_INSTRUCTIONS_BYTES,
            "description": "What the agent is told: narrow, naming the artifacts that matter and when to read them.",
        },
        "tools": {
            "type": ["array", "null"],
            "items": _NAME,
            "uniqueItems": True,
            "maxItems": MAX_TOOLS,
            "description": "Names of the tools that the agent may call.",
        },
        "budget": {
            "type": ["object", "null"],
            "additionalProperties": False,
            "description": "Most that one run may spend; a field left out is not limited here.",
            "properties": {
                "money_usd": {**_NUMBER, "description": "Money in US dollars."},
                "tokens": {**_WHOLE, "description": "Tokens of models, read and written together."},
                "tool_calls": {**_WHOLE, "description": "Calls of tools."},
                "seconds": {**_NUMBER, "description": "Time in seconds."},
            },
        },
        "stage": {
            "enum": [*STAGES, None],
            "description": "How far the agent has come, for people to read; nothing behaves differently for it.",
        },
    },
}

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Agent manifest",
    "description": "One version of an agent: who it is, which events it emits and hears, and how it is run.",
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": API_VERSION, "description": "The version of this format."},
        "kind": {"const": KIND, "description": "What the document describes."},
        "metadata": _METADATA,
        "spec": _SPEC,
    },
}


def fields_of(*path: str) -> tuple[str, ...]:
    """The fields that a mapping of the manifest may have, such as those of ``("spec", "budget")``, in their order."""
    found = SCHEMA
    for step in path:
        found = found["properties"][step]
    return tuple(found["properties"])
