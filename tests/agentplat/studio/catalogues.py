"""Every text of the pages, as Babel finds them in code and templates."""

from __future__ import annotations

import agentplat.studio
from agentplat.domain.languages import Language
from agentplat.studio.words import catalogue_file
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po

METHODS = [("**.py", "python"), ("templates/**.html", "jinja2.ext:babel_extract")]
OPTIONS = {"templates/**.html": {"extensions": "jinja2.ext.do", "trimmed": "false"}}
KEYWORDS = {"_": None, "gettext": None, "say": None, "ngettext": (1, 2)}


def text_of(message: object) -> str:
    """A text, or of one that goes with a number, what it is for one."""
    return str(message[0] if isinstance(message, (tuple, list)) else message)


def forms_of(message: Message) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The text for one and for many, and what each was translated to."""
    said = message.id if isinstance(message.id, (tuple, list)) else (message.id,)
    told = message.string if isinstance(message.string, (tuple, list)) else (message.string,)
    return tuple(map(str, said)), tuple(map(str, told))


def source_texts() -> list[str]:
    """The texts that a translator has to know, in the order they stand."""
    [folder] = agentplat.studio.__path__
    found = extract_from_dir(folder, METHODS, OPTIONS, KEYWORDS)
    return list(dict.fromkeys(text_of(message) for _, _, message, _, _ in found))


def catalogue(language: Language, name: str = "studio") -> Catalog:
    """What was translated."""
    with catalogue_file(language, name).open("rb") as source:
        return read_po(source, locale=language.value)
