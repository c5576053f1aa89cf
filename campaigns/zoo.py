"""Many kinds of models on real tables, against an oracle that tries every set of features through `predict_proba`.

    python campaigns/zoo.py [--table NAME ...] [--model NAME ...] [--seconds N] [--cases N] [--log FILE]

One line per pair of table and model, then the counts. Ends with 6 where an answer is wrong, with 7 where the time was
over before all pairs were done. With --log, pairs that are in the file already are not done again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # one thread, said before anything counts the cores; tests import this among other things
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, "1")

import numpy as np
import pandas as pd

import fewest as fw
from zoo_models import DAY, MODELS, ONE_TREE, as_float, is_date, is_number, natively
from zoo_oracle import Cube, Question, carefully, equal, scorer, truth, wrong
from zoo_tables import MAKERS, Table

WRONG, OVER = 6, 7
LISTED = 400  # more than the most sets of one size that ten features have: 252
WEIGHTS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.25, 8.0)  # sums of these are exact
FLOOR = 0.2


@dataclass
class Tally:
    """What was compared, and what was wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)

    def add(self, answer: Any, problem: str | None, where: str) -> None:
        """Count one comparison."""
        self.counts["compared"] += 1
        self.counts[answer.status.value] += 1
        self.counts["lists said to be complete"] += bool(answer.alternatives and answer.all_listed)
        self.counts["false all listed"] += problem is not None and "said to be listed" in problem
        if problem is not None:
            self.wrong.append(f"{where}: {problem}")


@dataclass(frozen=True, eq=False)
class Pair:
    """A fitted model on a table, and how it is asked."""

    table: Table
    name: str
    model: Any
    labels: Any
    positive: Any

    @classmethod
    def fit(cls, table: Table, name: str) -> Pair:
        """Fit the model on the table as it takes it."""
        how = MODELS[name]
        if getattr(how, "natively", False):
            table = replace(table, X=natively(table.X))
        classes, codes = np.unique(table.y.astype(str), return_inverse=True)
        coded = getattr(how, "coded", False)
        labels = codes if coded else table.y
        positive = int(np.flatnonzero(classes == str(table.positive))[0]) if coded else table.positive
        return cls(table, name, how(table.X, labels), labels, positive)

    @cached_property
    def random(self) -> np.random.Generator:
        """The same draws in every run, whatever else is run."""
        return np.random.default_rng(zlib.crc32(f"{self.table.name}|{self.name}".encode()))

    def decisions(self) -> Iterator[tuple[str, fw.Decision]]:
        """By the default threshold, by another, and against one class."""
        classes = np.asarray(self.model.classes_).tolist()
        others = [one for one in classes if one != self.positive]
        versus = [None, others[0]] if len(others) > 1 else [None]
        for against in versus:
            said = "" if against is None else f"against {against}, "
            yield f"{said}default threshold", fw.Decision(self.model, positive=self.positive, against=against)
            scores = scorer(self.model, self.positive, against)(self.table.X)
            cut = float(np.round(np.quantile(scores, 0.6), 3))
            if scores.min() < cut < scores.max():
                decision = fw.Decision(self.model, positive=self.positive, against=against, threshold=cut)
                yield f"{said}threshold {cut}", decision

    def single(self, decision: fw.Decision) -> Any:
        """One typical case; where the model accepts none of the usual ones, the row it scores lowest."""
        for centre in ("mean", "median", "medoid"):
            try:
                return fw.references.single(decision, self.table.X, self.labels, centre=centre, groups=self.groups)
            except fw.FewestError:
                continue
        lowest = int(np.argmin(decision.verdicts(self.table.X).score))
        return fw.references.supplied(decision, self.table.X.iloc[[lowest]], X=self.table.X, groups=self.groups)

    @property
    def groups(self) -> Mapping[str, Sequence[str]] | None:
        return self.table.groups or None

    def cases(self, decision: fw.Decision, count: int) -> pd.DataFrame:
        """Some rows that are decided against, and one that is not."""
        positive = decision.refuses(self.table.X)
        drawn = self.random.permutation(np.flatnonzero(positive))[:count]
        other = self.random.permutation(np.flatnonzero(~positive))[:1]
        return self.table.X.iloc[np.sort(np.concatenate([drawn, other]))]


