"""Run folders for the explorer's tests: an ordinary one where every state occurs, and one whose every name attacks."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fewest as fw

PORT = 8765
HOST = f"127.0.0.1:{PORT}"
TOKEN = "token-of-the-tests"
HIT = "window.__hit=1"
PAYLOADS = (
    f"<script>{HIT}</script>",
    f'<img src=x onerror="{HIT}">',
    f'"><svg onload={HIT}>',
    f"' onmouseover='{HIT}",
    f'" autofocus onfocus={HIT} x="',
    f"javascript:{HIT}",
    f'<a href="javascript:{HIT}">x</a>',
    f"</title><script>{HIT}</script>",
    f"</style><script>{HIT}</script>",
    f"</textarea><script>{HIT}</script>",
    f"--><script>{HIT}</script>",
    f"]]><script>{HIT}</script>",
    '<iframe srcdoc="<script>parent.__hit=1</script>"></iframe>',
    f"<details open ontoggle={HIT}>",
    '<base href="http://evil.example/">',
    '<meta http-equiv=refresh content="0;url=http://evil.example/">',
    '<link rel=stylesheet href="http://evil.example/x.css">',
    "<style>@import 'http://evil.example/y.css';</style>",
    '<form action="http://evil.example/"><button autofocus>go</button></form>',
    f"<input autofocus onfocus={HIT}>",
    f"<math><mtext></mtext><script>{HIT}</script></math>",
    f"<body onload={HIT}>",
    '<object data="http://evil.example/"></object>',
    '<embed src="http://evil.example/">',
    f"<video><source onerror={HIT}></video>",
    f"<svg><animate onbegin={HIT} attributeName=x dur=1s></animate></svg>",
    f'<noscript><p title="</noscript><img src=x onerror={HIT}>"></noscript>',
    f"<template><script>{HIT}</script></template>",
    f"<select><option onclick={HIT}></select><script>{HIT}</script>",
    "{{ 7 * 7 }}",
    "{% for x in (1).__class__.__mro__ %}{{ x }}{% endfor %}",
    "${window.__hit=1}",
    '=HYPERLINK("http://evil.example/","x")',
    "+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+1)",
    f"&lt;script&gt;{HIT}&lt;/script&gt;",
    f"%3Cscript%3E{HIT}%3C/script%3E",
    f"\u202e<script>{HIT}</script>",
    f"\u2028{HIT}//",
    f"x\r\nSet-Cookie: hit=1\r\n\r\n<script>{HIT}</script>",
    f"<xss style=animation-name:x onanimationstart={HIT}>",
)


@dataclass(frozen=True)
class Subject:
    """A run folder, another one of the same cases, and what made the first."""

    run: Path
    other: Path
    explainer: fw.Explainer
    decision: fw.Decision


def people(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "amount": random.integers(250, 18_000, n),
            "months": random.integers(4, 72, n),
            "age": random.integers(19, 75, n),
            "rate": np.round(random.normal(3, 1, n), 1),
            "account": random.choice(["none", "below 0", "0 to 200", "above 200"], n),
            "sex": random.choice(["female", "male"], n),
        }
    )
    signal = X["amount"] / 4000 + X["months"] / 18 - X["age"] / 25 + 2.2 * (X["account"] == "below 0") + X["rate"] / 3
    signal = signal + 0.4 * (X["sex"] == "female")
    return X, np.where(signal > np.quantile(signal, 0.7), "bad", "good")


def logistic(X: pd.DataFrame, y: np.ndarray) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    text = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    numbers = [name for name in X if name not in text]
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), text), (StandardScaler(), numbers))
    return make_pipeline(encode, LogisticRegression(C=10)).fit(X, y)


def make_subject(folder: Path, n: int = 120) -> Subject:
    """Two runs of the same cases; the rate of the first case, which cannot change, speaks against it alone."""
    from fewest.runs import explain_files

    X, y = people(400, 1)
    decision = fw.Decision(logistic(X, y), positive="bad")
    schema = fw.Schema.infer(X).with_("sex", protected=True).with_("amount", label="credit amount")
    refs = fw.references.single(decision, X, y, schema=schema)
    explainer = fw.Explainer(decision, refs, n_jobs=1, constraints=fw.Constraints(fw.Immutable("rate")))
    cases, _ = people(n)
    cases.loc[0, "rate"] = 60.0
    cases.to_csv(folder / "cases.csv", index=False)
    run, other = folder / "run", folder / "other"
    about = {"n_jobs": 1, "alternatives": 5}
    explain_files(explainer, folder / "cases.csv", run, title="Loans of the north", **about)
    second = fw.Decision(decision.model, positive="bad", threshold=0.65)
    refs = fw.references.single(second, X, y, schema=schema)
    explain_files(fw.Explainer(second, refs, n_jobs=1), folder / "cases.csv", other, title="Loans, milder", **about)
    return Subject(run, other, explainer, decision)


def doctor(run: Path, rows: dict[int, dict[str, Any]]) -> None:
    """Write other outcomes into rows of a run; readers do not check seals, `fewest verify` does."""
    import pyarrow as pa
    from pyarrow import parquet

    path = run / "part-00000.parquet"
    table = parquet.read_table(path)
    for name in {name for changes in rows.values() for name in changes}:
        column = table.schema.get_field_index(name)
        values = table[name].to_pylist()
        for row, changes in rows.items():
            values[row] = changes.get(name, values[row])
        kind = table.schema.field(name).type
        plain = pa.array(values, kind.value_type) if pa.types.is_dictionary(kind) else pa.array(values, kind)
        table = table.set_column(column, name, plain.dictionary_encode() if pa.types.is_dictionary(kind) else plain)
    parquet.write_table(table, path)


def add_states(run: Path) -> dict[str, int]:
    """Make three explained cases unfinished and not credible; rows of each state."""
    table = fw_table(run)
    explained = table.loc[table["status"] == "EXPLAINED", "row"].tolist()
    budget, nothing, far = explained[-1], explained[-2], explained[-3]
    empty: dict[str, Any] = {"features": [], "from": [], "to": [], "score_after": None, "margin": None}
    open_end = {"status": "BUDGET", "sev": None, "lower_bound": 4.0, "proved": False}
    doctor(
        run,
        {
            budget: open_end,
            nothing: {**open_end, **empty},
            far: {"status": "NOT_CREDIBLE", "sev": None, "lower_bound": float("inf")},
        },
    )
    content = json.loads((run / "manifest.json").read_text())
    counts = fw_table(run)["status"].value_counts().to_dict()
    content["counts"].update({name: int(count) for name, count in counts.items()})
    (run / "manifest.json").write_text(json.dumps(content))
    found = {str(status): int(rows[0]) for status, rows in fw_table(run).groupby("status")["row"].agg(list).items()}
    return {**found, "BUDGET": budget, "NOTHING": nothing, "NOT_CREDIBLE": far}


def fw_table(run: Path) -> pd.DataFrame:
    from fewest.runs import Run

    return Run.open(run).table()


def make_tree(run: Path) -> None:
    """Put a tree and a front beside a run, as `fewest train topt` writes them."""
    from fewest.models.trees import Leaf, Split, Tree
    from fewest.models.trees.file import save_tree
    from fewest.runs import Run

    short = Split("amount", 9000.0, Leaf(False, 0.2, 60, 12), Leaf(True, 0.7, 9, 30))
    root = Split("months", 30.5, short, Split("age", 40.5, Leaf(True, 0.9, 4, 50), Leaf(False, 0.3, 40, 10)))
    save_tree(Tree.build(Run.open(run).schema, root), run / "tree.json", ("good", "bad"))
    lines = ["mean_sev_t,accuracy,leaves,trees,pareto,chosen", "1.0,0.79,4,12,True,True", "1.2,0.8,6,31,True,False"]
    (run / "front.csv").write_text("\n".join(lines) + "\n")


def make_hostile(folder: Path) -> Path:
    """A run in which names of features, levels, classes, references, signatures and titles are all attacks."""
    from fewest.runs import explain_files

    random = np.random.default_rng(0)
    names = [payload.replace("\r\n", " ") for payload in PAYLOADS]
    X = pd.DataFrame({name: random.choice([names[(k + 1) % len(names)], f"b{k}"], 300) for k, name in enumerate(names)})
    X["size"] = random.normal(size=300).round(2)
    weight = random.normal(size=len(names))
    score = sum(w * (X[name] == f"b{k}") for k, (name, w) in enumerate(zip(names, weight, strict=True))) + 3 * X["size"]
    y = np.where(score > np.quantile(score, 0.6), PAYLOADS[0], PAYLOADS[1])
    decision = fw.Decision(logistic(X, y), positive=PAYLOADS[0])
    refs = fw.references.single(decision, X, y)
    saved = refs.saved()
    schema = refs.schema.with_(names[5], label=f"{PAYLOADS[2]} too").with_(names[6], protected=True)
    supplied = fw.references.supplied(
        decision, pd.DataFrame(list(saved.values)), names=[PAYLOADS[7]], schema=schema, on_positive="allow"
    ).sign_off(PAYLOADS[1], PAYLOADS[8])
    X[:60].to_parquet(folder / "hostile.parquet")
    run = folder / "hostile"
    explain_files(
        fw.Explainer(decision, supplied, n_jobs=1), folder / "hostile.parquet", run, n_jobs=1, alternatives=4,
        title=PAYLOADS[3], model_name=PAYLOADS[4],
    )  # fmt: skip
    (run / "tree.json").write_text(json.dumps(_hostile_tree(schema)))
    (run / "front.csv").write_text("mean_sev_t,accuracy,leaves,trees,pareto,chosen\n1.0,<script>,3,1,True,True\n")
    return run


def _hostile_tree(schema: fw.Schema) -> dict[str, Any]:
    from fewest.models.trees import Leaf, Split, Tree
    from fewest.models.trees.file import as_dict

    first, second = schema.features[0], schema.features[1]
    inner = Split(second.name, frozenset(second.levels[:1]), Leaf(False, 0.1, 5, 1), Leaf(True, 0.9, 1, 5))
    tree = Tree.build(schema, Split(first.name, frozenset(first.levels[:1]), inner, Leaf(True, 0.8, 0, 4)))
    return as_dict(tree, (PAYLOADS[1], PAYLOADS[0]))


class _Markup(HTMLParser):
    """What in a page could run, load or lead elsewhere."""

    LOADING = ("iframe", "object", "embed", "base", "style", "frame", "applet", "noscript")

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        own_script = tag == "script" and given.get("src") == "/static/explorer.js"
        if tag in self.LOADING or (tag == "script" and not own_script) or "http-equiv" in given:
            self.problems.append(f"<{tag} {given}>")
        for name, value in attrs:
            if name.startswith("on") or name in ("style", "srcdoc"):
                self.problems.append(f"{tag} {name}={value}")
            if name in ("href", "src", "action", "formaction", "xlink:href") and not _own(value or ""):
                self.problems.append(f"{tag} {name}={value}")


def _own(place: str) -> bool:
    return place.startswith(("/", "#", "?")) and not place.startswith(("//", "/\\"))


def problems_of(page: str) -> list[str]:
    """Every element and attribute of a page that could run a script, load something or lead off the explorer."""
    parser = _Markup()
    parser.feed(page)
    return parser.problems


@contextmanager
def served(app: Any, guarded: bool = True) -> Iterator[str]:
    """An application at a free port of this machine, in a thread; the whole address with its token, always the same.

    Without the guard nothing is asked for and no header is sent: for negative controls.
    """
    import uvicorn

    from fewest.apps.explorer import Binding, Guard, known_hosts
    from fewest.apps.explorer._server import listen

    made = listen(Binding(port=0))
    port = made.getsockname()[1]
    names = known_hosts(port)
    guard = Guard(app, names, TOKEN, cookie=f"fewest-{port}", renew=lambda: TOKEN) if guarded else app
    server = uvicorn.Server(uvicorn.Config(guard, log_level="error", access_log=False, lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [made]}, daemon=True)
    thread.start()
    until = time.monotonic() + 10
    while not server.started and time.monotonic() < until:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{port}/?token={TOKEN}"
    finally:
        server.should_exit = True
        thread.join(10)
        made.close()
