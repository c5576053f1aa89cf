"""One training run: the encoded table, the head, the references, and the phases it goes through.

What it leaves behind is made of plain scikit-learn parts: no torch is needed to use a model.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler

from fewest import references as sources
from fewest.decision import Decision
from fewest.engine.encoding import Encoding
from fewest.engine.structure import as_floats, read
from fewest.errors import FewestWarning, ModelError, PositiveReferenceError, UsageError, check_word
from fewest.explainer import Explainer
from fewest.models.training._heads import Blocks, Head, LinearHead, NetworkHead, RaisedTargets, Targets
from fewest.models.training._leaves_head import LeavesHead, check_readable
from fewest.models.training._trainer import AllOptTerm, Trainer
from fewest.models.training.classifiers import History
from fewest.models.training.leaf_sum import LeafSumClassifier
from fewest.models.training.settings import Architecture, SevLoss, find_device, optimizer_of
from fewest.references import References
from fewest.tables.arrays import Floats
from fewest.tables.schema import Schema

ENCODERS = ("curves", "linear", "plain")
REFERENCES = ("single", "clusters", "near_threshold")
ALIGNED_AT_ONCE = 512  # rows
MakeReferences = Callable[[Decision, Any, Any], References]


class Session:
    """What is trained, and on what: typed rows (n, columns) and their labels; every epoch goes into the history."""

    def __init__(self, estimator: Any, frame: pd.DataFrame, labels: npt.NDArray[Any], history: History) -> None:
        self.estimator = estimator
        self.architecture: Architecture = estimator.group("architecture")
        self.frame, self.labels = frame, labels
        self.schema: Schema = estimator.schema_
        self.positive = estimator.positive_
        self.classes: npt.NDArray[Any] = estimator.classes_
        self.encoder = self._fit_encoder()
        self.Z = self.encode(frame)
        self.blocks = self._trace()
        self.head = self._make_head(find_device(estimator.device))
        self.sign = 1.0 if self.positive == self.classes[1] else -1.0
        self.trainer = Trainer(
            self.head, self.head.rows(self.Z), labels == self.positive, optimizer_of(estimator),
            estimator.random_state, history,
        )  # fmt: skip
        self.references: References | None = None
        self.softened = False
        self._decision: tuple[int, Decision] | None = None  # after how many changes of the head, and as it was then
        self._made: tuple[int, References] | None = None

    def _fit_encoder(self) -> Any:
        wanted = self.architecture.encoder
        if wanted is None or isinstance(wanted, str):
            word = wanted or self.estimator.encoders[self.estimator.model]
            return make_encoder(word, self.schema, self.frame, self.architecture.knots).fit(self.frame)
        try:
            return clone(wanted).fit(self.frame, self.labels)
        except Exception as error:
            raise ModelError(f"the encoder cannot be fitted: {error}", do="call encoder.fit(X, y) alone") from error

    def encode(self, frame: pd.DataFrame) -> Floats:
        """Rows as the head sees them."""
        return as_floats(self.encoder.transform(frame))

    def _trace(self) -> Blocks:
        """Which feature each encoded column belongs to."""
        anything = self.pipeline(DummyClassifier(strategy="prior").fit(self.Z, self.labels))
        traced = Encoding.read(Decision(anything, positive=self.positive), self.schema)
        if traced.feature_of is None:
            raise ModelError(
                f"the encoder's columns cannot be traced to single features: {traced.reason}",
                do="use scikit-learn's transformers, feature by feature",
            )
        if (traced.feature_of < 0).any():
            raise ModelError("the encoder puts out a constant column", do="leave it out: the model has an intercept")
        return Blocks(traced.feature_of.astype(np.int64), len(self.schema.features))

    def _make_head(self, device: str) -> Head:
        if self.estimator.model == "logistic":
            return LinearHead(self.blocks, device)
        if self.estimator.model == "mlp":
            return NetworkHead(self.blocks, self.architecture.hidden, device, self.estimator.random_state)
        booster = self._fit_booster()
        return LeavesHead(check_readable(booster, read(booster)), self.blocks, device, self.architecture.learn)

    def _fit_booster(self) -> Any:
        wanted = self.architecture.booster
        if wanted is None:  # the paper's
            state = self.estimator.random_state
            wanted = GradientBoostingClassifier(n_estimators=200, max_depth=3, random_state=state)
        if not hasattr(wanted, "fit"):
            raise UsageError(f"booster is a {type(wanted).__name__}", do="pass a booster such as XGBClassifier()")
        # Some boosters want labels of zero and one; the head scores the positive class either way.
        return clone(wanted).fit(self.Z, (self.labels == self.positive).astype(np.int64))

    def pipeline(self, model: Any) -> Any:
        """Encoder and final model as one."""
        return Pipeline([("encoder", self.encoder), ("model", model)])

    def model(self) -> Any:
        """The head as it is now, as a fitted pipeline of plain scikit-learn parts."""
        return self.pipeline(export(self.head, self.classes, self.sign))

    def decision(self) -> Decision:
        """The decision that the head as it is now makes."""
        changes, known = self._decision or (-1, Decision(self.model(), positive=self.positive))
        if changes != self.trainer.changes:
            # A copy knows the noise of the scores, which takes longer to measure than an epoch: it is that of the same
            # arithmetic on other numbers.
            known = copy(known)
            object.__setattr__(known, "model", self.model())
            self._decision = self.trainer.changes, known
        return known

    def references_now(self) -> References:
        """References under the head as it is now: made once, while it does not change."""
        changes, known = self._made or (-1, None)
        if known is None or changes != self.trainer.changes:
            known = self.references_under(self.decision(), quiet=True)
            self._made = self.trainer.changes, known
        return known

    def sev_phase(self, c1: float, c2: float, loss: SevLoss, epochs: int) -> None:
        """Train with All-Opt's terms; references that depend on the model are looked at again every few epochs."""
        if not self.softened:  # only once, whatever the number of such phases
            self.softened = True
            self.trainer.soften(loss.distil)
        make_references(self.estimator)  # what it is asked for is refused before a phase
        for name in loss.features or ():
            self.schema.index(name)
        if c1 == 0 and c2 == 0 and loss.term is None:
            self.trainer.run("plain", epochs)
            return
        every = loss.refresh if depends_on_model(self.estimator.references) else None

        def refresh(epoch: int) -> Targets | None:
            return None if every is None or epoch == 0 or epoch % every else self.new_targets()

        self.trainer.run("SEV", epochs, AllOptTerm(c1, c2, loss, self.new_targets(), refresh, self.schema.names))

    def new_targets(self) -> Targets:
        """Make references under the head as it is now; what aligning the training rows with them needs."""
        self.references = self.references_now()
        return self.targets(self.frame, self.Z, self.references)

    def references_under(self, decision: Decision, quiet: bool = False) -> References:
        """References under a model; those from before where it has none that it accepts.

        What the references of a model in training lack is of no interest: those of the trained one are warned of.
        """
        with warnings.catch_warnings():
            if quiet:
                warnings.simplefilter("ignore", FewestWarning)
            try:
                found = make_references(self.estimator)(decision, self.frame, self.labels)
            except PositiveReferenceError:
                if self.references is None:
                    raise
                return _same_points(self.references, decision, self.frame, self.labels)
        if not isinstance(found, References):
            raise UsageError(
                f"the function for references gave a {type(found).__name__}",
                do="let it return what fewest.references makes",
            )
        return found

    def targets(self, frame: pd.DataFrame, Z: Floats, refs: References) -> Targets:
        """What aligning rows with the references they are compared with needs."""
        missing = set(self.schema.columns) - set(refs.frame.columns)
        if missing:
            raise UsageError(f"the references have no column {sorted(missing)[0]!r}", do="give them all features")
        points = self.schema.conform(refs.frame, unseen="allow")
        known, candidates = self.encode(points), refs.candidates(frame).astype(np.int64)
        if self.estimator.group("loss").direction == "plus":
            return RaisedTargets(self.head, Z, known, candidates)
        return self.head.targets(Z, known, candidates)

    def sev(self, decision: Decision, refs: References, cases: pd.DataFrame) -> npt.NDArray[np.int64]:
        """The SEV that the loss makes small, of the cases that have one: its direction, the features that may change.

        Nothing leads from a reference that is decided positive already: there no case has an SEV+.
        """
        loss: SevLoss = self.estimator.group("loss")
        if loss.direction == "plus" and decision.refuses(refs.frame).any():
            return np.empty(0, dtype=np.int64)
        limits = loss.limits(self.schema.names)
        explainer = Explainer(decision, refs, unseen="allow", direction=loss.direction, constraints=limits)
        return np.asarray(explainer.explain(cases).sev.dropna(), dtype=np.int64)

    def one_or_two(self, cases: pd.DataFrame, refs: References) -> npt.NDArray[np.int64]:
        """1 for the rows that one feature turns, 2 for the others."""
        Z = self.encode(cases)
        rows, targets = self.head.rows(Z), self.targets(cases, Z, refs)
        loss: SevLoss = self.estimator.group("loss")
        free = [k for k, name in enumerate(self.schema.names) if loss.features is None or name in loss.features]
        turned = np.zeros(len(cases), dtype=bool)
        with torch.no_grad():
            for part in torch.arange(len(cases)).split(ALIGNED_AT_ONCE):
                aligned = targets.aligned(self.head, rows[part], part)[:, :, free].flatten(1)
                hit = aligned.amax(dim=1) >= 0 if loss.direction == "plus" else aligned.amin(dim=1) < 0
                turned[part.numpy()] = hit.cpu().numpy()
        return np.where(turned, 1, 2)


