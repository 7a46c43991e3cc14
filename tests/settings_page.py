"""Compares docs/settings.md with the settings in the code, in both directions."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

from pydantic_settings import BaseSettings

PAGE = Path(__file__).resolve().parent.parent / "docs" / "settings.md"
HEADER = ["| setting | environment | unit | default | meaning |", "|---|---|---|---|---|"]


def table_of(settings: type[BaseSettings]) -> list[str]:
    """The lines that the page's table must have. Fields carry their unit in json_schema_extra and their meaning as description."""
    prefix = settings.model_config["env_prefix"]
    lines = list(HEADER)
    for name, field in settings.model_fields.items():
        extra = field.json_schema_extra
        assert isinstance(extra, dict), f"{name} has no unit"
        default = "not set" if field.default is None else f"`{field.default}`"
        lines.append(f"| `{name}` | `{prefix}{name.upper()}` | {extra['unit']} | {default} | {field.description} |")
    return lines


def table_on_page(heading: str, page: Path = PAGE) -> list[str]:
    """The lines of the first table below ``## heading``."""
    sections = page.read_text(encoding="utf-8").split("\n## ")
    [lines] = [section.splitlines() for section in sections if section.splitlines()[0] == heading]
    start = lines.index(HEADER[0])
    return list(takewhile(lambda line: line.startswith("|"), lines[start:]))
