"""Three releases of the JAX stack compared: the whole of `cases/`, and the pages made of it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[2]
STACKS = f"""
[tool.parity]
reports = "reports"
[tool.parity.environments.old]
requirements = [
    "jax==0.4.38", "jaxlib==0.4.38", "tensorflow-cpu==2.17.1", "flax==0.10.2", "numpy==1.26.4",
]
[tool.parity.environments.middle]
python = {json.dumps(sys.executable)}
[tool.parity.environments.new]
requirements = ["jax==0.10.2", "jaxlib==0.10.2", "tensorflow-cpu==2.21.0", "flax==0.12.8"]
"""
FOUNDING = "cases/conv_bf16.yaml::conv_bf16:compute_dtype=bfloat16"


def parity(folder, *arguments):
    command = [sys.executable, "-m", "parity", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    folder = tmp_path_factory.mktemp("releases")
    (folder / "pyproject.toml").write_text(STACKS)
    environments = [part for name in ("old", "middle", "new") for part in ("--env", name)]
    parity(folder, "run", ROOT / "cases", *environments, "--format", "json")
    return next((folder / "reports").glob("2*.sqlite"))


def compared(record, a, b):
    page = record.with_name(f"{a}-{b}.html")
    arguments = ("diff", record.name, "--a", a, "--b", b, "--format", "json", "--html", page.name)
    return json.loads(parity(record.parent, *arguments)), page


@pytest.mark.full
def test_the_founding_case_changed_its_bits_and_not_its_stablehlo(record):
    found, _ = compared(record, "old", "middle")
    (change,) = [
        change
        for change in found["changes"]
        if change["case"] == FOUNDING and change["path"] == "jax2tf-native"
    ]
    assert change["direction"] == "farther-from-f64"
    assert change["cause"] == "compiler or runtime changed"
    assert change["stablehlo_sha256_a"] == change["stablehlo_sha256_b"] is not None
    assert (change["differing_ab"], change["max_ulp_ab"]) == (2, 20971)


@pytest.mark.full
def test_the_newest_release_lost_the_nonnative_path(record):
    found, _ = compared(record, "middle", "new")
    lost = [one for one in found["findings"] if one["direction"] == "newly-unsupported"]
    assert lost
    assert {one["why"] for one in lost} == {"removed in JAX 0.7.2"}
    assert {one["path"].partition(".")[0] for one in lost} == {"jax2tf-nonnative"}
    assert found["not_comparable"] == []


@pytest.mark.full
@pytest.mark.parametrize(("a", "b"), [("old", "middle"), ("middle", "new")])
def test_the_pages_open_quietly(record, a, b):
    _, difference = compared(record, a, b)
    run = record.with_name("run.html")
    parity(record.parent, "report", record.name, "-o", run.name)
    noise = []
    with sync_playwright() as playwright:
        quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=quiet)
        page = chromium.new_page()
        page.on("console", lambda message: noise.append(message.text))
        page.on("pageerror", lambda error: noise.append(str(error)))
        for file in (difference, run):
            page.goto(file.as_uri())
            page.wait_for_selector("html.ready", state="attached")
        chromium.close()
    assert noise == []