def rules(pair: Pair, reference: Mapping[str, Any]) -> tuple[Any, ...]:
    """A random handful of constraints, every kind among them in the long run."""
    random, X = pair.random, pair.table.X
    names = list(pair.table.features)
    ordered = [n for n in names if n in X and (is_number(X[n]) or is_date(X[n]) or getattr(X[n].dtype, "ordered", 0))]
    numbers = [n for n in names if n in X and is_number(X[n])]
    levels = [n for n in names if n in X and n not in ordered]

    def some(least: int, most: int, of: list[str] = names) -> list[str]:
        return [str(name) for name in random.permutation(of)[: random.integers(least, most + 1)]]

    out: list[Any] = []
    if random.random() < 0.4:
        out += [fw.Immutable(name) for name in some(1, 2)]
    if random.random() < 0.4:
        out += [fw.Only(name, str(random.choice(["up", "down"]))) for name in some(1, 2, ordered)]
    if random.random() < 0.3 and numbers:
        (name,) = some(1, 1, numbers)
        low, high = np.sort(random.choice(X[name].dropna().to_numpy(dtype=float), 2))
        out.append(fw.Range(name, float(low), float(high)))
    if random.random() < 0.3 and levels:
        (name,) = some(1, 1, levels)
        known = list(pd.unique(X[name].dropna()))
        out.append(fw.OneOf(name, [*known[: random.integers(1, len(known) + 1)], reference[name]][-2:]))
    if random.random() < 0.4:
        out.append(fw.Linked(*some(2, 3)))
    if random.random() < 0.5:
        out += [fw.Implies(*some(2, 2)) for _ in range(random.integers(1, 4))]
    if random.random() < 0.5:
        out += [fw.Forbidden(*some(1, 3)) for _ in range(random.integers(1, 4))]
    if random.random() < 0.3:
        out.append(fw.AtMost(float(random.choice([1, 2, 2.5, 3, 4]))))
    return tuple(out[i] for i in random.permutation(len(out)))


def prices(pair: Pair) -> dict[str, float]:
    """Weights for some of the features."""
    names = pair.random.permutation(list(pair.table.features))
    return {str(name): float(pair.random.choice(WEIGHTS)) for name in names[: pair.random.integers(1, len(names) + 1)]}


def questions(pair: Pair, references: Any, thorough: bool) -> list[Question]:
    """What is asked of one reference."""
    row = references.frame.iloc[0].to_dict()
    plain = [Question(), Question("rules", constraints=rules(pair, row))]
    if not thorough:
        return plain
    return [
        *plain,
        Question("plus", plus=True),
        Question("weights", weights=prices(pair)),
        Question("rules, weights", weights=prices(pair), constraints=rules(pair, row)),
        Question("more rules", constraints=rules(pair, row) + rules(pair, row)),
        Question("plus, rules, weights", plus=True, weights=prices(pair), constraints=rules(pair, row)),
    ]


def near(pair: Pair, case: pd.DataFrame, references: Any) -> list[str]:
    """Names of the references that lie closest to a case: standard deviations for numbers, one step for the rest."""
    X, total = pair.table.X, np.zeros(len(references.frame))
    for columns in pair.table.features.values():
        steps = np.zeros((len(columns), len(total)))
        for i, column in enumerate(columns):
            a, there = case[column].iloc[0], references.frame[column]
            for j, b in enumerate(there):
                if equal(a, b):
                    continue
                measured = len(columns) == 1 and (is_number(X[column]) or is_date(X[column]))
                if not measured or pd.isna(a) or pd.isna(b):
                    steps[i, j] = 1.0
                else:
                    a_, b_ = (pd.Timestamp(v).value if is_date(X[column]) else float(v) for v in (a, b))
                    spread = np.nanstd(as_float(X[[column]])) * (DAY if is_date(X[column]) else 1.0)
                    steps[i, j] = abs(a_ - b_) / (spread if spread > 0 else 1.0)
        total += steps.max(axis=0)
    return [name for name, value in zip(references.names, total, strict=True) if value <= total.min() * (1 + 1e-6)]


