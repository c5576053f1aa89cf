"""What differs between two files of references: values as they are compared, and whole references."""

from __future__ import annotations

from fewest.references import differences
from fewest.references.file import Saved
from fewest.tables.schema import Feature, Schema

HOME = Feature("home", "indicators", ("own", "rent"), levels=("own", "rent"))
SCHEMA = Schema((Feature("age", "integer", ("age",)), HOME))


def saved(**values: dict[str, object]) -> Saved:
    return Saved(tuple(values), tuple(values.values()), (-1,) * len(values), (0.1,) * len(values), SCHEMA)


def test_values_are_compared_as_they_are_fingerprinted_and_groups_by_level() -> None:
    one = saved(r1={"age": 35, "own": 1, "rent": 0}, r2={"age": 40.0, "own": 0, "rent": 1})
    two = saved(r1={"age": 36, "own": 0, "rent": 1}, r2={"age": 40, "own": 0.0, "rent": 1.0})
    found = [(one.reference, one.feature and one.feature.name, one.before, one.after) for one in differences(one, two)]
    assert found == [("r1", "age", 35, 36), ("r1", "home", "own", "rent")]
    assert differences(one, one) == []


def test_a_reference_that_one_file_lacks_is_one_difference() -> None:
    both, one = saved(r1={"age": 35}, r2={"age": 40}), saved(r2={"age": 40})
    assert [(d.reference, d.feature, d.before is None, d.after is None) for d in differences(both, one)] == [
        ("r1", None, False, True)
    ]
    assert [(d.reference, d.before is None) for d in differences(one, both)] == [("r1", True)]
