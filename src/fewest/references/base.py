"""References: the prototypical accepted cases a case is compared with, and where they come from (rules 5, 14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.errors import PositiveReferenceError, UsageError, check_word
from fewest.references._round_values import as_frame, finer
from fewest.references.audit import Audit, Dense, People, audit, check_rows
from fewest.references.by_embedding import rule_for_a_file
from fewest.references.file import Saved, plain_rows
from fewest.references.flexible import Flexibility, Placement, move, with_twins
from fewest.references.signatures import Clock, Signature, utc_now
from fewest.references.spread import Spread
from fewest.references.training_rows import TrainingRows
from fewest.tables.cards import Rows, ShownAsCard
from fewest.tables.closeness import Distances
from fewest.tables.schema import Schema
from fewest.tables.values import Cells
from fewest.tables.wording import cell

OnPositive = Literal["error", "allow"]
ON_POSITIVE = ("error", "allow")
SHOWN = 8  # references that are named when they are printed
Assignment = Literal["features", "embedding", "sparsest", "nearest"]


def check_assignment(word: str) -> Assignment:
    """The assignment a word stands for, or an error that lists them."""
    if word == "nearest":
        return "features"
    check_word("assignment", word, ("features", "embedding", "sparsest"))
    return word  # type: ignore[return-value]


class Assigner(Protocol):
    """A rule that says which reference a case is compared with."""

    def assign(self, frame: pd.DataFrame) -> npt.NDArray[np.int32]:
        """Reference of each row, (n,); it depends on that row alone."""
        ...


@dataclass(frozen=True, eq=False)
class References(ShownAsCard):
    """Points to compare with, typed and rounded as they will be shown, with their provenance.

    Attributes
    ----------
    decision : Decision
        The decision they are accepted by.
    schema : Schema
        The features they have values for.
    frame : (m, columns)
        One row per reference, in the schema's columns and dtypes.
    names : tuple of str
    support : (m,) int
        How many rows each stands for; -1 where not known.
    score : (m,) float
        The model's score of each.
    assignment : str
        ``features`` (or ``nearest``): each case is compared with the reference closest to it, feature by feature;
        ``embedding``: with that of the cluster it falls into; ``sparsest``: with all, and the one that needs the fewest
        features is kept (the closest among equals).
    provenance : mapping
        How they were made.
    assigner : Assigner, optional
        The rule of ``embedding``. That of a PaCMAP map holds training rows, and is written to a file on request only.
    spread : Spread
        Quantiles of the accepted cases' numbers; empty where no training rows were given.
    flexible_of : tuple of int
        For each reference the one it is the flexible twin of, -1 for none; empty where there are no twins. Twins come
        after all others.
    signatures : tuple of Signature or None
        Who signed each off; empty where nobody has.
    """

    decision: Decision
    schema: Schema
    frame: pd.DataFrame
    names: tuple[str, ...]
    support: npt.NDArray[np.int64]
    score: npt.NDArray[np.float64]
    assignment: Assignment = "features"
    provenance: Mapping[str, Any] = field(default_factory=dict)
    assigner: Assigner | None = field(default=None, repr=False)
    spread: Spread = field(default_factory=Spread, repr=False)
    flexible_of: tuple[int, ...] = ()
    signatures: tuple[Signature | None, ...] = ()

    not_kept: ClassVar[str] = ""  # Why a file does not hold these references, if it does not

    def check_kept(self, training_rows: bool = False) -> None:
        """Refuse references that a file would not hold whole, and rows of people unless ``training_rows`` allows it."""
        if self.not_kept:
            raise UsageError(self.not_kept, do="keep the answers: explain(X).to_json(path) or .to_frame()")
        if self.provenance.get("kind") == "accepted" and not training_rows:
            raise UsageError(
                "these references are rows of people the model was trained on",
                do="use single or clusters, or training_rows=True if their data may be in the file",
            )

    def __post_init__(self) -> None:
        object.__setattr__(self, "assignment", check_assignment(self.assignment))
        if self.assignment == "embedding" and self.assigner is None:
            raise UsageError(
                "these references have no clusters to assign cases by", do='use "features" or "sparsest", or clusters'
            )

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        shown = list(zip(self.names, self.score, strict=True))[:SHOWN]
        rows = ", ".join(f"{name} ({score:.3g})" for name, score in shown) + (", ..." if len(self) > SHOWN else "")
        return f"<{len(self)} reference{'s' if len(self) != 1 else ''}: {rows}>"

    def _card_rows(self) -> tuple[Sequence[str], Rows]:
        cells, some = Cells.of(self.frame), range(min(len(self), SHOWN))
        features = [(one.heading, *(cell(cells.value(k, one)) for k in some)) for one in self.schema.features]
        scores = ("score", *(f"{self.score[k]:.3g}" for k in some))
        rows = ("stands for (rows)", *("not known" if self.support[k] < 0 else int(self.support[k]) for k in some))
        return ("", *self.names[:SHOWN]), [scores, rows, *features]

    def under(self, decision: Decision) -> References:
        """The same points, scored and called accepted by another decision.

        One that this decision accepts and the other does not is an error: changes that lead there may not exist.
        """
        if decision is self.decision:
            return self
        verdicts = decision.verdicts(self.frame)
        lost = np.flatnonzero(verdicts.positive & (self.score < self.decision.cut))
        if len(lost):
            raise PositiveReferenceError(
                f'the reference "{self.names[lost[0]]}" was made for another decision; this one decides it positive '
                f"(score {verdicts.score[lost[0]]:.4g} >= {decision.cut:.4g})",
                do="make references with the decision they are used with",
            )
        return replace(self, decision=decision, score=verdicts.score)

    def with_assignment(self, assignment: Assignment) -> References:
        """The same points, assigned to cases in another way."""
        return replace(self, assignment=assignment)

    def candidates(self, frame: pd.DataFrame, far: Distances | None = None) -> npt.NDArray[np.int32]:
        """References each row is compared with, nearest first, then their flexible twins: (n, 1), (n, m) or twice that.

        A later one is only preferred where it needs fewer features, so that a twin never takes a tie. Rows are
        conformed to the schema; ``far`` is from them to all references, where that is known already.
        """
        plain = self._plain_candidates(frame, far)
        return plain if not self.flexible_of else np.hstack([plain, self._twins()[plain]])

    def _plain_candidates(self, frame: pd.DataFrame, far: Distances | None = None) -> npt.NDArray[np.int32]:
        count = len(self.plain_numbers)
        if count == 1:
            return np.zeros((len(frame), 1), dtype=np.int32)
        if self.assignment == "embedding" and self.assigner is not None:
            return self.assigner.assign(frame)[:, None]
        far = far or Distances.read(self.schema, frame, self.frame)
        order = np.argsort(np.round(far.totals(count), 12), axis=1, kind="stable").astype(np.int32)
        return order if self.assignment == "sparsest" else order[:, :1]

    @property
    def plain_numbers(self) -> list[int]:
        """Numbers of the references that are not flexible ones: the first ones."""
        return [k for k in range(len(self)) if not self.flexible_of or self.flexible_of[k] < 0]

    def _twins(self) -> npt.NDArray[np.int32]:
        """Twin of each reference; itself where it has none."""
        twins = np.arange(len(self), dtype=np.int32)
        for number, original in enumerate(self.flexible_of):
            if original >= 0:
                twins[original] = number
        return twins

    def plain(self) -> References:
        """The same without flexible twins."""
        return self.take(self.plain_numbers) if self.flexible_of else self

    def take(self, numbers: Sequence[int]) -> References:
        """Some of the references, none of them the flexible one of another."""
        return replace(
            self,
            frame=self.frame.iloc[list(numbers)].reset_index(drop=True),
            names=tuple(self.names[k] for k in numbers),
            support=self.support[list(numbers)],
            score=self.score[list(numbers)],
            spread=replace(self.spread, ranges=_picked(self.spread.ranges, numbers)),
            signatures=_picked(self.signatures, numbers),
            flexible_of=(),
        )

    def flexible(
        self,
        eps: float,
        grid: int = 11,
        *,
        X: Any = None,
        y: Any = None,
        passes: int = 1,
        at: Placement = "uniform",
    ) -> References:
        """The same references, each with a twin whose numbers have moved a little to where the model scores lower.

        Each number moves within ``eps`` of its quantile among the accepted cases. The references as they are stay in
        the race: a case is explained by a twin only where that needs fewer features, so SEV never rises (rule 7).

        Parameters
        ----------
        eps : float
            Half-width of the band, as a share of the accepted cases, from 0 to 0.5.
        grid : int
            Values tried per number, beside the one it has.
        X, y : table and labels, optional
            Training rows to read the quantiles from. Needed where the references were not made of such rows.
        passes : int
            1 moves every number from the reference as it is (Algorithm 1); more go on from the moved reference.
        at : str
            Where the values tried lie: ``uniform`` over the band, or at its ``quantiles``.

        Examples
        --------
        >>> import fewest as fw
        >>> X = pd.DataFrame({"debt": range(101)}); y = X["debt"] > 80
        >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100, positive=True)
        >>> refs = fw.references.single(decision, X, y).flexible(0.1)
        >>> refs.names, refs.frame["debt"].tolist()
        (('mean', 'mean (flexible)'), [40, 32])
        """
        flexibility = Flexibility(eps, grid, passes, at)
        check_rows(X, y)
        plain = self.plain()
        spread = plain.spread
        if X is not None:
            rows = TrainingRows.read(self.decision, X, y, self.schema, unseen="allow").accepted
            spread = replace(spread, quantiles=Spread.of(self.schema, rows).quantiles)
        elif not spread.quantiles and any(feature.is_numeric for feature in self.schema.features):
            raise UsageError("these references do not know how accepted cases spread", do="pass X and y")
        moved = move(self.decision, self.schema, plain.frame, spread, flexibility)
        return with_twins(replace(plain, spread=spread), moved, flexibility)

    def audit(self, X: Any = None, y: Any = None, credibility: Dense | None = None) -> Audit:
        """What to look at before these references are used on people.

        Parameters
        ----------
        X, y : table and labels, optional
            Training rows: with them each reference is shown beside the nearest real accepted case, and beside the
            range of the accepted cases that are compared with it. They are looked at and not kept.
        credibility : Credibility, optional
            Says how usual each reference is among accepted cases.

        Examples
        --------
        >>> import fewest as fw
        >>> X = pd.DataFrame({"debt": range(101)}); y = X["debt"] > 80
        >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100, positive=True)
        >>> fw.references.single(decision, X, y).audit().table[["feature", "value", "low", "high"]]
          feature  value  low  high
        0    debt     40  8.0  72.0
        """
        check_rows(X, y)
        people = None
        if X is not None:
            rows = TrainingRows.read(self.decision, X, y, self.schema, unseen="allow").accepted
            people = People.of(self.schema, self.frame, rows, self._plain_candidates(rows)[:, 0].tolist())
            people = people.with_twins(self.flexible_of)
        return audit(self.saved(), people=people, density=credibility)

    def sign_off(
        self, name: str, note: str = "", which: str | Sequence[str] | None = None, *, clock: Clock = utc_now
    ) -> References:
        """The same references, signed by somebody who has looked at them.

        Parameters
        ----------
        name : str
            Who signs.
        note : str
        which : str or sequence of str, optional
            Names of the references that are signed. Default: all.
        clock : callable, optional
            Gives the time.

        Examples
        --------
        >>> import fewest as fw
        >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
        >>> refs = fw.references.supplied(decision, {"debt": [10, 20]}).sign_off("Credit Risk", which="r1")
        >>> refs.is_signed("r1"), refs.is_signed("r2")
        (True, False)
        """
        return replace(self, signatures=self.saved().sign(name, note, which, clock).signatures)

    def is_signed(self, which: int | str) -> bool:
        """Whether somebody signed a reference, by number or name, with the values it has now."""
        number = self.names.index(which) if isinstance(which, str) else which
        saved = self.saved()
        return bool(self.signatures) and self.signatures[number] is not None and not saved.broken(number)

    def credibility(self, number: int) -> float | None:
        """Share of the accepted cases that is proved to be where a reference leads; None where nothing is proved."""
        return None

    def saved(self) -> Saved:
        """What a file holds but for the rule of ``embedding``: neither the model nor a row, unless one is a medoid."""
        decision = self.decision
        return Saved(
            names=self.names,
            values=plain_rows(self.frame),
            support=tuple(int(count) for count in self.support),
            score=tuple(float(score) for score in self.score),
            schema=self.schema,
            decision={
                "positive": None if decision.positive is None else str(decision.positive),
                "outcome": decision.negative_name,
                "threshold": decision.cut,
                **({} if decision.above else {"above": False}),
            },
            assignment=self.assignment,
            provenance=dict(self.provenance),
            spread=self.spread,
            flexible_of=self.flexible_of,
            signatures=self.signatures,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values: names, values, scores, provenance and signatures."""
        return self.saved().to_dict(whole=False)

    def saved_whole(self, training_rows: bool = False) -> Saved:
        """What `save` writes: `saved`, with the rule of ``embedding`` where cases are assigned by it."""
        plain = self.plain_numbers
        if self.assignment != "embedding" or len(plain) == 1:
            return self.saved()
        return replace(self.saved(), rule=rule_for_a_file(self.assigner, self.frame.iloc[plain], training_rows))

    def save(self, path: str | Path, *, training_rows: bool = False) -> None:
        """Write the references as JSON, for `fewest.references.load`.

        References that are assigned on a PaCMAP map need ``training_rows=True``: the file then holds up to 4,000
        training rows, encoded. They are never saved with another assignment.

        Examples
        --------
        >>> import tempfile
        >>> import fewest as fw
        >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
        >>> fw.references.supplied(decision, {"debt": [10, 20]}).save(Path(tempfile.mkdtemp()) / "refs.json")
        """
        self.check_kept(training_rows)
        self.saved_whole(training_rows).write(path)