def make_references(estimator: Any) -> MakeReferences:
    """The function that a word, fixed references, or a function stand for."""
    wanted = estimator.references
    if isinstance(wanted, References):
        return partial(_same_points, wanted)
    if isinstance(wanted, str):
        check_word("references", wanted, REFERENCES)
        options = {"on_positive": "allow"} if wanted == "single" else {"random_state": estimator.random_state}
        return partial(sources.build, wanted, **options)
    if callable(wanted):
        return wanted  # type: ignore[no-any-return]
    raise UsageError(
        f"references {wanted!r} is neither a word, nor references, nor a function of a decision and training rows",
        do=f"use one of {', '.join(REFERENCES)}, or functools.partial(fewest.references.clusters, n_clusters=4)",
    )


def depends_on_model(wanted: Any) -> bool:
    """Whether references change when the model does: not those that are given, nor the mean of labelled rows."""
    if isinstance(wanted, partial):
        wanted = wanted.func
    return not (isinstance(wanted, References) or wanted == "single" or wanted is sources.single)


def _same_points(fixed: References, decision: Decision, X: Any, y: Any) -> References:
    """The same points under another model."""
    return replace(fixed, decision=decision, score=decision.verdicts(fixed.frame).score)


def make_encoder(word: str, schema: Schema, frame: pd.DataFrame, knots: int) -> Any:
    """An unfitted encoder of typed rows, each column of which comes from one feature, so that the engine can read it.

    What becomes of numbers is said by the word. ``curves``: hat functions on quantiles of the training rows, over which
    a linear model is a sum of piecewise linear curves that stay level beyond the data; ``linear``: standardised;
    ``plain``: left alone. Levels get one column each in any case; one that is not known gets none.
    """
    if word not in ENCODERS:
        raise UsageError(f'encoder "{word}" is unknown', do=f"use one of {', '.join(ENCODERS)}, or a transformer")
    numbers = [feature.columns[0] for feature in schema.features if feature.is_numeric]
    levels = [name for name in schema.columns if name not in numbers]
    parts: list[tuple[str, Any, list[str]]] = []
    if word == "curves":
        parts += [(name, _curve(frame[name].to_numpy(dtype=float), knots), [name]) for name in numbers]
    elif numbers:
        parts.append(("numbers", StandardScaler() if word == "linear" else "passthrough", numbers))
    if levels:
        parts.append(("levels", OneHotEncoder(handle_unknown="ignore", sparse_output=False), levels))
    return ColumnTransformer(parts, verbose_feature_names_out=False)


