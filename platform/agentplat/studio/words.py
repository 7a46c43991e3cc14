"""The pages' own words in each language, from catalogues, and how moments, amounts and names are written.

Sentences about loops, runs and trails are not here: they come from the use cases, word for word as everywhere (P-9).
"""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib.resources import files

from babel import Locale
from babel.dates import format_datetime, format_time
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_currency, format_decimal
from babel.support import NullTranslations, Translations
from markupsafe import Markup, escape

from agentplat.domain.errors import Phrase
from agentplat.domain.languages import Language

NAMES: Mapping[Language, str] = {Language.EN: "English", Language.PT: "Português", Language.HE: "עברית"}
"""What each language calls itself."""

_BIDIRECTIONAL = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_ISOLATES = frozenset("\u2066\u2068\u2069")
_KEPT = str.maketrans("", "", "\n\t")
_KEPT_IN_SENTENCES = str.maketrans("", "", "\n\t" + "".join(sorted(_ISOLATES)))
_OPEN, _CLOSE = Markup("<bdi>"), Markup("</bdi>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """One language. translations: of the texts in code and templates. refusals: of what refusals say, see `worded`."""

    language: Language
    locale: Locale
    translations: NullTranslations
    refusals: Mapping[str, str]

    @property
    def direction(self) -> str:
        """``ltr`` or ``rtl``."""
        return "rtl" if self.language is Language.HE else "ltr"

    def say(self, text: str, /, **values: object) -> str:
        """A text of the catalogue; values go in where %(name)s stands."""
        return self.translations.ugettext(text) % values if values else self.translations.ugettext(text)

    def worded(self, text: str) -> Markup:
        """A reason, a remedy or a refusal in this language, each value in it set off. What nobody translated stays English."""
        template, values = (text.template, text.values) if isinstance(text, Phrase) else (text, {})
        found = self.refusals.get(template, template)
        if template not in self.refusals and self.language is not Language.EN:
            return Markup('<span lang="en" dir="ltr">{}</span>').format(visible(text))
        shown = {name: self.worded(one) if isinstance(one, Phrase) else isolated(str(one)) for name, one in values.items()}
        return visible(found) % shown if shown else visible(found)

    def moment(self, at_ms: int) -> str:
        """A moment in words, UTC."""
        return _written(self.locale, at_ms // 1_000)

    def clock(self, at_ms: int) -> str:
        """The time of day of a moment, UTC."""
        return str(format_time(_moment(at_ms), "medium", locale=self.locale))

    def duration(self, milliseconds: int) -> str:
        """How long something took."""
        if milliseconds < 1_000:
            return self.say("%(n)s ms", n=self.number(milliseconds))
        seconds = milliseconds / 1_000
        if seconds < 60:
            return self.say("%(n)s s", n=format_decimal(round(seconds, 1), locale=self.locale))
        minutes, rest = divmod(round(seconds), 60)
        if minutes < 60:
            return self.say("%(m)s min %(s)s s", m=minutes, s=rest)
        return self.say("%(h)s h %(m)s min", h=self.number(minutes // 60), m=minutes % 60)

    def number(self, value: int) -> str:
        """A whole number."""
        return str(format_decimal(value, locale=self.locale))

    def money(self, microusd: int) -> str:
        """Money, given in millionths of a US dollar."""
        places = "¤#,##0.00" if microusd % 10_000 == 0 else "¤#,##0.00####"
        return str(format_currency(microusd / 1_000_000, "USD", places, locale=self.locale, currency_digits=False))


# A page that stays open writes the same moments whenever something changes, and how one is written depends on nothing else.
@lru_cache(maxsize=16_384)
def _written(locale: Locale, at_s: int) -> str:
    return f"{format_datetime(_moment(at_s * 1_000), 'medium', locale=locale)} UTC"


def _moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1_000, UTC)


@cache
def words_of(language: Language) -> Words:
    """The words of a language."""
    locale = Locale.parse({Language.PT: "pt_BR"}.get(language, language.value))
    if language is Language.EN:
        return Words(language=language, locale=Locale.parse("en_GB"), translations=NullTranslations(), refusals={})
    compiled = io.BytesIO()
    write_mo(compiled, _catalogue(language, "studio"))
    compiled.seek(0)
    refusals = {str(message.id): str(message.string) for message in _catalogue(language, "refusals") if message.id}
    return Words(language=language, locale=locale, translations=Translations(compiled), refusals=refusals)


def _catalogue(language: Language, name: str) -> Catalog:
    with catalogue_file(language, name).open("rb") as source:
        return read_po(source, locale=language.value)


def catalogue_file(language: Language, name: str = "studio"):  # type: ignore[no-untyped-def] # the type of a resource differs between Python versions
    """A catalogue of a language other than English. name: ``studio``, or ``refusals`` for what the platform refuses."""
    return files("agentplat.studio") / "locale" / language.value / "LC_MESSAGES" / f"{name}.po"


def visible(text: str) -> Markup:
    """A text that somebody wrote, harmless: markup is escaped, and what would move or hide its neighbours is written out."""
    # What can be printed holds nothing of what is written out; so it is with nearly every text, and this tells at once.
    if text.translate(_KEPT).isprintable():
        return escape(str(text))
    return Markup("").join(_shown(character) for character in text)


def _shown(character: str) -> Markup | str:
    hidden = character in _BIDIRECTIONAL or unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp", "Cn")
    if not hidden or character in "\n\t":
        return escape(character)
    return Markup('<span class="control">U+{}</span>').format(f"{ord(character):04X}")


def spoken(text: str) -> Markup:
    """A sentence of the platform: the isolates that set names off in it stay, all else is shown like anybody's text."""
    if text.translate(_KEPT_IN_SENTENCES).isprintable():
        return escape(str(text))
    return Markup("").join(character if character in _ISOLATES else _shown(character) for character in text)


def isolated(text: str) -> Markup:
    """A name as it stands in a sentence or a cell: shown harmless, and its direction does not spread."""
    return _OPEN + visible(text) + _CLOSE