def _picked(parts: tuple[Any, ...], numbers: Sequence[int]) -> tuple[Any, ...]:
    return tuple(parts[k] for k in numbers) if parts else ()


def scored(
    decision: Decision, schema: Schema, rows: Sequence[Mapping[str, Any]], names: Sequence[str], support: Sequence[int],
    *, on_positive: OnPositive, assignment: Assignment = "features", provenance: Mapping[str, Any] | None = None,
    assigner: Assigner | None = None, rescue: bool = False,
) -> References:  # fmt: skip
    """Type and round the points, score them, and refuse those the model does not accept.

    Numbers get more decimals than their features have where the model accepts a point only then: with ``rescue``, and
    where a point that is refused is an error.
    """
    check_word("on_positive", on_positive, ON_POSITIVE)
    frame = as_frame(schema, rows, unseen="error")
    verdicts = decision.verdicts(frame)
    if verdicts.positive.any() and (on_positive == "error" or rescue):
        schema, frame = finer(decision, schema, rows, frame, np.flatnonzero(verdicts.positive).tolist())
        verdicts = decision.verdicts(frame)
    if on_positive == "error" and verdicts.positive.any():
        worst = int(np.flatnonzero(verdicts.positive)[0])
        raise PositiveReferenceError(
            f'the reference "{names[worst]}" is itself decided positive '
            f"(score {verdicts.score[worst]:.4g} >= {decision.cut:.4g}); explanations that lead there may not exist",
            do='centre="median" or centre="medoid", or clusters; on_positive="allow" proves what cannot be reached',
        )
    return References(
        decision, schema, frame, tuple(names), np.asarray(support, dtype=np.int64), verdicts.score, assignment,
        dict(provenance or {}), assigner,
    )  # fmt: skip
