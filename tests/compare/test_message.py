from __future__ import annotations

import pytest

from parity.compare.message import first_line

NODE = "{{function_node __wrapped__Conv2D_device_/job:localhost/task:0/device:CPU:0}}"


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("", ""),
        ("\n  said \nmore", "said"),
        (f"{NODE} Cannot deserialize computation [Op:XlaCallModule]",
         "Cannot deserialize computation [Op:XlaCallModule]"),
        (f"{NODE}\nNo algorithm worked!", "No algorithm worked!"),
        (f"Graph execution error: {{{{node conv/Conv2D}}}} {NODE} no kernel",
         "Graph execution error: no kernel"),
        ("a dict {{'a': 1}} stays", "a dict {{'a': 1}} stays"),
    ],
)  # fmt: skip
def test_the_first_line_that_says_something(message: str, line: str) -> None:
    assert first_line(message) == line
