from pathlib import Path

import pytest

from fewest.datasets import catalogue, names

SHARED = Path(__file__).parents[3] / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the data folder ../shared/data is not here")


def test_without_a_folder_german_is_found_and_the_others_say_where_to_get_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("FEWEST_DATA", raising=False)
    listed = catalogue()
    assert tuple(one.name for one in listed) == names()
    assert [one.name for one in listed if one.found] == ["german"]
    assert listed[0].where == "inside the package"
    assert all(one.where == one.problem == "" for one in listed[1:])
    assert all(one.get and one.licence and one.rows and one.features for one in listed)


def test_a_file_that_cannot_be_used_is_here_but_not_found(tmp_path: Path) -> None:
    (tmp_path / "adult.data").write_text("39, State-gov\n")
    adult = catalogue(tmp_path)[1]
    assert not adult.found
    assert adult.where == str(tmp_path / "adult.data")
    assert "2 fields where there should be 15" in adult.problem
    assert (adult.rows, adult.features, adult.positives) == (32_561, 14, 7_841)


@needs_shared
def test_the_shared_folder_has_all_but_the_credentialed_one() -> None:
    listed = {one.name: one for one in catalogue(SHARED)}
    assert [name for name, one in listed.items() if not one.found] == ["mimic"]
    assert (listed["fico"].rows, listed["fico"].features, listed["fico"].positives) == (10_459, 23, 5_459)
    assert listed["fico"].where == str(SHARED / "fico.csv")
    assert listed["mimic"].positives is None
