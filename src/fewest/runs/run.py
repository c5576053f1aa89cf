"""A run folder as a population of answers: each of them again the `Explanation` it was, without the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from fewest.decision import ACCEPTED, REFUSED
from fewest.references.file import Saved, read_saved
from fewest.results.explanation import About, Change, Explanation, Fact, Status
from fewest.results.population import Origin, Tally, figure, summarize
from fewest.results.record import to_explanation
from fewest.runs.run_files import JOURNAL as JOURNAL
from fewest.runs.run_files import MANIFEST as MANIFEST
from fewest.runs.run_files import REFERENCES as REFERENCES
from fewest.runs.run_files import TREE as TREE
from fewest.runs.run_files import RunFiles, read_references
from fewest.tables.cards import Rows, ShownAsCard
from fewest.tables.schema import Schema
from fewest.tables.values import Cells, decoded, decoded_row, shortened

Values = Mapping[str, Any]


class Run(RunFiles, ShownAsCard):
    """A finished run folder.

    Attributes
    ----------
    path : Path
    manifest : mapping
        Fingerprints of model, data, references, settings and version; the schema; counts; the parts with checksums.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> import fewest as fw
    >>> from fewest.runs import explain_files
    >>> folder = Path(tempfile.mkdtemp())
    >>> pd.DataFrame({"debt": [10, 90]}).to_csv(folder / "cases.csv", index=False)
    >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    >>> refs = fw.references.supplied(decision, {"debt": [20]})
    >>> run = explain_files(fw.Explainer(decision, refs), folder / "cases.csv", folder / "run", n_jobs=1)
    >>> run.rows, run.counts["EXPLAINED"], run.tally.mean_sev
    (2, 1, 1.0)
    >>> Run.open(folder / "run").table()[["row", "status", "to"]]
       row            status    to
    0    0  ALREADY_NEGATIVE    []
    1    1         EXPLAINED  [20]
    >>> print(run.explanation(1))
    If debt had been 20 instead of 90, the model would have predicted accepted (refused: 0.200 instead of 0.900).
    """

    def __repr__(self) -> str:
        counts = ", ".join(f"{count:,} {Status(name).words}" for name, count in self.counts.items() if count)
        return f"<run {self.path.name}: {self.rows:,} cases; {counts}>"

    def _card_rows(self) -> tuple[Sequence[str], Rows]:
        return ("", ""), [(name, figure(value)) for name, value in summarize(self).items()]

    @property
    def counts(self) -> dict[str, int]:
        """How many cases ended in each status."""
        return dict(self.manifest["counts"])

    @cached_property
    def tally(self) -> Tally:
        """Counts by status, by SEV and by feature, with the figures that follow from them."""
        return Tally.from_dict(self.manifest)

    @cached_property
    def about(self) -> About:
        """Names of the outcomes, and what else sentences need; a run of format 1 has them in its settings."""
        settings = self.manifest["settings"]
        outcome = ACCEPTED if settings["positive"] is None else str(settings["outcome"])
        two = settings["against"] is None and not outcome.startswith("not ")
        known = {
            "positive": REFUSED if settings["positive"] is None else str(settings["positive"]),
            "outcome": outcome,
            "percent": settings["score"] == "torch" or (settings["score"] == "proba" and two),
            "plus": settings["direction"] == "plus",
            "weighted": bool(settings["weights"]),
            "title": self.path.name,
            "model": self.manifest["model"]["class"],
        }
        named = {name: value for name, value in self.manifest.get("about", {}).items() if value != ""}
        dense = settings["credibility"] is not None
        return About(**{**known, **named}, threshold=float(settings["threshold"]), has_density=dense)

    @property
    def origin(self) -> Origin:
        """The choices it was made with, and what it was made of."""
        manifest = self.manifest
        return Origin(
            settings=manifest["settings"],
            fingerprints=(
                ("model", f"{manifest['model']['sha256']} ({manifest['model']['file'] or 'by its scores'})"),
                *(("data", f"{file['sha256']} ({file['name']})") for file in manifest["data"]["files"]),
                ("references", str(manifest["references"]["sha256"])),
                ("schema", str(manifest["schema"]["sha256"])),
                ("settings", self.digest_of("settings")),
                ("version of fewest", str(manifest["version"])),
                ("whole run", str(manifest.get("seal", "not sealed"))),
            ),
            keeps_cases=self.keeps_cases,
            names_cases=self.names_cases,
        )

    def saved_references(self) -> Saved:
        """The references: names, values, support, scores, twins, signatures."""
        return read_saved(self.path / REFERENCES)

    @cached_property
    def _goals(self) -> dict[str, dict[str, Any]]:
        """Name of a reference -> feature -> its value."""
        names, frame = read_references(self.references())
        cells = Cells.of(frame)
        return {
            name: {feature.name: cells.value(k, feature) for feature in self.schema.features}
            for k, name in enumerate(names)
        }

    @cached_property
    def _standing(self) -> dict[str, dict[str, Any]]:
        """Name of a reference -> its support, and its credibility where it is a leaf."""
        content = self.references()
        made, out = content["provenance"], {}
        for entry in content["references"]:
            people = int(entry.get("support", -1))
            share = people / made["negatives"] if made.get("kind") == "leaves" and people >= 0 else None
            out[entry["name"]] = {"support": people if people >= 0 else None, "credibility": share}
        return out

    def explanation(self, row: int) -> Explanation:
        """The answer for one case, as `Explanations` gave it: sentence, changes, facts and proof.

        Rows are counted from 0. Where the cases were not kept, the facts are those of the changed features alone.
        """
        values, plain = self.record(row), self.case(row)
        more = values.get("decimals")
        case = None if plain is None else {
            feature.name: shortened(value, feature, more)
            for feature, value in zip(self.schema.features, decoded_row(plain, self.schema).values(), strict=True)
        }  # fmt: skip
        name, plus = values["reference"], self.about.plus
        goal = self._goals.get(name) if name is not None or len(self._goals) > 1 else next(iter(self._goals.values()))
        columns = zip(values["features"], values["from"], values["to"], strict=True)
        shown = [{"feature": feature, "from": start, "to": end} for feature, start, end in columns]
        own = "to" if plus else "from"
        changes = _changes(shown, self.schema, own, more)
        start, end = (goal, case) if plus else (case, goal)
        sets = [_filled(one, start, end) for one in values["alternatives"]]
        standing = self._standing.get(name, {"support": None, "credibility": None})
        if not changes:
            standing = {**standing, "credibility": None}
        return to_explanation(
            {**values, "label": values.get("label") or values["row"], **standing},
            self.about,
            changes,
            tuple(_changes(one, self.schema, own, more) for one in sets if one is not None),
            () if goal is None else _facts(changes, case, goal, self.schema, plus),
        )


def _changes(shown: Sequence[Values], schema: Schema, own: str, more: int | None) -> tuple[Change, ...]:
    """Changes as JSON holds them, typed again; the case's own side is printed with that many decimals more."""
    features = {feature.name: feature for feature in schema.features}
    out = []
    for change in shown:
        feature = features[change["feature"]]
        ends = {side: decoded(change[side], feature, schema) for side in ("from", "to")}
        ends[own] = shortened(ends[own], feature, more)
        out.append(Change.of(feature, ends["from"], ends["to"]))
    return tuple(out)


def _filled(listed: Sequence[Values], start: Values | None, end: Values | None) -> list[Values] | None:
    """A listed set with all its values: earlier versions left out those of the case and of the row's reference."""
    if all({"from", "to"} <= change.keys() for change in listed):
        return list(listed)
    if start is None or end is None:
        return None
    return [{"from": start[change["feature"]], "to": end[change["feature"]], **change} for change in listed]


def _facts(
    changes: Sequence[Change], case: Values | None, goal: Values, schema: Schema, plus: bool
) -> tuple[Fact, ...]:
    """Every feature beside the reference; without the case's values, the changed ones alone."""
    changed = {change.feature: change for change in changes}
    facts = []
    for feature in schema.features:
        change = changed.get(feature.name)
        if case is not None:
            mine = case[feature.name]
        elif change is not None:
            mine = change.after if plus else change.before
        else:
            continue
        theirs = goal[feature.name]
        after = (theirs if plus else mine) if change is None else change.after
        facts.append(Fact(feature.title, mine, theirs, after, change is not None, feature.unit, feature.name))
    return tuple(facts)
