"""A researcher: a model class of one's own on plain arrays, figures per case, and what brute force says.

python examples/for_research.py
"""

from itertools import combinations

import numpy as np

import fewest as fw


class Rule:
    """Refuses where at least two of three tests fail."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Share of the tests that fail."""
        bad = (np.asarray(X, dtype=float) > [0.5, 0.0, -0.5]).mean(axis=1)
        return np.column_stack([1 - bad, bad])

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Whether it refuses."""
        return (self.predict_proba(X)[:, 1] >= 0.5).astype(int)


random = np.random.default_rng(0)
X = random.normal(size=(200, 3)).round(2)
model = Rule()
decision = fw.Decision(model, positive=1)
references = fw.references.supplied(decision, X[[np.argmin(model.predict_proba(X)[:, 1])]], X=X)
out = fw.Explainer(decision, references).explain(X)
print(out.summary())

reference = references.frame.to_numpy()[0]
for answer in out.explained:
    sizes = [
        size
        for size in range(1, 4)
        for moved in combinations(range(3), size)
        if not model.predict(np.where(np.isin(range(3), moved), reference, X[answer.label])[None])[0]
    ]
    assert answer.sev == min(sizes), answer
print(f"{len(out.explained)} answers are what brute force finds")
print(fw.metrics.sparsity(out))
