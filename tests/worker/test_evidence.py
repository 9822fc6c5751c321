"""Digests ignore what says nothing about the arithmetic, and nothing else."""

import pytest

from parity.worker.evidence import (
    canonical_graph,
    canonical_hlo,
    canonical_stablehlo,
)

MODULE = """
#loc = loc(unknown)
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32> loc("x")) -> (tensor<2xf32> {jax.result_info = ""}) {
    %0 = call @helper(%arg0) : (tensor<2xf32>) -> tensor<2xf32> loc(#loc1)
    return %0 : tensor<2xf32> loc(#loc)
  }
  func.func private @helper(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<2xf32> loc(callsite("f"("/a/b.py":1:2) at "g"))
    return %0 : tensor<2xf32>
  }
}
#loc1 = loc("/home/somebody/f.py":3:4)
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("@jit_f", "@jit_g"),
        ("@helper", "@another_name"),
        ("/home/somebody/f.py", "/tmp/g.py"),
        ('jax.result_info = ""', 'jax.result_info = "result[0]"'),
        ("mhlo.num_partitions = 1 : i32, ", "jax.uses_shape_polymorphism = false, "),
        ("mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32", ""),
        (' loc("x")', ""),
    ],
)
def test_canonical_stablehlo_ignores(old, new):
    assert old in MODULE
    assert canonical_stablehlo(MODULE) == canonical_stablehlo(MODULE.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("stablehlo.add", "stablehlo.multiply"),
        ("tensor<2xf32>", "tensor<2xbf16>"),
        ("%arg0, %arg0", "%arg0, %arg1"),
    ],
)
def test_canonical_stablehlo_sees(old, new):
    assert old in MODULE
    assert canonical_stablehlo(MODULE) != canonical_stablehlo(MODULE.replace(old, new))


def test_canonical_stablehlo_keeps_the_arithmetic_readable():
    assert canonical_stablehlo(MODULE).splitlines()[2:4] == [
        "    %0 = call @s2(%arg0) : (tensor<2xf32>) -> tensor<2xf32>",
        "    return %0 : tensor<2xf32>",
    ]


HLO = """HloModule jit_f.12, is_scheduled=true, entry_computation_layout={(f32[2]{0})->f32[2]{0}}

ENTRY %main.8 (x.1: f32[2]) -> f32[2] {
  %x.1 = f32[2]{0} parameter(0), metadata={op_name="x"}
  ROOT %add.0 = f32[2]{0} add(%x.1, %x.1), metadata={op_name="jit(f)/add" source_file="/a/b.py"}
}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("jit_f.12", "jit_witnessed.3"),
        ("add.0", "add.77"),
        ("x.1", "y.9"),
        ("/a/b.py", "/c/d.py"),
        (', metadata={op_name="x"}', ""),
    ],
)
def test_canonical_hlo_ignores(old, new):
    assert old in HLO
    assert canonical_hlo(HLO) == canonical_hlo(HLO.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"), [(" add(", " multiply("), ("f32[2]", "f32[3]"), ("{0} add", "{1} add")]
)
def test_canonical_hlo_sees(old, new):
    assert old in HLO
    assert canonical_hlo(HLO) != canonical_hlo(HLO.replace(old, new))


FUSED = """HloModule jit_f, is_scheduled=true

%fused_computation (param_0: f32[2], p: f32[2]) -> f32[2] {
  %param_0 = f32[2]{0} parameter(0)
  %p = f32[2]{0} parameter(1)
  ROOT %add.2.clone = f32[2]{0} add(%param_0, %p)
}

ENTRY %main.5 (x.1: f32[2], y.1: f32[2]) -> f32[2] {
  %x.1 = f32[2]{0} parameter(0)
  %y.1 = f32[2]{0} parameter(1)
  %sine = f32[2]{0} sine(%x.1)
  %cosine = f32[2]{0} cosine(%y.1)
  ROOT %fusion = f32[2]{0} fusion(%sine, %cosine), kind=kLoop, calls=%fused_computation
}
"""
TABLES = """
FileNames
1 "/a/b.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=1 end_line=1 column=11 end_column=43}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("is_scheduled=true\n", "is_scheduled=true\n" + TABLES),
        ("add(%param_0, %p)", "add(f32[2]{0} %param_0, f32[2]{0} %p)"),
        ("(%sine, %cosine)", "(f32[2]{0} %sine, /*index=1*/f32[2]{0} %cosine)"),
        ("param_0", "param_7.3"),
        ("%add.2.clone", "%add.2"),
        (
            "  %sine = f32[2]{0} sine(%x.1)\n  %cosine = f32[2]{0} cosine(%y.1)\n",
            "  %cosine = f32[2]{0} cosine(%y.1)\n  %sine = f32[2]{0} sine(%x.1)\n",
        ),
    ],
)
def test_canonical_hlo_ignores_how_it_is_written(old, new):
    assert old in FUSED
    assert canonical_hlo(FUSED) == canonical_hlo(FUSED.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(%sine, %cosine)", "(%cosine, %sine)"),
        ("%sine = f32[2]{0} sine(%x.1)", "%sine = f32[2]{0} sine(%y.1)"),
        ("add(%param_0, %p)", "add(%param_0, %param_0)"),
        ("kind=kLoop", "kind=kCustom"),
    ],
)
def test_canonical_hlo_sees_what_is_computed(old, new):
    assert old in FUSED
    assert canonical_hlo(FUSED) != canonical_hlo(FUSED.replace(old, new))


def test_canonical_hlo_of_a_fusion():
    assert (
        canonical_hlo(FUSED)
        == """HloModule m, is_scheduled=true

%v0 (%v1: f32[2], %v2: f32[2]) -> f32[2] {
  %v1 = f32[2]{0} parameter(0)
  %v2 = f32[2]{0} parameter(1)
  ROOT %v3 = f32[2]{0} add(%v1, %v2)
}

ENTRY %v4 (%v5: f32[2], %v6: f32[2]) -> f32[2] {
  %v5 = f32[2]{0} parameter(0)
  %v7 = f32[2]{0} sine(%v5)
  %v6 = f32[2]{0} parameter(1)
  %v8 = f32[2]{0} cosine(%v6)
  ROOT %v9 = f32[2]{0} fusion(%v7, %v8), kind=kLoop, calls=%v0
}"""
    )


def test_canonical_hlo_numbers_values_in_order():
    assert canonical_hlo(HLO).splitlines()[-3:] == [
        "  %v1 = f32[2]{0} parameter(0)",
        "  ROOT %v2 = f32[2]{0} add(%v1, %v1)",
        "}",
    ]


def test_canonical_graph_depends_on_order_and_attributes():
    first = [("Cast", {"SrcT": 1, "DstT": 14}), ("AddV2", {"T": 1})]
    assert canonical_graph(first) == canonical_graph([("Cast", {"DstT": 14, "SrcT": 1}), first[1]])
    assert canonical_graph(first) != canonical_graph(first[::-1])
    assert canonical_graph(first) != canonical_graph([("Cast", {"SrcT": 1, "DstT": 19}), first[1]])
