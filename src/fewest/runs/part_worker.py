"""The work on one part: rows in, its files and their figures out. The same in this process and in a worker."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fewest.errors import DataError, DoubtError, FewestWarning, ModelError, TimeLimitError
from fewest.explainer import Explainer
from fewest.results.answers import Answers
from fewest.results.explanations import Explanations
from fewest.runs.cases import Cases, RawPart, within
from fewest.runs.folder import write_part
from fewest.runs.parts import as_arrow, as_parquet, certificates, write_cases
from fewest.runs.row_hashes import row_hashes


@dataclass(frozen=True)
class PartWork:
    """Everything that answering a part takes; it can be sent to another process."""

    explainer: Explainer
    cases: Cases
    # (n, columns): The rows on which the model's inside is tried: the same ones for every part, so that answers
    # depend on nothing else
    head: pd.DataFrame
    folder: Path
    chunk_rows: int  # Rows that are explained at once
    alternatives: int = 0
    keep_cases: bool = True  # Whether the cases' own values are written beside the answers

    def ready(self) -> None:
        """Look inside the model, at the head of the data."""
        self.explainer.look_inside(self.head)

    def do(self, part: RawPart, deadline: float = np.inf) -> dict[str, Any]:
        """Explain the rows of a part and write its files; what the journal says of them."""
        frame = self.cases.typed(part)
        out = self._explain(frame, deadline)
        answered = out.answered(part.first, row_hashes(out.schema, frame))
        table, claimed = as_parquet(as_arrow(answered)), certificates(answered)
        files = [("table", "parquet", table), ("certificates", "certificates.jsonl", claimed)]
        if self.keep_cases:
            files.append(("cases", *write_cases(out.schema, frame)))
        written = write_part(self.folder, part.number, files)
        return {"first": part.first, "rows": len(out), **written, **out.tally.to_dict()}

    def _explain(self, frame: pd.DataFrame, deadline: float) -> Explanations:
        answers, out = Answers.blank(len(frame), len(self.explainer.schema)), None
        for first in range(0, len(frame), self.chunk_rows):
            left = deadline - time.monotonic()
            if left <= 0:
                raise out_of_time()
            chunk = frame.iloc[first : first + self.chunk_rows]
            out = explained(self.explainer, chunk, self.alternatives, left if np.isfinite(left) else None)
            answers.put(np.arange(first, first + len(chunk)), out.answers)
        # Answers that were cut short by the clock are worth nothing here: they would be others next time.
        if time.monotonic() >= deadline or out is None:
            raise out_of_time()
        return replace(out, frame=frame, answers=answers)


def explained(
    explainer: Explainer, frame: pd.DataFrame, alternatives: int, time_limit: float | None = None
) -> Explanations:
    """The answers to some rows of a larger table, refused where they cast doubt on those that went before them."""
    with placed(frame):
        before = explainer.doubt
        out = explainer.explain(frame, alternatives=alternatives, time_limit=time_limit)
        if explainer.doubt is not None and before is None:
            raise DoubtError(explainer.doubt, do='use Explainer(..., structure="opaque"): the model\'s own scores')
        return out


def out_of_time() -> TimeLimitError:
    """The end of a run that can be resumed."""
    return TimeLimitError(
        "the time limit was reached before all rows were done", do="run the same command again: what was done is kept"
    )


@contextmanager
def placed(frame: pd.DataFrame) -> Iterator[None]:
    """Say in which rows of the data something went wrong; warnings were given once, for the head."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewestWarning)
            yield
    except (DataError, ModelError) as error:
        raise type(error)(f"{within(frame)}: {error.message}", error.do) from error
