"""Arrays travel bit for bit."""

import numpy as np
import pytest

from parity.dtypes import DTYPES
from parity.worker.protocol import digest, pack, unpack


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_every_dtype_survives_with_all_its_bits(name, shape):
    dtype = DTYPES[name].numpy()
    bits = np.random.default_rng(1).integers(0, 2, (*shape, dtype.itemsize), dtype=np.uint8)
    array = bits.reshape(*shape, dtype.itemsize).view(dtype).reshape(shape)
    again = unpack(pack(array))
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    assert again.tobytes() == array.tobytes()


def test_a_large_array_travels_through_a_file_that_is_then_removed(tmp_path):
    array = np.arange(600_000, dtype=np.float32).reshape(600, 1000).T
    wire = pack(array, str(tmp_path))
    assert "data" not in wire
    assert len(list(tmp_path.iterdir())) == 1
    assert np.array_equal(unpack(wire), array)
    assert not list(tmp_path.iterdir())


def test_nan_payloads_and_signed_zeros_survive():
    array = np.array([0x7FC00001, 0xFFC0DEAD, 0x80000000], np.uint32).view(np.float32)
    assert unpack(pack(array)).view(np.uint32).tolist() == array.view(np.uint32).tolist()


def test_digest_tells_bits_shape_and_dtype_apart():
    array = np.array([0.0, 1.0], np.float32)
    assert digest(array) == digest(array.copy())
    assert digest(array) != digest(np.array([-0.0, 1.0], np.float32))
    assert digest(array) != digest(array.reshape(2, 1))
    assert digest(array) != digest(array.view(np.int32))
