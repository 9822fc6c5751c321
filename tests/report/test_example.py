"""The example in `reports/` is what parity makes of its record now, and opens in a browser."""

import base64
import gzip
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "reports" / "example"
CHROMIUM = shutil.which("chromium")
EMBEDDED = re.compile(rb'(<script type="application/octet-stream"[^>]*>)([^<]*)(</script>)')


def unpacked(file):
    """A page with its embedded data unpacked: how small gzip makes it depends on its version."""

    def plain(found):
        return found[1] + gzip.decompress(base64.b64decode(found[2])) + found[3]

    return EMBEDDED.sub(plain, file.read_bytes())


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory):
    folder = tmp_path_factory.mktemp("example")
    command = [sys.executable, EXAMPLE / "rebuild.py", folder]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        if os.environ.get("CI"):
            pytest.fail("chromium is not installed: apt-get install chromium")
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=quiet)
        yield chromium
        chromium.close()


@pytest.mark.parametrize("name", ["run.html", "diff.html"])
def test_a_page_is_up_to_date(rebuilt, name):
    same = unpacked(EXAMPLE / name) == unpacked(rebuilt / name)
    assert same, f"reports/example/{name} is stale: python reports/example/rebuild.py"


def test_the_record_knows_no_folder_of_the_machine_that_made_it():
    with closing(sqlite3.connect(EXAMPLE / "record.sqlite")) as db:
        files = {file for (file,) in db.execute("SELECT file FROM cases")}
        facts = dict(db.execute("SELECT key, value FROM run"))
    given = {name: f"{name}=/opt/{name}/bin/python" for name in ("old", "new")}
    assert json.loads(facts["arguments"]) == {name: ["--env", of] for name, of in given.items()}
    assert files
    assert {file.rpartition("/")[0] for file in files} == {"/project/cases"}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("run.html", "13 cases in 2 environments, 104 rows"),
        ("diff.html", "farther from f64: conv_general_dilated on jax2tf-native"),
    ],
)
@pytest.mark.parametrize("script", [True, False])
def test_a_page_opens_quietly(browser, name, said, script):
    noise = []
    context = browser.new_context(java_script_enabled=script)
    page = context.new_page()
    page.on("console", lambda message: noise.append(message.text))
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.on("request", lambda request: noise.append(request.url))
    page.goto((EXAMPLE / name).as_uri())
    if script:
        page.wait_for_selector("html.ready", state="attached")
    assert said in page.locator("body").inner_text().replace("\n", " ")
    context.close()
    assert noise == [(EXAMPLE / name).as_uri()]
