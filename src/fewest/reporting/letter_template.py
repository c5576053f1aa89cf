"""Letters in a form of one's own: a Jinja template that can show what it is given and do nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fewest.errors import DataError, MissingExtraError, UsageError

PAGES = (".html", ".htm", ".html.j2", ".htm.j2")
MOST = 1_000_000  # characters of a template


@dataclass(frozen=True)
class LetterTemplate:
    """A Jinja template for letters; it runs in a sandbox.

    It is given ``sender`` and ``recipient`` (lists of lines), ``our_reference``, ``dated`` (text), ``date``,
    ``language``, ``subject``, ``label`` (of the case), ``given`` and ``tied`` (reasons: ``number``, ``code``, ``text``,
    ``case``, ``typical``, ``necessary``), ``by_effect``, ``changes`` (name, after, before), ``sets`` (how many smallest
    sets there are), ``less`` ("smaller" or "cheaper") and ``fields`` (the user's own). A name that is not given is an
    error.

    Attributes
    ----------
    source : str
    name : str
        What messages call it.
    is_page : bool
        Whether it is HTML: then everything is escaped.

    Examples
    --------
    >>> LetterTemplate("Case {{ label }}").fill({"label": "APP-7"})
    'Case APP-7'
    """

    source: str
    name: str = "the template"
    is_page: bool = False

    @classmethod
    def read(cls, path: str | Path) -> LetterTemplate:
        """Read a template; one whose name ends in .html or .html.j2 makes HTML, any other text."""
        path = Path(path)
        if not path.is_file():
            raise DataError(f"there is no file {path}", do="check the path of the template")
        try:
            source = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise DataError(f"{path.name} is not UTF-8 text", do="save it as UTF-8") from error
        if len(source) > MOST:
            raise DataError(f"{path.name} has more than {MOST:,} characters", do="shorten it")
        return cls(source, path.name, path.name.lower().endswith(PAGES))

    def fill(self, values: Mapping[str, Any]) -> str:
        """The letter; a mistake in the template is named with its line."""
        from jinja2 import StrictUndefined, TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(
            autoescape=self.is_page,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        try:
            page = environment.from_string(self.source).render(**values)
        except (TemplateError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            line = getattr(error, "lineno", None) or _line_of(error)
            where = "" if line is None else f", line {line}"
            raise DataError(
                f"{self.name}{where}: {error}", do=f"correct the template; it is given {', '.join(sorted(values))}"
            ) from error
        return page.encode("utf-8", "replace").decode("utf-8")


def _line_of(error: BaseException) -> int | None:
    """The line of the template in which an error arose."""
    found, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            found = trace.tb_lineno
        trace = trace.tb_next
    return found


def long_date(day: date, locale: str | None) -> str:
    """A date as people write it in a language, by Babel; without a locale as 2026-11-12.

    Examples
    --------
    >>> long_date(date(2026, 11, 12), None)
    '2026-11-12'
    """
    if locale is None:
        return day.isoformat()
    if find_spec("babel") is None:
        raise MissingExtraError("dates of a locale need Babel", do='pip install "fewest[letters]"')
    from babel import Locale, UnknownLocaleError
    from babel.dates import format_date

    try:
        return str(format_date(day, format="long", locale=Locale.parse(locale.replace("-", "_"))))
    except (UnknownLocaleError, ValueError) as error:
        raise UsageError(f"there is no locale {locale!r}", do="use one like en_GB, de_DE or fr") from error
