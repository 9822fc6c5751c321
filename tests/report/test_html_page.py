"""The frame of the HTML reports, and what they are made of, without a browser."""

import base64
import gzip
import hashlib
import json
import re
import struct
from array import array
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from parity.casefile.load import load
from parity.errors import UserError
from parity.paths import options
from parity.report.html.cells import cell
from parity.report.html.characters import spelled, visible
from parity.report.html.details import detail
from parity.report.html.index import KINDS
from parity.report.html.page import Detail, packed, render, write
from parity.report.html.resolved import resolved_yaml
from parity.report.html.run import SCRIPTS, run_page
from parity.worker.protocol import Failure

ASSETS = files("parity.report.html") / "assets"
CASES = Path(__file__).parents[2] / "cases"


def unpacked(data):
    raw = gzip.decompress(base64.b64decode(data))
    size, count = struct.unpack("<II", raw[:8])
    planes = np.frombuffer(raw[8 + size : 8 + size + 8 * count], np.uint8)
    doubles = np.ascontiguousarray(planes.reshape(8, -1).T).view("<f8")[:, 0] if count else []
    return json.loads(raw[8 : 8 + size]), list(doubles), raw[8 + size + 8 * count :]


@pytest.fixture
def html(maker, founding):
    return render(run_page(maker.run(founding)))


def test_the_policy_names_the_digests_of_what_stands_in_the_page(html):
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)[1]
    policy = policy.replace("&#39;", "'")
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        body = re.search(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "http" not in policy


def test_nothing_in_the_page_is_inline_or_fetched(html):
    body = re.sub(r"(?s)<(style|script).*?</\1>", "", html)
    tags = re.findall(r"<[a-zA-Z][^>]*>", body)
    assert [tag for tag in tags if re.search(r"\s(style|on\w+|src|srcset|action)\s*=", tag)] == []
    assert re.findall(r'<link[^>]*href="([^"]*)"', body) == ["data:,"]
    assert not re.search(r"@import|url\(", html)


@pytest.mark.parametrize("name", [*SCRIPTS, "page.css", "report.css"])
def test_assets_cannot_end_their_element(name):
    text = (ASSETS / name).read_text(encoding="utf-8")
    assert not re.search(r"</(script|style)|<!--|\r", text, re.IGNORECASE)
    assert len(text.splitlines()) < 400


def test_the_same_run_gives_the_same_file(maker, founding):
    assert render(run_page(maker.run(founding))) == render(run_page(maker.run(founding)))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain <b> & \"q\" 'q'", "plain &lt;b&gt; &amp; &#34;q&#34; &#39;q&#39;"),
        ("a\u202eb", '<bdi>a<span class="cp">U+202E</span>b</bdi>'),
        ("\x00\x1b", '<bdi><span class="cp">U+0000</span><span class="cp">U+001B</span></bdi>'),
        ("a\nb", '<bdi>a<span class="cp">U+000A</span>b</bdi>'),
        ("\ud800", '<bdi><span class="cp">U+D800</span></bdi>'),
        ("שלום", "<bdi>שלום</bdi>"),
    ],
)
def test_text_hides_nothing(text, shown):
    assert str(visible(text)) == shown


def test_preformatted_text_keeps_its_lines_and_attributes_hold_no_markup():
    assert str(visible("a\n\tb\r\n", lines=True)) == (
        '<bdi>a\n\tb<span class="cp">U+000D</span>\n</bdi>'
    )
    assert spelled("a\u2066b\n") == "a⟨U+2066⟩b⟨U+000A⟩"


def test_details_are_packed_without_loss():
    numbers = [0.1, -1e300, 5e-324, 2.0**-1074 * 3, -0.0]
    some = [Detail('{"a":1}', array("d", numbers[:2]), b"\x00\xff"), Detail("[2]")]
    some.append(Detail('"é"', array("d", numbers[2:]), b"\x01"))
    assert unpacked(packed(some)) == ([{"a": 1}, [2], "é"], numbers, b"\x00\xff\x01")
    assert packed(some) == packed(some)


def test_a_case_is_kept_whole(founding):
    one = detail([founding])
    flat = json.loads(one.text)
    row = next(row for row in founding.rows if row.path == "jit")
    metrics = flat["metrics"][next(r for r in flat["rows"] if r["path"] == "jit")["f64"]]
    assert metrics["rms_rel"] is True
    assert {row.f64.rms_rel, row.f64.mean_abs, row.f64.cosine} <= set(one.doubles)
    worst = row.baseline.worst[0]
    assert bytes.fromhex(worst.got_bits[2:] + worst.want_bits[2:]) in one.data
    assert bytes.fromhex(row.sha256) in one.data
    assert flat["yaml"] == resolved_yaml(founding.case)


