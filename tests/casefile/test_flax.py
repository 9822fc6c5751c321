"""Modules of flax as case files say them; flax itself is not imported."""

import numpy as np
import pytest

from parity.record.cases import case_as_dict, case_from_dict

OPERANDS = """\
operands:
  q: {shape: [2, 3], dtype: float32, draw: normal}
  n: {shape: [2], dtype: int32, draw: integers}
"""
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # sha256sum /dev/null
FLAX = (
    f"about: A module.\nflax: {{module: 'flax.linen:Dense', kwargs: {{features: 3}}}}\n{OPERANDS}"
)


def test_what_travels(folder):
    (folder.path / "nets.py").touch()
    (case,) = folder.cases(
        FLAX.replace("flax.linen:Dense", "nets:Net").replace(
            "}}\n", "}, parameters: {seed: 3}, intermediates: ['a.*'], method: encode}\n", 1
        )
    )
    assert case.program.op == "flax"
    assert case.program.attributes == {
        "module": "nets:Net",
        "kwargs": {"features": 3},
        "parameters": {"seed": 3},
        "method": "encode",
        "intermediates": ("a.*",),
        "folder": str(folder.path),
        "sources": {"nets.py": EMPTY},
    }


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_parameters_of_a_file_are_inputs(folder, suffix):
    kernel = np.arange(9, dtype=np.float32).reshape(3, 3)
    bias = np.ones(3, np.float32)
    named = {"params/kernel": kernel, "params.bias": bias}
    if suffix == "npz":
        np.savez(folder.path / "w.npz", **named)
    else:
        from safetensors.numpy import save_file

        save_file(named, folder.path / "w.safetensors")
    (case,) = folder.cases(FLAX.replace("}}\n", f"}}, parameters: {{file: w.{suffix}}}}}\n", 1))
    specs = {spec.name: spec for spec in case.program.parameters}
    assert {name: spec.shape for name, spec in specs.items()} == {
        "params.kernel": (3, 3),
        "params.bias": (3,),
    }
    arrays = {s.name: a for s, a in zip(case.program.inputs(), case.arrays(), strict=True)}
    np.testing.assert_array_equal(arrays["params.kernel"], kernel)
    np.testing.assert_array_equal(arrays["params.bias"], bias)
    assert case_from_dict(case_as_dict(case)) == case


def test_pickles_are_refused(folder):
    np.savez(folder.path / "w.npz", a=np.array([{}], dtype=object))
    text = FLAX.replace("}}\n", "}, parameters: {file: w.npz}}\n", 1)
    assert "holds pickled objects, which are refused" in folder.error(text)


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (
            "parameters: {}",
            "2:71: flax.parameters needs either seed or file (got neither)",
        ),
        (
            "parameters: {seed: 1, file: w.npz}",
            "2:71: flax.parameters needs either seed or file (got seed and file)",
        ),
        (
            "parameters: {file: ../w.npz}",
            "2:78: flax.parameters.file is outside the case file's folder (got '../w.npz')\n"
            "hint: array files stand beside the case file or below",
        ),
        (
            "parameters: {file: w.npy}",
            "2:78: flax.parameters.file has no names (got a .npy file; allowed .npz, .safetensors)",
        ),
        (
            "intermediates: all",
            "2:74: flax.intermediates does not say which (got 'all'; allowed true, false or "
            "patterns such as ['Dense_0.*'])",
        ),
    ],
)
def test_what_makes_no_sense(folder, new, message):
    np.save(folder.path / "w.npy", np.ones(3))
    assert folder.error(FLAX.replace("}}\n", f"}}, {new}}}\n", 1)) == message
