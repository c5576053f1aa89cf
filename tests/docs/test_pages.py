"""All code of the README and of all pages runs, and prints what the pages say."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pages import Block, BrokenPageError, blocks, check_command, named_commands, run_page

import fewest as fw
from fewest.datasets import load

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
NAMES = {page: str(page.relative_to(ROOT)) for page in PAGES}
WITH_CODE = [page for page in PAGES if any(b.language in ("python", "pycon", "sh") for b in blocks(page.read_text()))]
NEEDS = {"docs/methods/training.md": "torch", "docs/scale.md": "pyarrow", "docs/spark.md": "pyarrow"}
MOST_NOT_RUN = 3


def named(page: Path, slow: tuple[str, ...] = ()) -> Any:
    return pytest.param(page, id=NAMES[page], marks=[pytest.mark.slow] if NAMES[page] in slow else [])


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the pages' commands name: tables, a model, signed references, codes, and a run folder."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    from fewest.runs import explain_files

    folder = tmp_path_factory.mktemp("pages")
    data = load("german")
    X, y = data.X, data.labels
    text = list(X.select_dtypes(exclude="number"))
    numbers = list(X.select_dtypes("number"))
    encode = make_column_transformer((OneHotEncoder(), text), (StandardScaler(), numbers))
    model = make_pipeline(encode, LogisticRegression(C=0.1, max_iter=1000)).fit(X, y)
    X.assign(risk=y).to_csv(folder / "train.csv", index=False)
    X.to_csv(folder / "cases.csv", index=False)
    X.to_parquet(folder / "cases.parquet")
    pytest.importorskip("skops.io").dump(model, folder / "model.skops")
    lines = [f"{name},any,R{i:02},{name}" for i, name in enumerate(X)]
    (folder / "codes.csv").write_text("\n".join(["feature,direction,code,text", *lines]) + "\n")
    decision = fw.Decision(model, positive="bad")
    references = fw.references.single(decision, X, y).sign_off("Credit Risk")
    references.save(folder / "references.json")
    explain_files(fw.Explainer(decision, references), folder / "cases.csv", folder / "run", alternatives=1000, n_jobs=1)
    return folder


@pytest.mark.parametrize("page", [named(page, slow=("docs/methods/training.md",)) for page in WITH_CODE])
def test_every_block_of_a_page_runs_and_prints_what_it_shows(
    page: Path, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if NAMES[page] in NEEDS:
        pytest.importorskip(NEEDS[NAMES[page]])
    text = page.read_text()
    makes_its_own_run = re.search(r"--out run\b", text) is not None
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*["run"] * makes_its_own_run))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FEWEST_DATA", raising=False)
    run_page(text, NAMES[page])


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("```python\nimport fewest as fw\nfw.Immutabel('age')\n```", "line 2: AttributeError"),
        ("```python\nprint(1 + 1)\n```\n\n```text\n3\n```", "line 2: prints"),
        ("```pycon\n>>> 1 + 1\n3\n```", "Expected"),
        ("```python\na = 1\n```\n\n```pycon\n>>> a\n2\n```", "Expected"),
        ("```sh\nfewest verify no-such-folder\n```", "ends with 2"),
        ("```sh\nfewest datasets list  # ends with 1\n```", "ends with 0"),
    ],
)
def test_a_broken_block_is_caught(code: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control of the test above."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BrokenPageError, match=told):
        run_page(f"{code}\n", "page")


def test_blocks_that_are_not_run_are_few_and_say_why() -> None:
    left: list[tuple[str, Block]] = [
        (NAMES[page], block) for page in PAGES for block in blocks(page.read_text()) if block.reason is not None
    ]
    print("\n".join(f"not run: {name}, line {block.line}: {block.reason}" for name, block in left))
    assert len(left) <= MOST_NOT_RUN, left
    assert all(len(str(block.reason).split()) >= 4 for _, block in left), left


@pytest.mark.parametrize("page", [named(page) for page in PAGES])
def test_code_stands_in_blocks_that_name_their_language(page: Path) -> None:
    """Indented code, and blocks without a language, would not be run."""
    text = page.read_text()
    assert [block.line for block in blocks(text) if not block.language] == []
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
    code = r"^ {4}(?:>>> |from \w+ import|import \w|\w+ = \w+[.(]|fewest \w|make \w).*$"
    assert re.findall(code, outside, flags=re.M) == []


def there_is() -> tuple[set[str], set[str]]:
    """Targets of the Makefile, and extras of the package."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return targets, set(project["optional-dependencies"])


@pytest.mark.parametrize("page", [named(page) for page in PAGES])
def test_commands_named_on_a_page_exist_with_their_options(page: Path) -> None:
    for line in named_commands(page.read_text()):
        check_command(line, *there_is())


@pytest.mark.parametrize(
    "line",
    ["fewest explane cases.csv", "fewest explain cases.csv --modle m", "fewest references biuld", "make tset",
     "pip install 'fewest[sevre]'"],
)  # fmt: skip
def test_a_command_or_option_that_does_not_exist_is_caught(line: str) -> None:
    """Negative control of the test above."""
    with pytest.raises(BrokenPageError, match="there is no"):
        check_command(line, *there_is())


def test_the_readme_shows_what_its_example_prints_and_two_commands_come_first() -> None:
    found = blocks((ROOT / "README.md").read_text())
    (code,) = [block for block in found if block.language == "python"]
    assert code.prints
    first = next(block.code for block in found if block.language == "sh")
    assert re.findall(r"^make \w+", first, flags=re.M) == ["make demo", "make test"]


@pytest.mark.parametrize("page", [named(page) for page in PAGES])
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith(("http:", "https:")):
            assert (page.parent / target).exists(), target


@pytest.fixture(scope="module")
def bare() -> set[str]:
    """What `import fewest` alone gives: other tests in this process may have imported more."""
    asked = "import fewest, json; print(json.dumps([n for n in dir(fewest) if getattr(fewest, n, None) is not None]))"
    return set(json.loads(subprocess.run([sys.executable, "-c", asked], capture_output=True, check=True).stdout))


@pytest.mark.parametrize("page", [named(page) for page in PAGES])
def test_names_that_pages_take_from_fewest_are_there_after_a_bare_import(page: Path, bare: set[str]) -> None:
    for name in re.findall(r"\bfw\.([A-Za-z_]+)", page.read_text()):
        assert name in bare, name
