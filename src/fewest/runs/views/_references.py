"""The references of a run as people look at them: values, who they stand for, who signed them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from fewest.references.file import Saved, read_saved
from fewest.runs import Run
from fewest.runs.run_files import REFERENCES, read_references
from fewest.tables.values import Cells
from fewest.tables.wording import cell


@dataclass(frozen=True)
class ReferenceView:
    """One reference.

    Attributes
    ----------
    name : str
    score : float or None
        The model's score of it.
    support : int or None
        Training rows it stands for.
    used : int
        Cases of the run compared with it.
    rows : tuple of pairs
        Title of each feature and its value as text.
    signature : str
        Who signed it and when; empty where nobody has.
    note : str
        What was written beside the signature.
    broken : tuple of str
        What has changed since it was signed.
    flexible_of : str
        The reference it is the flexible twin of; empty where it is none.
    """

    name: str
    score: float | None
    support: int | None
    used: int
    rows: tuple[tuple[str, str], ...]
    signature: str
    note: str
    broken: tuple[str, ...]
    flexible_of: str

    @property
    def is_signed(self) -> bool:
        """Whether somebody signed it, with the values it has."""
        return bool(self.signature) and not self.broken


def reference_views(run: Run, used: Counter[str]) -> list[ReferenceView]:
    """The references of a run, in their order."""
    names, frame = read_references(run.references())
    cells, saved = Cells.of(frame), read_saved(run.path / REFERENCES)
    rows = {
        name: tuple((feature.heading, cell(cells.value(k, feature))) for feature in run.schema.features)
        for k, name in enumerate(names)
    }
    return [_view(saved, k, rows[saved.names[k]], used[saved.names[k]]) for k in range(len(saved))]


def _view(saved: Saved, k: int, rows: tuple[tuple[str, str], ...], used: int) -> ReferenceView:
    signature = saved.signatures[k] if saved.signatures else None
    twin = saved.flexible_of[k] if saved.flexible_of else -1
    known = saved.score[k] == saved.score[k]  # not NaN
    return ReferenceView(
        name=saved.names[k],
        score=saved.score[k] if known else None,
        support=saved.support[k] if saved.support[k] >= 0 else None,
        used=used,
        rows=rows,
        signature="" if signature is None else str(signature),
        note="" if signature is None else signature.note,
        broken=saved.broken(k),
        flexible_of=saved.names[twin] if twin >= 0 else "",
    )