@dataclass(eq=False)
class Asked:
    """One decision with its cases: cubes are scored once for all questions."""

    pair: Pair
    said: str
    decision: fw.Decision
    cases: pd.DataFrame
    tally: Tally
    cubes: dict[tuple[int, str], Cube] = field(default_factory=dict)

    def cube(self, i: int, goal: pd.DataFrame) -> Cube:
        """The cube between a case and a reference."""
        key = i, goal.to_json()
        if key not in self.cubes:
            score = carefully(scorer(self.pair.model, self.pair.positive, self.decision.against), self.decision.cut)
            features = self.pair.table.features
            self.cubes[key] = Cube.of(self.cases.iloc[[i]], goal.astype(self.cases.dtypes), features, score)
        return self.cubes[key]

    def ask(self, references: Any, question: Question, **settings: Any) -> None:
        """Explain the cases, and compare each answer with the oracle's."""
        where = f"{self.pair.table.name}, {self.pair.name}, {self.said}, {question.name}"
        try:
            explainer = fw.Explainer(
                self.decision, references, constraints=fw.Constraints(*question.constraints), weights=question.weights,
                direction="plus" if question.plus else "minus", n_jobs=1, **settings,
            )  # fmt: skip
            answers = explainer.explain(self.cases, alternatives=LISTED)
        except fw.FewestError as error:
            self.tally.refused[f"{question.name}: {str(error).splitlines()[0][:90]}"] += 1
            return
        for i, answer in enumerate(answers):
            cubes = {
                name: self.cube(i, references.frame.iloc[[j]].reset_index(drop=True))
                for j, name in enumerate(references.names)
            }
            if references.assignment == "features" and "nearest" in question.name:
                cubes = {name: cubes[name] for name in near(self.pair, self.cases.iloc[[i]], references)}
            race = {name: truth(cube, question, self.decision.cut) for name, cube in cubes.items()}
            unsure = answer.reference is not None and answer.reference not in race
            if "nearest" in question.name and answer.reference in race:
                race = {answer.reference: race[answer.reference]}  # of equally near ones it is compared with one only
            problem = f"{answer.reference} is not nearest" if unsure else wrong(answer, race, cubes, question)
            if problem is not None:
                problem += f"; {[*question.constraints, *question.weights.items()]}"
            self.tally.add(answer, problem, f"{where}, row {self.cases.index[i]}")


def floors(pair: Pair, decision: fw.Decision) -> Iterator[tuple[str, Any]]:
    """Densities with a floor: fewest's own mixture, and a function of ours."""
    X, y = pair.table.X, pair.labels
    middle = {name: X[name].median() for name in X if is_number(X[name])}

    def closeness(rows: pd.DataFrame) -> Any:
        gaps = [(rows[name].astype(float) - float(value)).abs().fillna(0) / (abs(float(value)) + 1)
                for name, value in middle.items()]  # fmt: skip
        return -np.sum([gap.to_numpy(dtype=float) for gap in gaps], axis=0)

    yield "floor", fw.credibility.supplied(decision, X, y, closeness, quantile=FLOOR, groups=pair.groups)
    yield "mixture", fw.credibility.mixture(decision, X, y, quantile=FLOOR, n_components=2, groups=pair.groups)


