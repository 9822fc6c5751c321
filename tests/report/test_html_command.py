"""`parity report`, from a record to a page."""

import re

import pytest

from parity import cli
from parity.record.store import Store


@pytest.fixture
def record(founding, hundred, tmp_path):
    store = Store(tmp_path / "reports", version="1.0", options={"fail_on": "divergent"}, wanted=11)
    store.environment("default", {"jax": "0.7.1"})
    for result in (founding, *hundred.cases[:10]):
        store.add(result)
    store.finish("findings")
    store.close()
    return store.file


def test_a_record_becomes_a_page(record, tmp_path, capsys):
    page = tmp_path / "run.html"
    assert cli.invoke(["report", str(record), "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "11 cases, 24 rows:" in text
    assert f"<dt>record</dt><dd>{record.name}</dd>" in text
    assert "<dt>fails on</dt><dd>divergent and worse</dd>" in text
    assert "parity run cases/conv.yaml cases/dot.yaml" in text
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"wrote {page}\n")


def test_cases_and_paths_are_selected(record, tmp_path):
    page = tmp_path / "run.html"
    assert (
        cli.invoke(["report", str(record), "-o", str(page), "--case", "*conv*", "--path", "jit"])
        == 0
    )
    text = page.read_text(encoding="utf-8")
    assert re.search(r"1 case, 1 row:", text)
    assert "k=7" not in text


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--case", "none"], 5, "has no row"),
        (["-o", "{folder}"], 2, "is a folder"),
        (["-o", "{folder}/none/x.html"], 2, "no folder"),
    ],
)
def test_what_cannot_be_written_is_said(record, tmp_path, capsys, arguments, code, said):
    given = [argument.format(folder=tmp_path) for argument in arguments]
    given = given if "-o" in given else [*given, "-o", str(tmp_path / "run.html")]
    assert cli.invoke(["report", str(record), *given]) == code
    assert said in capsys.readouterr().err


def test_a_run_does_not_begin_if_its_report_cannot_be_written(tmp_path, capsys):
    target = tmp_path / "none" / "x.html"
    assert cli.invoke(["run", "cases/conv_bf16.yaml", "--html", str(target)]) == 2
    assert "no folder" in capsys.readouterr().err
