"""Arguments of tool calls: taken in within bounds, and held against the schema that the tool declares (A-12)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from referencing import Registry

from agentplat.domain.canonical import canonical_json
from agentplat.domain.errors import InvalidInput, Violation
from agentplat.domain.schemas.values import MOST_DEPTH, depth

MOST_BYTES = 256 * 1024


def canonical_arguments(arguments: Mapping[str, Any]) -> bytes:
    """The arguments as canonical JSON. Raises InvalidInput for what JSON does not have, and for too much of it."""
    if depth(arguments) > MOST_DEPTH:
        remedy = f"nest at most {MOST_DEPTH} deep"
        raise InvalidInput([Violation(field="arguments", reason="are nested too deep", remedy=remedy)])
    try:
        data = canonical_json(dict(arguments)).encode()
    except ValueError:
        remedy = "send JSON values: no NaN, no lone surrogates, no integers beyond 2**53"
        raise InvalidInput([Violation(field="arguments", reason="are not JSON", remedy=remedy)]) from None
    if len(data) > MOST_BYTES:
        remedy = f"send at most {MOST_BYTES}"
        raise InvalidInput([Violation(field="arguments", reason=f"are {len(data)} bytes of JSON", remedy=remedy)])
    return data


def fault_of(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str | None:
    """What is wrong with arguments; None where they fit. Says what the schema wants and never what was given: it goes into a trail.

    The schema is the tool's own, so it is trusted; still nothing is ever fetched for it.
    """
    found = best_match(Draft202012Validator(dict(schema), registry=Registry()).iter_errors(dict(arguments)))
    if found is None:
        return None
    properties = schema.get("properties", {})
    path = "/".join(str(part) if part in properties or isinstance(part, int) else "…" for part in found.absolute_path)
    wanted = json.dumps(found.validator_value, ensure_ascii=False)
    return f"the arguments do not fit the tool's schema at /{path}: {found.validator} {wanted[:500]}"
