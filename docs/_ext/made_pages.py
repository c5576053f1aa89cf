"""Parts of the reference that are written from the code when the pages are built: commands, and OpenAPI."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

MADE = Path(__file__).parents[1] / "made"

ORDER = [
    "one_case", "all_cases", "held_features", "two_models", "least_values", "hypercube", "regions", "cluster_map",
    "trade_off", "flexible_references", "credibility_floor", "near_optimal_trees", "training_path", "before_after",
    "lender", "clinician", "researcher",
]  # fmt: skip


class SimpleQuestionsFirst:
    """The order of the examples in the gallery; new ones come last."""

    def __init__(self, folder: str) -> None:
        """Sphinx-gallery passes the folder; the order is the same in all."""

    def __call__(self, name: str) -> tuple[int, str]:
        """Place of a file among the others."""
        stem = Path(name).stem
        return (ORDER.index(stem) if stem in ORDER else len(ORDER), stem)


def commands(command: Any, words: str = "fewest") -> Iterator[str]:
    """Every command below this one as MyST: what it does, and its arguments and options."""
    import typer

    if hasattr(command, "commands"):
        for name, part in command.commands.items():
            yield from commands(part, f"{words} {name}")
        return
    yield f"### `{words}`\n\n{command.help or ''}\n"
    context = typer.Context(command, info_name=words)
    lines = [param.get_help_record(context) for param in command.params if not getattr(param, "hidden", False)]
    cells = [[" ".join(text.split()).replace("|", "\\|") for text in line] for line in lines if line]
    if cells:
        yield "| option | meaning |\n|---|---|"
        yield "\n".join(f"| `{name}` | {what.replace('<', '&lt;')} |" for name, what in cells) + "\n"


def openapi() -> dict[str, Any]:
    """The description of a service with one model, over two columns of German Credit."""
    from sklearn.linear_model import LogisticRegression

    import fewest as fw
    from fewest.apps.serving.app import service_api
    from fewest.apps.serving.door import Metrics
    from fewest.apps.serving.instances import BodyReader
    from fewest.apps.serving.settings import ServiceSettings

    german = fw.datasets.load("german")
    X, y = german.X[["duration_months", "credit_amount"]], german.labels
    decision = fw.Decision(LogisticRegression(max_iter=1000).fit(X, y), positive="bad", threshold=0.4)
    schema = fw.Explainer(decision, fw.references.single(decision, X, y)).schema
    reader = BodyReader(schema)
    pool: Any = SimpleNamespace(name="credit", request_schema=reader.request_schema(), model={}, ready=1)
    pools = {"credit": pool}
    return dict(service_api(pools, ServiceSettings(), None, Metrics(pools))[0].openapi())


def write(_: Any) -> None:
    """Write the parts into docs/made."""
    import typer

    from fewest.apps.cli._main import app

    MADE.mkdir(exist_ok=True)
    (MADE / "commands.inc").write_text("\n".join(commands(typer.main.get_command(app))), "utf-8")
    (MADE / "openapi.json").write_text(json.dumps(openapi(), indent=1), "utf-8")


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", write, priority=100)  # before the gallery, which takes minutes
    return {"parallel_read_safe": True}
