"""Letters for everybody who was refused, or why there is none; one after the other, from memory or a run folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fewest.reporting._letter import Letter, LetterError, letter
from fewest.reporting._reasons import Codes
from fewest.results.explanation import Explanation, Status
from fewest.results.explanations import Explanations
from fewest.results.population import Population

OWN = ("recipient", "our_reference")
NO_LINE = "give it a line, with what its letter needs"


def letters(
    population: Population,
    codes: Codes | None = None,
    *,
    fields: Mapping[str, Mapping[str, str]] | None = None,
    **options: Any,
) -> Iterator[tuple[Explanation, Letter | LetterError]]:
    """The letter of each refused case, or the `LetterError` that says why none is written.

    Parameters
    ----------
    population : Explanations or Run
        Explained with ``alternatives``.
    codes : Codes, optional
        As in `letter`.
    fields : mapping, optional
        Label of a case -> what its letter has of its own: ``recipient``, ``our_reference``, and more for a template. A
        case that is not in it gets no letter.
    **options
        As in `letter`: ``decision``, ``protected``, ``max_reasons``, ``subject``, ``dated``, ``locale``, ``sender``.

    Yields
    ------
    Explanation and Letter or LetterError

    Examples
    --------
    >>> import fewest as fw
    >>> from fewest.reporting import Code
    >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100, positive="bad")
    >>> refs = fw.references.supplied(decision, {"debt": [10]}).sign_off("Credit Risk")
    >>> out = fw.Explainer(decision, refs).explain({"debt": [80, 20, 70]}, alternatives=10)
    >>> for answer, found in letters(out, Codes.of([Code("debt", "down", "R01", "Debts are high")])):
    ...     print(answer.row, found)
    0 <letter of case 0: reasons R01 (debt)>
    2 <letter of case 2: reasons R01 (debt)>
    """
    references = population.references if isinstance(population, Explanations) else population.saved_references()
    for table in population.tables(("row", "status")):
        refused = table.loc[table["status"] != Status.ALREADY_NEGATIVE.value, "row"]
        for row in refused.tolist():
            answer = population.explanation(row)
            own = {} if fields is None else fields.get(str(answer.label))
            if own is None:
                yield answer, LetterError({"it is not in the table of fields": NO_LINE})
                continue
            given = {name: own[name] for name in OWN if name in own}
            try:
                yield answer, letter(answer, codes, references, fields=own, **{**options, **given})
            except LetterError as error:
                yield answer, error
