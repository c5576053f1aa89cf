"""An explainer in one file: a zip of JSON, arrays and a skops model. Nothing in it runs when it is read.

What is not in it: training rows, the model's training history, the number of threads.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fewest.decision import Decision
from fewest.errors import ModelError, UsageError
from fewest.explainer import Explainer
from fewest.persistence._array_parts import (
    credibility_from_members,
    credibility_members,
    references_from_members,
    references_members,
)
from fewest.persistence._estimators import model_from_members, model_members
from fewest.persistence._readers import as_json, pack, parse, read_bytes, refused, refusing, unpack
from fewest.persistence._settings import constraints_from_json, constraints_to_json
from fewest.persistence.versions import versions
from fewest.tables.files import write_bytes
from fewest.tables.model_kinds import NUMBERS
from fewest.tables.saved_schema import plain

FORMAT = 1
KIND = "fewest explainer"
SUFFIX = ".fewest"
MANIFEST, SETTINGS = "manifest.json", "explainer.json"
LIBRARIES = ("numpy", "scikit-learn", "skops", "xgboost-cpu", "xgboost", "lightgbm")


def save(explainer: Explainer, path: str | Path, training_rows: bool = False) -> None:
    """Write an explainer as one file that `load` reads without running anything.

    Parameters
    ----------
    explainer : Explainer
    path : path
        Ends in ``.fewest``.
    training_rows : bool
        Whether the file may hold rows of people the model or the density was trained on. Without it, what is made of
        such rows (nearest neighbours, support vectors) is refused.

    Examples
    --------
    >>> import tempfile
    >>> import fewest as fw
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]}); y = [0, 0, 1, 1]
    >>> decision = fw.Decision(LogisticRegression().fit(X, y))
    >>> path = Path(tempfile.mkdtemp()) / "loans.fewest"
    >>> save(fw.Explainer(decision, fw.references.single(decision, X, y)), path)
    >>> str(load(path).explain(X)[2].changes[0])
    'debt had been 2 instead of 8'
    """
    path = Path(path)
    if path.suffix.lower() != SUFFIX:
        raise UsageError(f"{path.name} does not end in {SUFFIX}", do=f"call it {path.stem}{SUFFIX}")
    if (own := explainer.engine.search) is not None:
        raise UsageError(f'a file cannot hold the search "{own}"', do="save explainer.with_(engine=ENGINE)")
    data = as_bytes(explainer, training_rows)
    _check_same(explainer, read_explainer(data, path.name))
    write_bytes(path, data)


def load(path: str | Path, allow_pickle: bool = False) -> Explainer:
    """An explainer from the file that `save` wrote; the file is audited before anything of it is used.

    Parameters
    ----------
    path : path
    allow_pickle : bool
        Whether the model inside may hold types beyond the list, which can run code.

    Examples
    --------
    >>> load("no-such.fewest")
    Traceback (most recent call last):
    fewest.errors.ModelError: there is no model file no-such.fewest
      Try: check the path
    """
    path = Path(path)
    return read_explainer(read_bytes(path), path.name, allow_pickle)


def as_bytes(explainer: Explainer, training_rows: bool = False) -> bytes:
    """The file as bytes: the same for the same explainer, up to names that skops gives its members."""
    decision = explainer.decision
    if decision.kind in ("function", "torch"):
        raise UsageError(
            "a function or a torch module cannot be saved: its code is not in it",
            do="use an estimator, or convert the module to ONNX and load that",
        )
    model, files = model_members(decision.model, training_rows)
    references, more = references_members(explainer.references, training_rows)
    content: dict[str, Any] = {
        "model": model,
        "decision": {
            "kind": decision.kind, "threshold": decision.cut, "positive": decision.positive_index,
            "against": None if decision.against is None else decision.classes.index(decision.against),
            "classes": plain(list(decision.classes)),
        },
        "constraints": constraints_to_json(explainer.constraints),
        "weights": {name: float(weight) for name, weight in explainer.weights.items()},
        "direction": explainer.direction, "nodes": explainer.max_nodes, "unseen": explainer.unseen,
        "structure": explainer.structure, "credibility": None,
    }  # fmt: skip
    if decision.names is not None:
        content["decision"]["names"] = [decision.names.get(label) for label in decision.classes or (0, 1)]
    if explainer.credibility is not None:
        content["credibility"], dense = credibility_members(explainer.credibility, training_rows)
        more = {**more, **dense}
    members = {SETTINGS: as_json(content), "references.json": as_json(references), **files, **more}
    return pack({MANIFEST: as_json(_manifest(members)), **members})


def _manifest(members: Mapping[str, bytes]) -> dict[str, Any]:
    from fewest import __version__

    return {
        "kind": KIND, "format": FORMAT, "fewest": __version__,
        "written with": {"python": platform.python_version(), **versions(LIBRARIES)},
        "members": {name: {"bytes": len(data), "sha256": _sha256(data)} for name, data in members.items()},
    }  # fmt: skip


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read_explainer(data: bytes, name: str, allow_pickle: bool = False) -> Explainer:
    """The explainer in the bytes of a file."""
    members = unpack(data, name)
    _check_manifest(members, name)
    content = parse(members[SETTINGS], name)
    with refusing(name, "it is not a whole explainer"):
        model = model_from_members(content["model"], members, name, allow_pickle)
        decision = _decision(model, content["decision"], name)
        references = references_from_members(parse(members["references.json"], name), members, decision, name)
        dense = content["credibility"]
        return Explainer(
            decision, references, constraints=constraints_from_json(content["constraints"], name),
            weights=content["weights"], direction=content["direction"], max_nodes=content["nodes"],
            unseen=content["unseen"], structure=content["structure"],
            credibility=None if dense is None else credibility_from_members(dense, members, name),
        )  # fmt: skip


def _check_manifest(members: Mapping[str, bytes], name: str) -> None:
    """The file is of a format this version reads, and its members are those that were written."""
    if MANIFEST not in members:
        raise refused(name, f"it is not a saved explainer: it has no {MANIFEST}")
    manifest = parse(members[MANIFEST], name)
    with refusing(name, "it is not a saved explainer"):
        if manifest["kind"] != KIND:
            raise refused(name, "it is not a saved explainer")
        if manifest["format"] != FORMAT:
            why = f"its format is {manifest['format']!r}, and this version reads format {FORMAT}"
            raise refused(name, why, do="update fewest")
        listed = manifest["members"]
        others = set(members) ^ {*listed, MANIFEST}
        if others:
            raise refused(name, f"its list of members and its members differ: {sorted(others)[0]}")
        for member, said in listed.items():
            if said["bytes"] != len(members[member]) or said["sha256"] != _sha256(members[member]):
                raise refused(name, f"its member {member} is not the one that was written")


def _decision(model: Any, content: Mapping[str, Any], name: str) -> Decision:
    if content["kind"] in NUMBERS:
        cut, above = float(content["threshold"]), content["positive"] == 1
        words = {side: word for side, word in enumerate(content.get("names", [])) if word is not None}
        return Decision(model, threshold=cut if above else -cut, names=words or None, above=above)
    classes = np.asarray(model.classes_).tolist()
    if plain(classes) != content["classes"]:
        raise refused(name, "its model has other classes than were written")
    against, named = content["against"], zip(classes, content.get("names", []), strict=False)
    return Decision(
        model, positive=classes[content["positive"]], threshold=float(content["threshold"]),
        against=None if against is None else classes[against], kind=content["kind"],
        names={label: word for label, word in named if word is not None} or None,
    )  # fmt: skip


def _check_same(before: Explainer, after: Explainer) -> None:
    """What was written is read back before it counts as saved: the same references, and the same scores of them."""
    frame = before.references.frame
    if not after.references.frame.equals(frame):
        raise UsageError("the references have values that a file does not keep", do="use text or numbers as levels")
    if not np.array_equal(after.decision.score(frame), before.decision.score(frame)):
        raise ModelError(
            f"{type(before.decision.model).__name__} does not score the same after it was saved",
            do="its state is not all in its attributes; use another model",
        )
