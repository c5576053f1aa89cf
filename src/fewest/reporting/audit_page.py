"""The audit of references as a page: sentence first, warnings second, every value of every reference after that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fewest.references.audit import Audit
from fewest.references.spread import FEW
from fewest.reporting.page_templates import render
from fewest.results.drawing import counted
from fewest.tables.wording import cell, clip

TEXT = 120
NOTE = "Whoever signs says that these are fit to compare people with. A signature is void as soon as a value changes."


@dataclass(frozen=True)
class AuditLine:
    """One feature of one reference, as text."""

    feature: str
    value: str
    people: str
    nearest: str
    note: str
    odd: bool
    moved: bool


def audit_html(audit: Audit, title: str = "Who are cases compared with? The references") -> str:
    """One self-contained HTML page about references: no script, no outside resources, fit to print and sign.

    Parameters
    ----------
    audit : Audit
        What `References.audit` returned.
    title : str
        Heading of the page.

    Examples
    --------
    >>> import fewest as fw
    >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    >>> refs = fw.references.supplied(decision, {"debt": [10, 20]}).sign_off("Credit Risk", which="r1")
    >>> "2 references, 1 of them signed" in audit_html(refs.audit())
    True
    """
    rows = audit.references.to_dict("records")
    return render(
        "audit.html.j2",
        title=clip(title, TEXT),
        note=NOTE,
        few=FEW,
        sentence=summary_sentence(audit),
        flags=[clip(flag, TEXT) for flag in audit.flags()],
        threshold=None if np.isnan(audit.threshold) else f"{audit.threshold:g}",
        references=[
            {
                "name": clip(row["name"], TEXT),
                "facts": facts(row),
                "signature": clip(row["signature"], TEXT),
                "holds": row["signed"] or row["signature"] == "not signed",
                "lines": lines(audit, row["name"], row["flexible_of"]),
            }
            for row in rows
        ],
        shows_nearest=bool(audit.table["nearest"].notna().any()),
    )


def summary_sentence(audit: Audit) -> str:
    """The whole audit in one sentence."""
    count, signed, flags = len(audit.references), int(audit.references["signed"].sum()), len(audit.flags())
    head = f"{counted(count, 'reference')}, {signed or 'none'} of them signed"
    return f"{head}; {counted(flags, 'warning') if flags else 'no warnings'}."


def facts(row: dict[Any, Any]) -> str:
    """Who a reference stands for, and what the model makes of it."""
    parts = ["people not known" if row["people"] < 0 else f"{row['people']:,} people"]
    verdict = {True: ", accepted", False: ", refused"}.get(row["accepted"], "")
    parts.append("score not known" if np.isnan(row["score"]) else f"score {row['score']:.3f}{verdict}")
    if not np.isnan(row["density_quantile"]):
        share = f"{100 * row['density_quantile']:.0f} %"
        parts.append(f"as usual as or more usual than {share} of the accepted cases")
    return "; ".join(parts)


def lines(audit: Audit, name: str, flexible_of: str = "") -> list[AuditLine]:
    """The features of one reference; for a flexible twin, which numbers have moved."""
    table = audit.table
    own = table[table["reference"] == name]
    before = table[table["reference"] == flexible_of].set_index("feature")["value"] if flexible_of else None
    return [
        AuditLine(
            feature=clip(audit.schema.features[audit.schema.index(row["feature"])].heading, TEXT),
            value=_text(row["value"]),
            people="" if pd.isna(row["low"]) else f"{row['low']:g} to {row['high']:g}",
            nearest=_text(row["nearest"]),
            note=row["note"],
            odd=not row["possible"],
            moved=before is not None and _text(before[row["feature"]]) != _text(row["value"]),
        )
        for row in own.to_dict("records")
    ]


def _text(value: Any) -> str:
    return clip(cell(value), TEXT)