def _curve(values: Floats, knots: int) -> Any:
    """Hat functions with their tips at quantiles of a number; one that never changes is only standardised."""
    distinct = np.unique(values)
    if len(distinct) < 2:
        return StandardScaler()
    if len(distinct) > knots:
        distinct = np.unique(np.quantile(values, np.linspace(0.0, 1.0, knots), method="nearest"))
        distinct = np.unique([values.min(), *distinct, values.max()])
    return SplineTransformer(degree=1, knots=distinct[:, None], extrapolation="constant")


def export(head: Any, classes: npt.NDArray[Any], sign: float) -> Any:
    """A fitted scikit-learn estimator with the head's numbers; sign is -1 where the head scores the first class."""
    if isinstance(head, LeavesHead):
        return LeafSumClassifier.from_head(head, classes, sign)
    if isinstance(head, LinearHead):
        model = LogisticRegression()
        model.classes_ = classes
        model.coef_ = sign * _numbers(head.weight)[None, :]
        model.intercept_ = sign * _numbers(head.bias)[None]
        model.n_features_in_ = model.coef_.shape[1]
        model.n_iter_ = np.zeros(1, dtype=np.int32)
        return model
    weights, biases = [_numbers(w) for w in head.weights], [_numbers(b) for b in head.biases]
    weights[-1], biases[-1] = sign * weights[-1], sign * biases[-1]
    net = MLPClassifier(tuple(len(bias) for bias in biases[:-1]), activation="relu", random_state=0)
    # One step on two rows lays out everything that prediction needs; then the learned numbers replace it.
    net.partial_fit(np.zeros((2, len(weights[0]))), classes, classes=classes)
    net.coefs_, net.intercepts_ = weights, biases
    return net


def _numbers(tensor: Any) -> Floats:
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64)
