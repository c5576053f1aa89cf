"""What may change and what is believable, as the command line says it: --only, --range, --one-of, --credibility."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fewest import credibility
from fewest.apps.cli._sources import Source
from fewest.apps.cli._text import label_key
from fewest.apps.cli._words import directions
from fewest.constraints import AtMost, Constraint, Immutable, OneOf, Only, Range
from fewest.credibility import Credibility
from fewest.errors import UsageError, check_word
from fewest.tables.schema import Schema

if TYPE_CHECKING:
    from fewest.apps.cli._main import ExplainRequest

DENSITIES = ("mixture", "neighbours", "leaf-support")


def read_rules(request: ExplainRequest, schema: Schema) -> list[Constraint]:
    """The constraints that options and the table of features ask for."""
    ways = {**directions(request.schema), **dict(_pairs("--only", request.only, schema, "income=up"))}
    for way in ways.values():
        check_word("--only", way, ("up", "down"))
    return [
        *(Immutable(name) for name in request.immutable or ()),
        *(Only(name, way) for name, way in ways.items()),  # type: ignore[arg-type]
        *(_range(name, ends) for name, ends in _pairs("--range", request.range, schema, "age=18:75")),
        *(_one_of(name, text, schema) for name, text in _pairs("--one-of", request.one_of, schema, "housing=own,rent")),
        *([] if request.at_most is None else [AtMost(request.at_most)]),
    ]


def read_credibility(asked: str | None, source: Source) -> Credibility | None:
    """The density that was asked for, of the training rows, with its floor."""
    if asked is None:
        return None
    word, _, floor = asked.partition(":")
    check_word("--credibility", word, DENSITIES)
    if source.labels is None:
        raise UsageError("--credibility: the training labels are needed", do="pass --train FILE --target COL")
    try:
        quantile = float(floor or 0.05)
    except ValueError:
        raise UsageError(
            f"--credibility {asked}: {floor} is not a share", do=f"e.g. --credibility {word}:0.05"
        ) from None
    make = getattr(credibility, word.replace("-", "_"))
    return make(source.decision, source.X, source.labels, quantile=quantile, schema=source.schema)  # type: ignore[no-any-return]


def _pairs(option: str, given: Sequence[str] | None, schema: Schema, example: str) -> list[tuple[str, str]]:
    """Feature and the rest of each ``COL=...``; names of features may hold an equals sign themselves."""
    out = []
    for text in given or ():
        cuts = [place for place, sign in enumerate(text) if sign == "="]
        known = [place for place in cuts if text[:place] in schema.names]
        if not cuts:
            raise UsageError(f"{option} {text}: this does not name a column and a rule", do=f"e.g. {option} {example}")
        place = known[-1] if known else cuts[0]
        schema.index(text[:place])  # says what is close to a name that is not known
        out.append((text[:place], text[place + 1 :]))
    return out


def _range(name: str, ends: str) -> Range:
    low, colon, high = ends.partition(":")
    try:
        if not colon:
            raise ValueError
        return Range(name, float(low or "-inf"), float(high or "inf"))
    except ValueError as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"--range {name}={ends}: this is not LOW:HIGH", do=f"e.g. --range {name}=18:75") from None


def _one_of(name: str, text: str, schema: Schema) -> OneOf:
    feature = schema.features[schema.index(name)]
    known = {label_key(level): level for level in feature.levels}
    wanted = [text] if label_key(text) in known else text.split(",")
    for level in wanted:
        if label_key(level) not in known:
            shown = ", ".join(str(level) for level in feature.levels) or "none: it is not a category"
            raise UsageError(f'--one-of: "{name}" has no level {level!r}', do=f"its levels are {shown}")
    return OneOf(name, [known[label_key(level)] for level in wanted])
