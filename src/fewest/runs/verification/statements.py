"""What a run says it was made with: held against the model and what the caller states, and repeated in the report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from fewest import __version__
from fewest.decision import Decision
from fewest.runs.run_files import FORMAT, RunFiles
from fewest.runs.verification.base import KnownDensity, Report, Scorer
from fewest.runs.verification.leaves import Node, trees_differ
from fewest.runs.verification.rules import differing
from fewest.tables.saved_schema import plain, without_extremes
from fewest.tables.schema import Schema
from fewest.tables.wording import show_label

ASSIGNMENTS = ("features", "sparsest", "embedding")
DIRECTIONS = ("minus", "plus")
WORDS = {"positive": "class", "outcome": "other outcome", "score": "kind of score", "name": "density"}
RULES = ("AtMost", "Forbidden", "Immutable", "Implies", "Linked", "OneOf", "Only", "Range")
NAMED = ("about", "tree")  # figures of the manifest that format 1 does not have


def check_statements(
    run: RunFiles, decision: Decision, density: KnownDensity | None, schema: Schema | None, report: Report
) -> None:  # fmt: skip
    """The decision, the names of its outcomes, and the words of the run."""
    manifest, settings = run.manifest, run.manifest["settings"]
    for name in NAMED if manifest["format"] > 1 else ():
        if name not in manifest:
            report.add("manifest.json lacks {}, which its format has", [name])
    known = {
        "positive": plain(decision.positive),
        "against": plain(decision.against),
        "outcome": decision.negative_name,
        "threshold": decision.cut,
        "score": decision.kind,
        "above": decision.above,
    }
    _compare("run", {"above": True, **settings}, known, report)
    names = {
        "positive": decision.positive_name,
        "outcome": decision.negative_name,
        "percent": decision.shows_percent,
        **({"number": decision.number} if decision.number else {}),
        "plus": settings["direction"] == "plus",
        "weighted": bool(settings["weights"]),
    }
    _compare("page", {**names, **manifest.get("about", {})}, names, report)
    said = [("assignment", settings["assignment"], ASSIGNMENTS), ("direction", settings["direction"], DIRECTIONS)]
    said += [("constraint", item["kind"], RULES) for item in settings["constraints"]]
    said += [("weight of a feature", name, run.schema.names) for name in settings["weights"]]
    for name, word, words in said:
        if word not in words:
            report.add(f"the {name} is not a known word: {word}")
    if any(not weight > 0 for weight in settings["weights"].values()):
        report.add("a weight is not positive")
    if settings.get("keep_cases", run.keeps_cases) is not run.keeps_cases:
        report.add("the run says otherwise whether it keeps cases than it does")
    if settings["assignment"] == "embedding":
        report.leave("which reference each case is compared with: assigned by an embedding of training rows")
    _check_floor(settings["credibility"], density, report)
    _check_words(manifest, decision, report)
    _check_features(run.schema, schema, report)
    report.claimed.update(claimed(settings))


def _compare(where: str, said: Mapping[str, Any], known: Mapping[str, Any], report: Report) -> None:
    for name, value in known.items():
        if said[name] != value:
            words = (show_label(one) if isinstance(one, str) else str(one) for one in (value, said[name]))
            report.add(f"the {WORDS.get(name, name)} is {next(words)}, the {where}'s is {next(words)}")


def _check_floor(said: Mapping[str, Any] | None, density: KnownDensity | None, report: Report) -> None:
    """A floor is the caller's, or what depends on it is left."""
    if said is not None and density is None:
        report.leave(f"that answers are credible: the density ({said['name']}) is not in the folder")
    elif density is not None:
        stated = {"floor": None} if said is None else said
        known = {
            "floor": density.floor,
            **{name: getattr(density, name, stated.get(name)) for name in ("name", "quantile")},
        }
        _compare("run", {"name": None, "quantile": None, **stated}, plain(known), report)


def _check_words(manifest: Mapping[str, Any], decision: Decision, report: Report) -> None:
    """Words that nobody can check are repeated, unless they are those that every run begins with."""
    steps = getattr(decision.model, "steps", None) or [("", decision.model)]
    about, first = manifest.get("about", {}), manifest["data"]["files"][0]
    usual = {
        "title": (about.get("title"), f"Which facts decided? {first['name']}"),
        "name of the model": (about.get("model"), type(steps[-1][1]).__name__),
        "class of the model": (manifest["model"]["class"], type(decision.model).__name__),
        "version of fewest": (manifest["version"], __version__),
        "format": (manifest["format"], FORMAT),
    }
    for name, (said, known) in usual.items():
        if said is not None and said != known:
            report.leave(f"the {name}: the run says {show_label(said)}")


