"""Write docs/benchmarks/points.md: SEV1, SEV-cluster and SEV-cluster+F beside the paper's figures.

fewest paper all --out DIR; python benchmarks/points_page.py DIR
"""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path

import sev1_agreement

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "points.md"
WHY = """
Why the others differ. FICO GBDT: the authors' figure is over 250 queries and sets of at most five features; 50 have
none within that depth, because the reference itself is decided positive. Here all cases are searched to the end, and
those that cannot be reached are proved so. German MLP: 200 test rows and a network whose training depends on the order
of columns and rows.

SEV-cluster is not the authors' here: centres they keep are dropped when the model decides against them, a category has
one level (theirs has the median of one-hot columns, which is often none), and a case is compared with every centre and
the sparsest answer kept. That is why it is lower in most lines.
"""


def main(folder: str) -> None:
    agreement = io.StringIO()
    with contextlib.redirect_stdout(agreement):
        sev1_agreement.main(str(Path(folder) / "points.jsonl"))
    parts = [
        "# SEV1, SEV-cluster and SEV-cluster+F beside the paper\n",
        "Written by `benchmarks/points_page.py` from what `fewest paper table sev1 | sevc | sevcf` measured. "
        "The tables: [SEV1](paper/sev1.md), [SEV-cluster](paper/sevc.md), [SEV-cluster+F](paper/sevcf.md).\n",
        "## Split 0, beside the authors' own classes\n",
        "Mean SEV, first 1,000 test rows. *Not rounded*: the mean of whole numbers stays a fraction, as there.\n",
        agreement.getvalue(),
        WHY,
    ]
    PAGE.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