def test_large_runs_drop_only_what_says_nothing(founding):
    flat = json.loads(detail([founding], whole=False).text)
    telling = {row.get("f64") for row in flat["rows"] if row["path"] in ("jit", "native")}
    for number, metrics in enumerate(flat["metrics"]):
        if number in telling - {None}:
            assert {"worst", "histogram", "profile"} <= set(metrics)
            assert "thin" not in metrics
    assert any("thin" in metrics for metrics in flat["metrics"])


def test_integers_beyond_javascript_are_strings(maker):
    big = np.array([2**62 + 1, 3], np.int64)
    result = maker.result("cases/i.yaml::i", {"eager": {"out": big}, "jit": {"out": big + 1}})
    flat = json.loads(detail([result]).text)
    assert flat["rows"][0]["values"] == [str(2**62 + 1), 3]
    worst = next(of["worst"] for of in flat["metrics"] if "worst" in of)[0]
    assert str(2**62 + 2) in worst


@pytest.mark.parametrize("file", sorted(CASES.glob("*.yaml")), ids=lambda file: file.stem)
def test_the_resolved_case_is_a_case_file_that_loads_to_the_same_case(file):
    for case in load(file, known_paths=options(), max_cases=10_000).cases[:12]:
        text = resolved_yaml(case)
        (loaded,) = load(file, known_paths=options(), max_cases=1, text=text).cases
        for field in ("program", "operands", "paths", "baseline", "tolerance", "licences", "about"):
            assert getattr(loaded, field) == getattr(case, field)
        assert [replace(entry, line=0, index=0) for entry in loaded.expect] == [
            replace(entry, line=0, index=0) for entry in case.expect
        ]


def test_the_resolved_case_keeps_what_yaml_could_misread(maker, tmp_path):
    about = 'yes: "no" # \\ {[\u202e, 1e5\x7f'
    case = replace(maker.case("cases/a.yaml::a", ["eager"]), about=about)
    assert f"\nabout: {json.dumps(about)}\n" in resolved_yaml(case)


def test_cells_show_the_worst_output_and_never_an_unknown_share_as_none(founding):
    row = founding.rows[1]
    fine = replace(row, grade="identical", status="ok", bound_share=0.0)
    assert cell([replace(row, bound_share=0.41)], baseline=False).style == "d5E"
    assert (
        cell([fine, replace(row, grade="mismatched", status="finding")], baseline=False).sign == "#"
    )
    assert cell([fine], baseline=True).sign == "B"
    assert cell([fine], baseline=False).style == "i0"
    assert cell([replace(fine, bound_share=1e-9)], baseline=False).style == "i1"
    assert cell([replace(fine, bound_share=1.5)], baseline=False).style == "ix"
    assert cell([replace(fine, vacuous=0.5)], baseline=False).style == "iv"
    assert cell([replace(fine, bound_share=float("nan"))], baseline=False).style == "iu"
    assert cell([replace(fine, bound_share=None)], baseline=False).style == "iu"


def test_every_kind_has_a_sign_of_its_own():
    from parity.report.html.cells import SIGNS

    assert set(SIGNS) == set(KINDS)
    assert len({sign for sign, _, _ in SIGNS.values()}) == len(SIGNS)
    assert len({letter for _, letter, _ in SIGNS.values()}) == len(SIGNS)


def test_environments_stand_side_by_side_with_differences_marked(maker, founding):
    other = replace(founding, environment="old")
    run = maker.run(founding, other)
    run = replace(
        run, environments={"default": {"jax": "0.7.1", "python": "3.11"}, "old": {"jax": "0.4.38"}}
    )
    html = render(run_page(run))
    assert re.search(r'class="differs"><th scope="row">jax', html)
    assert re.search(r'class="differs"><th scope="row">python', html)
    assert "in 2 environments" in html


def test_the_page_cannot_be_written(maker, founding, tmp_path):
    page = run_page(maker.run(founding))
    with pytest.raises(UserError, match="is a folder"):
        write(page, tmp_path)
    with pytest.raises(UserError, match="no folder"):
        write(page, tmp_path / "none" / "x.html")


def test_failures_stand_in_the_static_part(maker):
    failure = Failure("crashed", "run", "SIGSEGV", "died <here>", "Fatal\x00 error")
    run = maker.run(maker.result("cases/c.yaml::c", {"eager": {"out": np.ones(2)}, "jit": failure}))
    html = render(run_page(run))
    static = "".join(re.findall(r"(?s)<noscript>.*?</noscript>", html))
    assert "<td>crashed at run" in static
    assert "died &lt;here&gt;" in static


def test_an_environment_says_into_how_many_devices_cases_divide_it(maker, founding):
    """A fact of the machine is that of a process that is not divided."""
    run = replace(maker.run(founding), environments={"default": {"jax": "1", "devices": "1"}})
    divided = replace(founding.case, program=replace(founding.case.program, devices=4))
    parallel = replace(run, cases=(replace(founding, case=divided),))

    def devices(result):
        return run_page(result).context["environments"]["default"]["devices"]

    assert devices(run) == "1"
    assert devices(parallel) == "1; 4 where a case asks for them"
