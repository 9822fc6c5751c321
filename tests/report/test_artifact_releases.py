"""What older releases exported, executed by newer ones: what a serving upgrade does."""

import json
import shutil

import pytest

from .test_releases import ROOT, STACKS, parity

CASE = "cases/conv_bf16.yaml"
PATHS = "eager,export,saved-model,serving"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("artifacts")
    (made / "pyproject.toml").write_text(STACKS)
    (made / "cases").mkdir()
    shutil.copy(ROOT / CASE, made / CASE)
    return made


def executed_by(folder, writer, reader):
    """Changes, by case and path, from one environment to another one that runs its artifacts."""
    records = folder / f"{writer}-{reader}"
    before, after = records / "before", records / "after"
    kept = ("run", CASE, "--paths", PATHS, "--format", "json")
    parity(folder, *kept, "--env", writer, "--save-artifacts", "--out", before)
    (old,) = before.glob("2*.sqlite")
    again = ("run", "--artifacts-from", old, "--paths", PATHS, "--format", "json")
    rows = json.loads(parity(folder, *again, "--env", reader, "--out", after))["rows"]
    (new,) = after.glob("2*.sqlite")
    found = json.loads(parity(folder, "diff", old, new, "--format", "json", "--fail-on", "none"))
    changes = {(one["case"].rpartition("=")[2], one["path"]): one for one in found["changes"]}
    return {(row["case"].rpartition("=")[2], row["path"]): row for row in rows}, changes


@pytest.mark.full
def test_a_saved_model_of_the_old_stack_under_the_middle_one(folder):
    """TensorFlow 2.17 computes all of it wide, 2.20 rounds operands; jax.export is as it was."""
    rows, changes = executed_by(folder, "old", "middle")
    for path in ("saved-model", "serving"):
        one = changes["bfloat16", path]
        assert one["direction"] == "farther-from-f64"
        assert one["cause"] == "compiler or runtime changed"
        assert rows["bfloat16", path]["values"] == pytest.approx([-1.3709509, -2.2795215], rel=1e-7)
        assert changes["float16", path]["direction"] == "fixed"
        assert ("float32", path) not in changes
    assert not any(path == "export" for _, path in changes)
    assert rows["bfloat16", "export"]["outcome"] == "ok"
    assert "written by jax 0.4.38" in rows["bfloat16", "export"]["evidence"]["artifact"]


@pytest.mark.full
def test_artifacts_of_the_middle_stack_under_the_newest_one(folder):
    rows, changes = executed_by(folder, "middle", "new")
    assert changes == {}
    exported = [row for (_, path), row in rows.items() if path != "eager"]
    assert len(exported) == 9
    assert {row["outcome"] for row in exported} == {"ok"}
