"""Files made to do harm are refused by the command line with exit code 4, soon, in little memory, and nothing runs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import hostile_models
import numpy as np
import pandas as pd
import pytest

import fewest.persistence._skops as skops_files
from fewest.persistence import load_model

pytest.importorskip("skops.io")
pytest.importorskip("onnxruntime")
pytest.importorskip("xgboost")
pytest.importorskip("lightgbm")
import hostile_bombs
import hostile_boosters
import hostile_estimators

SUPPORT = Path(hostile_models.__file__).parent
LIMIT_BYTES = 3 << 30
LIMIT_SECONDS = 20.0

# One process for all files: address space limited, each call of the command line timed.
RUN = """
import json, resource, sys, time, io, contextlib
from fewest.apps.cli import main
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
said = {}
for path in sys.argv[4:]:
    errors, began = io.StringIO(), time.process_time()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        code = main(["explain", sys.argv[2], "--model", path, "--train", sys.argv[3], "--target", "risk"])
    said[path] = {"code": code, "seconds": time.process_time() - began, "said": errors.getvalue()}
# Not ru_maxrss: that also counts what the process was forked from.
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"files": said, "peak": peak}))
"""


def tables(folder: Path) -> tuple[str, str]:
    X, y = hostile_models.data()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.to_csv(folder / "data.csv", index=False)
    frame.assign(risk=y).to_csv(folder / "train.csv", index=False)
    return str(folder / "data.csv"), str(folder / "train.csv")


def run(paths: list[Path], folder: Path, timeout: float) -> dict[str, Any]:
    command = [sys.executable, "-c", RUN, str(LIMIT_BYTES), *tables(folder), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


def judge(files: dict[str, Any]) -> list[str]:
    """What is wrong with how files were received."""
    problems = []
    for path, told in files.items():
        if told["code"] != 4 or "Try:" not in told["said"] or "Traceback" in told["said"]:
            problems.append(f"{Path(path).name}: code {told['code']}: {told['said'][:300]}")
        if told["seconds"] > LIMIT_SECONDS:
            problems.append(f"{Path(path).name}: {told['seconds']:.1f} s")
    return problems


def test_every_format_has_hostile_files() -> None:
    assert {f"{name}.skops" for name in hostile_estimators.FORGED} <= set(hostile_models.HOSTILE)
    assert {f"ensemble-{name}.onnx" for name in hostile_bombs.ENSEMBLES} <= set(hostile_models.HOSTILE)
    endings = {name.rpartition(".")[2] for name in hostile_models.HOSTILE}
    assert endings == {"pkl", "pickle", "joblib", "skops", "onnx", "json", "ubj", "txt", "fewest"}


def test_every_hostile_file_is_refused_with_exit_code_4_and_nothing_of_it_runs(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    paths = hostile_models.write_all(tmp_path, mark)
    told = run(paths, tmp_path, timeout=240)
    assert len(told["files"]) == len(hostile_models.HOSTILE)
    assert judge(told["files"]) == []
    assert told["peak"] < 1_500_000, "kilobytes at the peak"
    assert not mark.exists()
    assert not list(tmp_path.glob("**/evil*"))


@pytest.mark.slow
def test_the_judge_sees_a_file_that_is_let_in(tmp_path: Path) -> None:
    """Negative control: an honest model among the others."""
    honest = tmp_path / "honest.skops"
    honest.write_bytes(hostile_models.tampered(lambda schema: None))
    (problem,) = judge(run([honest], tmp_path, timeout=120)["files"])
    assert "code 0" in problem


def honest(folder: Path) -> list[Path]:
    """What the hostile files were made from, not tampered with."""
    made = {
        "tree.skops": hostile_models.with_tree(lambda arrays: None),
        "linear.skops": hostile_models.with_attribute(hostile_models.value_node(1)),
        "booster.json": json.dumps(hostile_boosters.booster_json()).encode(),
        "names.json": hostile_boosters.with_names(lambda names: None),
        "text.txt": hostile_boosters.model_text().encode(),
        "old-text.txt": hostile_boosters.with_line("num_leaves", lambda same: same),
        "linear.onnx": hostile_boosters.linear().SerializeToString(),
        "tree.onnx": hostile_boosters.ensemble(),
        "explainer.fewest": hostile_boosters.resealed(hostile_boosters.explainer_members()),
    }
    for name, content in made.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in made]


def test_the_same_files_without_the_tampering_are_let_in(tmp_path: Path) -> None:
    X, _ = hostile_models.data()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for path in honest(tmp_path):
        model = load_model(path)
        table = frame if path.suffix == ".fewest" else X[:, :2] if path.name == "names.json" else X
        assert np.asarray(model.predict_proba(table)).shape == (len(X), 2), path.name


@pytest.mark.parametrize("name", ["constructor.skops", "pickle.pkl", "pickle.joblib"])
def test_traps_are_live_where_somebody_said_yes(name: str, tmp_path: Path) -> None:
    """Negative control: with the audit off the same bytes do run."""
    mark = tmp_path / "ran"
    path = tmp_path / name
    path.write_bytes(hostile_models.HOSTILE[name](str(mark)))
    loaded = load_model(path, allow_pickle=True)
    (loaded.n_iter_ if name.endswith("skops") else loaded).close()
    assert mark.exists()


def test_without_the_audit_a_trap_runs_and_a_cyclic_tree_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: what refuses them is the audit, not luck."""
    mark = tmp_path / "ran"
    trap, cycle = tmp_path / "constructor.skops", tmp_path / "cyclic-tree.skops"
    for path in (trap, cycle):
        path.write_bytes(hostile_models.HOSTILE[path.name](str(mark)))
    monkeypatch.setattr(skops_files, "is_listed", lambda loader, kind: True)
    monkeypatch.setattr(skops_files, "check_node", lambda node, members, name: None)
    monkeypatch.setattr(skops_files, "check_sound", lambda model, name: None)
    monkeypatch.setattr(skops_files, "trusted", lambda: ["_io.FileIO", "sklearn.tree._tree.Tree"])
    model = load_model(trap)
    model.n_iter_.close()
    assert mark.exists()
    assert load_model(cycle).tree_.children_left[0] == 0