def _check_features(said: Schema, stated: Schema | None, report: Report) -> None:
    """Features have the names of their columns; what else they are called is a matter of words."""
    for feature in said.features:
        if feature.kind not in ("indicators", "group") and feature.columns != (feature.name,):
            report.add("feature {} is not called by its column", [feature.name])
    worded = any(one.label or one.unit or one.reason_code for one in said.features)
    protected = [feature.name for feature in said.features if feature.protected]
    report.claimed["features"] = f"{len(said)}, protected: {', '.join(protected) or 'none'}"
    if stated is None and worded:
        report.leave("labels, units and codes of features: they are the run's own words")
    elif stated is not None:
        ones, others = (
            [replace(without_extremes(one), protected=False) for one in each.features] for each in (said, stated)
        )
        if ones != others:
            report.leave("spreads, ranges or words of features: they are not those of the references that are stated")


def claimed(settings: Mapping[str, Any]) -> dict[str, str]:
    """What a run says it was made with, in words."""
    rules = [f"{item['kind']} {_arguments(item)}" for item in settings["constraints"]]
    weights = [f"{name} {weight:g}" for name, weight in settings["weights"].items()]
    against = "" if settings["against"] is None else f" instead of {settings['against']}"
    return {
        "class": f"{settings['positive']}{against} (else {settings['outcome']})",
        "threshold": f"{settings['threshold']:g} ({settings['score']})",
        "direction": str(settings["direction"]),
        "constraints": "; ".join(rules) or "none",
        "weights": "; ".join(weights) or "none",
    }


def _arguments(item: Mapping[str, Any]) -> str:
    return ", ".join(str(value) for name, value in item.items() if name != "kind")


def check_references(
    content: Mapping[str, Any], frame: pd.DataFrame, run: RunFiles, stated: pd.DataFrame | None, scorer: Scorer,
    report: Report,
) -> None:  # fmt: skip
    """The references have the scores they are said to have, and are those the caller states, in any order."""
    entries, schema = content["references"], run.schema
    names = [str(entry["name"]) for entry in entries]
    kind = content.get("provenance", {}).get("kind", "given")
    shown = f"{', '.join(names[:5])}{', ...' if len(names) > 5 else ''}"
    report.claimed["references"] = f"{len(names)}, {kind}, assigned by {content.get('assignment')}: {shown}"
    if len(set(names)) < len(names):
        report.add("two references have one name")
    said = np.array([np.nan if entry.get("score") is None else float(entry["score"]) for entry in entries])
    scored = scorer.score(frame)
    for k in np.flatnonzero(~np.isnan(said) & ~scorer.same(said, scored)):
        report.add("reference {}: the model's score of it is another", [names[k]])
    made = content.get("decision") or {}
    decision = scorer.decision
    positive = None if decision.positive is None else str(decision.positive)
    known = {"positive": positive, "outcome": decision.negative_name, "threshold": decision.cut}
    _compare("references' decision", {**known, **made}, known, report)
    if content.get("schema") and content["schema"]["features"] != run.manifest["schema"]["features"]:
        report.add("references.json: the features are not those of the manifest")
    if str(content.get("assignment")) != run.manifest["settings"]["assignment"]:
        report.add("references.json: the assignment is not that of the manifest")
    if stated is None:
        return
    wanted = schema.conform(stated, unseen="allow")
    if len(wanted) != len(frame):
        report.add(f"the run has {len(frame)} references, {len(wanted)} are stated")
        return
    wrong = differing(schema, wanted, frame).any(axis=1)
    if stated.index.dtype == object:
        wrong |= np.array([a != b for a, b in zip(stated.index, names, strict=True)], dtype=bool)
    for k in np.flatnonzero(wrong):
        report.add("reference {} is not the one that is stated", [names[k]])


def check_tree(run: RunFiles, tree: Node | None, report: Report) -> None:
    """The tree beside the answers is the one that decides."""
    if run.manifest.get("tree") is None:
        return
    said = json.loads(run.file(run.manifest["tree"]["name"]).read_text(encoding="utf-8"))
    if tree is None:
        report.leave("tree.json: how the tree of the model is read was not handed in, or it cannot be read")
    elif trees_differ(said, tree):
        report.add("tree.json is not the tree that decides")
