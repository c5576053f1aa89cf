"""One training, many models: All-Opt's terms weigh more from stop to stop, and each phase goes on from the last."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.errors import DataError, FewestWarning
from fewest.explainer import Explainer
from fewest.models.training._recipes import cook, recipe_of
from fewest.models.training.all_opt import AllOptClassifier
from fewest.references import References


class Stop(NamedTuple):
    """Where on a path a model was taken: the weights of the last phase, zero for the warm-up.

    Examples
    --------
    >>> Stop(0.1, 1.0).c1
    0.1
    """

    c1: float
    c2: float


WARM_UP = Stop(0.0, 0.0)
AT_ONCE = 512  # rows aligned at a time


class Tally(NamedTuple):
    """What a model does on rows that it was not trained on, in counts that can be added up.

    Attributes
    ----------
    rows, right : int
        Rows, and those decided as they are labelled.
    roc_auc : float
    positives, explained : int
        Rows decided positive, and those of them that have an exact SEV.
    features, ones : int
        Sum of all SEV, and how many are 1.
    """

    rows: int
    right: int
    roc_auc: float
    positives: int
    explained: int
    features: int
    ones: int


class C1Path:
    """A session that is led from stop to stop.

    Parameters
    ----------
    estimator : AllOptClassifier
        Unfitted, and the path's own: its weights follow the stops.
    X, y : table and labels
        Rows to train on.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"debt": [1, 2, 3, 7, 8, 9], "age": [30, 40, 50, 30, 40, 50]}); y = [0, 0, 0, 1, 1, 1]
    >>> path = Path(AllOptClassifier(warmup_epochs=2, epochs=1), X, y)
    >>> [tuple(stop) for stop in path.walk([0.1, 0.2], [1.0])]
    [(0.0, 0.0), (0.1, 1.0), (0.2, 1.0)]
    """

    def __init__(self, estimator: AllOptClassifier, X: Any, y: Any) -> None:
        self.estimator = estimator
        self.session, self.diary = estimator._begin(X, y)

    def walk(self, c1: Sequence[float], c2: Sequence[float]) -> Iterator[Stop]:
        """Warm up, then for each c2 go from there through all c1; the model can be looked at after each stop."""
        estimator, session = self.estimator, self.session
        epochs = estimator._warm_up + estimator.epochs * len(c1) * len(c2)
        with self.diary.shown(epochs, estimator.verbose):
            session.run("warm-up", estimator._warm_up)
            yield WARM_UP
            values, order = session.trainer.snapshot(), session.trainer.source.get_state()
            for reference_weight in c2:
                # Every branch is the one that would be walked alone: same start, same order of rows.
                session.trainer.restore(values)
                session.trainer.source.set_state(order)
                session.references = None
                for weight in c1:
                    estimator.set_params(c1=weight, c2=reference_weight)
                    estimator._sev_phase(session, weight)
                    yield Stop(float(weight), float(reference_weight))

    def tally(self, X: Any, y: Any, exact: bool = True) -> Tally:
        """Figures of the model as it is now on rows held out; its references are made of the training rows.

        Where they need not be exact, rows that no single feature turns count as if two did.
        """
        from sklearn.metrics import roc_auc_score

        session = self.session
        decision = session.decision()
        frame = self.estimator._read_rows(X)
        against = np.asarray(y) == session.positive
        if against.all() or not against.any():
            raise DataError("the rows held out are of one class only", do="choose another `validation`")
        verdicts = decision.verdicts(frame)
        positives = int(verdicts.positive.sum())
        sev = np.empty(0, dtype=np.int64)
        if positives:
            cases, refs = frame[verdicts.positive], self._references(decision)
            sev = Explainer(decision, refs, unseen="allow").explain(cases).sev() if exact else self._least(cases, refs)
        return Tally(
            len(frame), int((verdicts.positive == against).sum()), float(roc_auc_score(against, verdicts.score)),
            positives, len(sev), int(sev.sum()), int((sev == 1).sum()),
        )  # fmt: skip

    def accuracy(self) -> float:
        """Accuracy of the model as it is now on the rows it is trained on."""
        import torch

        trainer = self.session.trainer
        with torch.no_grad():
            right = [
                ((trainer.head.logits(rows) >= 0) == (labels > 0)).sum()
                for rows, labels in zip(trainer.rows.split(AT_ONCE), trainer.labels.split(AT_ONCE), strict=True)
            ]
        return float(sum(right)) / len(trainer.labels)

    def _references(self, decision: Decision) -> References:
        session, estimator = self.session, self.estimator
        recipe = recipe_of(estimator.references, estimator.random_state)
        with warnings.catch_warnings():
            # Of all these models one is kept, and that one's references are made, and warned of, again.
            warnings.simplefilter("ignore", FewestWarning)
            return cook(recipe, decision, session.frame, session.labels, session.references)

    def _least(self, cases: pd.DataFrame, refs: References) -> npt.NDArray[np.int64]:
        """1 for the rows that one feature turns, 2 for the others."""
        import torch

        head, Z = self.session.head, self.session.encode(cases)
        rows, targets = head.rows(Z), self.session.targets(cases, Z, refs)
        turned = np.zeros(len(cases), dtype=bool)
        with torch.no_grad():
            for part in torch.arange(len(cases)).split(AT_ONCE):
                least = head.aligned(rows[part], targets[part]).flatten(1).amin(dim=1)
                turned[part.numpy()] = (least < 0).cpu().numpy()
        return np.where(turned, 1, 2)

    def finish(self) -> AllOptClassifier:
        """The estimator, fitted as the session is now."""
        self.estimator._finish(self.session, self.diary)
        return self.estimator