def compare(pair: Pair, count: int, tally: Tally) -> None:
    """Ask everything of one pair: all questions by the first threshold that divides the rows, two by the others."""
    thorough = True
    for said, decision in pair.decisions():
        cases = pair.cases(decision, count)
        if not decision.refuses(cases).any() or decision.refuses(cases).all():
            tally.refused["everybody, or nobody, is decided against"] += 1
            continue
        asked = Asked(pair, said, decision, cases, tally)
        one = pair.single(decision)
        for question in questions(pair, one, thorough=thorough):
            asked.ask(one, question)
        if thorough:
            several(asked, one)
            credible(asked, one)
            if pair.name in ONE_TREE:
                leaves(asked)
        thorough = False


def several(asked: Asked, one: Any) -> None:
    """Flexible references, and one per cluster."""
    pair = asked.pair
    row = one.frame.iloc[0].to_dict()
    try:
        asked.ask(one.flexible(0.1), Question("flexible"))
    except fw.FewestError as error:
        asked.tally.refused[f"flexible: {str(error).splitlines()[0][:90]}"] += 1
    try:
        groups = fw.references.clusters(
            asked.decision, pair.table.X, pair.labels, n_clusters=3, groups=pair.groups, min_share=0.0
        )
    except fw.FewestError as error:
        asked.tally.refused[f"clusters: {str(error).splitlines()[0][:60]}"] += 1
        return
    asked.ask(groups, Question("sparsest"))
    asked.ask(groups, Question("sparsest, rules, weights", weights=prices(pair), constraints=rules(pair, row)))
    asked.ask(groups.with_assignment("features"), Question("nearest"))


def credible(asked: Asked, one: Any) -> None:
    """Answers that end where accepted cases are."""
    row = one.frame.iloc[0].to_dict()
    for name, dense in floors(asked.pair, asked.decision):
        for kind, limits in (("", ()), (", rules", rules(asked.pair, row))):
            question = Question(f"{name}{kind}", constraints=limits, density=dense.log_density, floor=dense.floor)
            asked.ask(one, question, credibility=dense)


def leaves(asked: Asked) -> None:
    """SEV-T: every answer turns the tree, and no smaller set does with values that occur in the table."""
    pair, X = asked.pair, asked.pair.table.X
    try:
        references = fw.references.leaves(asked.decision, X, pair.labels, groups=pair.groups)
        answers = fw.Explainer(asked.decision, references, n_jobs=1).explain(asked.cases)
    except fw.FewestError as error:
        asked.tally.refused[f"leaves: {str(error).splitlines()[0][:90]}"] += 1
        return
    score = carefully(scorer(pair.model, pair.positive), asked.decision.cut)
    for i, answer in enumerate(answers):
        case = asked.cases.iloc[[i]].reset_index(drop=True)
        where = f"{pair.table.name}, {pair.name}, leaves, row {asked.cases.index[i]}"
        asked.tally.add(answer, wrong_leaf(answer, case, pair.table, score, asked.decision.cut), where)


def wrong_leaf(answer: Any, case: pd.DataFrame, table: Table, score: Any, cut: float) -> str | None:
    """What is wrong with an answer towards the leaves of a tree."""
    if score(case)[0] < cut:
        return None if answer.status.value == "ALREADY_NEGATIVE" else f"{answer.status.value}, and it is negative"
    if answer.status.value != "EXPLAINED":
        return f"{answer.status.value} without constraints"
    if not table.groups:
        changed = case.copy()
        for change in answer.changes:
            changed[change.feature] = pd.Series([change.after], dtype=case[change.feature].dtype)
        if not score(changed)[0] < cut:
            return "the values shown do not turn the tree"
    for size in range(1, min(answer.sev, 3)):
        for names in itertools.combinations(table.features, size):
            rows = others(case, [table.features[name] for name in names], table.X, 150 if size == 1 else 25)
            if (score(rows) < cut).any():
                return f"SEV-T {answer.sev}, and {names} alone turns it"
    return None


