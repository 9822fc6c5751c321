"""What each device of an output holds, in the terminal, as JSON and on the page."""

from __future__ import annotations

import json

from parity.compare.result import CaseResult
from parity.report.html.details import detail
from parity.report.table import case_lines


def test_errors_stand_by_device_below_the_table(divided: CaseResult) -> None:
    # an ulp of 2 to 4 is 2**-22, of 4 2**-21: 3 is 3 * 2**22 of them, 4 is 2 * 2**22
    lines = [line.plain for line in case_lines(divided, None)]
    at = lines.index("  by device, half:")
    heads = ["differ max abs max ulp rms rel differ", "path device part replica vs baseline"]
    assert [
        " ".join(line.split())[: len(head)]
        for line, head in zip(lines[at + 1 :], heads, strict=False)
    ] == heads
    assert [line.split() for line in lines[at + 3 : at + 5]] == [
        ["eager", "0", "[0:2]", "0", "0", "0", "0", "0", "0"],
        ["1", "[2:4]", "0", "0", "4", "1.258e+07", "1", "0"],
    ]
    at = lines.index("  by device, same:")
    assert lines[at + 4].split() == ["1", "[]", "1", "0", "0.5", "4194304", "0.5", "1", "0.5"]
    assert "  eager (same): replicas differ: 1 of 1 elements, by at most 0.5, on device 1" in lines


def test_the_page_has_them(divided: CaseResult) -> None:
    half, same = json.loads(detail([divided]).text)["rows"]
    assert [one["rms_rel"] for one in half["shards"]] == [0, 1]
    assert same["shards"][1]["max_apart"] == 0.5
    assert same["replicas"].startswith("replicas differ: 1 of 1 elements")


def test_what_is_fine_has_no_table(founding: CaseResult) -> None:
    assert not any("by device" in line.plain for line in case_lines(founding, None))