@pytest.mark.slow
def test_a_cyclic_tree_that_is_let_in_hangs(tmp_path: Path) -> None:
    """Negative control: the danger is real. The process is ended once it has been seen not to end by itself."""
    path = tmp_path / "cyclic-tree.skops"
    # Every node leads back to the root, so that whatever the row, the walk has no end.
    path.write_bytes(
        hostile_models.with_tree(
            lambda arrays: [arrays["nodes"][side].__setitem__(slice(None), 0) for side in ("left_child", "right_child")]
        )
    )
    script = (
        "import sys, skops.io, numpy\n"
        "model = skops.io.load(sys.argv[1], trusted=['sklearn.tree._tree.Tree'])\n"
        "print('loaded', flush=True)\n"
        "model.predict_proba(numpy.zeros((1, 3)))\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "loaded\n"
        time.sleep(0.7)  # what ends by itself takes microseconds
        running = process.poll() is None
        process.kill()
    assert running


@pytest.mark.slow
def test_each_hostile_file_by_itself_in_a_process_of_its_own(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    paths = hostile_models.write_all(tmp_path, mark)
    peaks, seconds = {}, {}
    for path in paths:
        told = run([path], tmp_path, timeout=120)
        assert judge(told["files"]) == []
        peaks[path.name], seconds[path.name] = told["peak"], told["files"][str(path)]["seconds"]
    assert not mark.exists()
    print(f"\n{len(paths)} files; slowest {max(seconds.values()):.2f} s; peak {max(peaks.values()) / 1024:.0f} MiB")


FUZZ = """
import random, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
from fewest.errors import FewestError
from fewest.persistence import load_model
from pathlib import Path
path, count, kind = Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
whole, chance = path.read_bytes(), random.Random(int(sys.argv[5]))
import hostile_boosters
loaded = refused = 0
for number in range(count):
    data = bytearray(whole)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data))
        data[at] = chance.choice([0, 255, data[at] ^ 1 << chance.randrange(8), chance.randrange(256)])
    data = bytes(data)
    if path.suffix in (".skops", ".fewest"):
        try:
            data = hostile_boosters.rezipped(data)
        except Exception:
            pass
    bent = path.with_name("bent" + path.suffix)
    bent.write_bytes(data)
    try:
        model = load_model(bent)
        loaded += 1
        try:
            model.predict_proba(np.zeros((3, 3)))
        except Exception:
            pass
    except FewestError:
        refused += 1
print(loaded, refused)
"""


BENT = ["tree.skops", "hist.skops", "xgb.skops", "booster.json", "booster.ubj", "text.txt", "tree.onnx", "linear.onnx"]


@pytest.mark.slow
@pytest.mark.parametrize("name", BENT)
def test_bytes_changed_by_chance_never_end_the_process(name: str, tmp_path: Path) -> None:
    made = {path.name: path for path in honest(tmp_path)}
    if name == "booster.ubj":
        import xgboost

        model = xgboost.XGBClassifier(n_estimators=2, max_depth=2).fit(*hostile_models.data())
        made[name] = tmp_path / name
        made[name].write_bytes(bytes(model.get_booster().save_raw("ubj")))
    if name == "xgb.skops":
        import skops.io
        import xgboost

        made[name] = tmp_path / name
        model = xgboost.XGBClassifier(n_estimators=2, max_depth=2).fit(*hostile_models.data())
        made[name].write_bytes(skops.io.dumps(model))
    if name == "hist.skops":
        made[name] = tmp_path / name
        made[name].write_bytes(hostile_models.hist_gradient("count", 1))
    command = [sys.executable, "-c", FUZZ, str(SUPPORT), str(made[name]), "1000", name, "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr[-1500:]}"
    loaded, refused = map(int, done.stdout.split()[-2:])
    print(f"\n{name}: {loaded} loaded, {refused} refused")
    assert loaded + refused == 1000
    assert refused > 100


# Bytes by chance seldom leave the format whole; values put in by chance do.
VALUES = """
import json, random, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
import hostile_boosters
from fewest.errors import FewestError
from fewest.persistence import load_model
from pathlib import Path
path, count, chance = Path(sys.argv[2]), int(sys.argv[3]), random.Random(int(sys.argv[4]))
ODD = [-1, -2, 0, 1, 2, 7, 2**31 - 1, 2**31, -(2**31), 1e30, 1.5, "", "-1", "2147483647", "x", None, [], {}, [2**31]]
def places(value, way=()):
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way, *(place for key, part in inner for place in places(part, (*way, key)))]
def bent_json():
    *way, last = chance.choice(places(WHOLE)[1:])
    part = whole = json.loads(json.dumps(WHOLE))
    for key in way:
        part = part[key]
    part[last] = chance.choice(ODD)
    return json.dumps(whole)
def bent_text():
    lines = [line for line in TEXT.splitlines() if not line.startswith("tree_sizes")]
    at = chance.randrange(lines.index("end of trees"))
    key, mark, values = lines[at].partition("=")
    words = values.split(" ")
    words[chance.randrange(len(words))] = str(chance.choice(ODD[:14]))
    lines[at] = key + mark + (" ".join(words) if mark else "")
    return chr(10).join(lines)
WHOLE, TEXT = hostile_boosters.booster_json(), hostile_boosters.model_text()
loaded = 0
for _ in range(count):
    path.write_text(bent_json() if path.suffix == ".json" else bent_text())
    try:
        load_model(path).predict_proba(np.zeros((3, 3)))
        loaded += 1
    except FewestError:
        pass
print(loaded)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bent.json", "bent.txt"])
def test_values_changed_by_chance_never_end_or_hang_the_process(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", VALUES, str(SUPPORT), str(tmp_path / name), "1500", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr[-1500:]}"
    loaded = int(done.stdout.split()[-1])
    print(f"\n{name}: {loaded} of 1500 loaded and scored")
    assert 0 < loaded < 1500