def others(case: pd.DataFrame, groups: Sequence[Sequence[str]], X: pd.DataFrame, most: int) -> pd.DataFrame:
    """The case with the values of other rows in some features, in all combinations."""
    rows = case
    for columns in groups:
        known = X[list(columns)].drop_duplicates()
        known = known.iloc[np.unique(np.linspace(0, len(known) - 1, most).astype(int))]
        rows = rows.drop(columns=list(columns)).merge(known, how="cross")
    return rows[case.columns].astype(case.dtypes)


def one_pair(table: Table, name: str, count: int) -> dict[str, Any]:
    """All comparisons of a pair, as a line of the log."""
    begun, tally = time.process_time(), Tally()
    line: dict[str, Any] = {"table": table.name, "model": name, "skipped": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            pair = Pair.fit(table, name)
        except Exception as error:  # a library that cannot fit this table says so in its own way
            return {**line, "skipped": f"{type(error).__name__}: {str(error).splitlines()[0][:90]}"}
        try:
            compare(pair, count, tally)
        except Exception as error:
            tally.wrong.append(f"{table.name}, {name}: {type(error).__name__}: {str(error)[:300]}")
    return {
        **line, "counts": dict(tally.counts), "refused": dict(tally.refused), "wrong": tally.wrong,
        "seconds": round(time.process_time() - begun, 1),
    }  # fmt: skip


def show(line: Mapping[str, Any]) -> str:
    """One line on the terminal."""
    head = f"{line['table']:14} {line['model']:34}"
    if line["skipped"]:
        return f"{head} skipped: {line['skipped']}"
    counts = line["counts"]
    problems = "".join(f"\n    WRONG {text}" for text in line["wrong"])
    return (
        f"{head} {counts.get('compared', 0):4} compared, {len(line['wrong'])} wrong, "
        f"{sum(line['refused'].values())} refused, {line['seconds']} s{problems}"
    )


def closing(lines: Sequence[Mapping[str, Any]]) -> str:
    """The counts of all pairs."""
    done = [line for line in lines if not line["skipped"]]
    counts: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for line in done:
        counts.update(line["counts"])
        refused.update(line["refused"])
    kinds, tables = ({line[what] for line in done} for what in ("model", "table"))
    ends = ", ".join(f"{counts[status.value]} {status.value}" for status in fw.Status)
    reasons = "".join(f"\n    refused {n} x {text}" for text, n in refused.most_common())
    return (
        f"{len(done)} pairs ({len(kinds)} kinds of models, {len(tables)} tables), {len(lines) - len(done)} skipped\n"
        f"{counts['compared']} answers compared: {ends}\n"
        f"{counts['lists said to be complete']} lists said to be complete, {counts['false all listed']} of them false\n"
        f"{sum(len(line['wrong']) for line in done)} mismatches{reasons}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", nargs="*", choices=list(MAKERS), default=list(MAKERS))
    parser.add_argument("--model", nargs="*", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--cases", type=int, default=4, help="cases that are decided against, for each decision")
    parser.add_argument("--log", type=Path, help="JSON lines, one per pair; finished pairs are not done again")
    options = parser.parse_args(arguments)
    known = options.log.read_text(encoding="utf-8").splitlines() if options.log and options.log.is_file() else []
    lines = [json.loads(text) for text in known]
    finished = {(line["table"], line["model"]) for line in lines}
    begun = time.monotonic()
    for table_name in options.table:
        table = MAKERS[table_name]()
        for name in options.model:
            if (table_name, name) in finished:
                continue
            if time.monotonic() - begun > options.seconds:
                print(closing(lines), "stopped: the time is over", sep="\n")
                return WRONG if any(line.get("wrong") for line in lines) else OVER
            lines.append(one_pair(table, name, options.cases))
            print(show(lines[-1]), flush=True)
            if options.log:
                with options.log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(lines[-1]) + "\n")
    print(closing(lines))
    return WRONG if any(line.get("wrong") for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
