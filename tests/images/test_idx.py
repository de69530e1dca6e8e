"""The idx format: read as it is published, and refused in one sentence where it is damaged."""

import gzip
import struct

import numpy as np
import pytest

from steadygaze.core.errors import UserError
from steadygaze.images.image_inputs import load_images, read_idx

IMAGES = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
LABELS = np.array([3, 8], np.uint8)


def idx(values):
    return struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape) + values.tobytes()


@pytest.fixture
def folder(tmp_path):
    for split in ("train", "t10k"):
        (tmp_path / f"{split}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(IMAGES)))
        (tmp_path / f"{split}-labels-idx1-ubyte").write_bytes(idx(LABELS))
    return tmp_path


def test_a_folder_is_read_gzipped_or_not(folder, monkeypatch):
    sets = load_images(folder)
    np.testing.assert_array_equal(sets.train, IMAGES)
    np.testing.assert_array_equal(sets.test_labels, LABELS)
    monkeypatch.setenv("STEADYGAZE_DATA", str(folder.parent))
    np.testing.assert_array_equal(load_images(folder.name).test, IMAGES)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "begins with nothing"),
        (b"not gzipped at all", "damaged or truncated"),
        (gzip.compress(idx(IMAGES))[:30], "damaged or truncated"),
        (gzip.compress(idx(LABELS)), "not an idx file of images: it begins with 00 00 08 01"),
        (gzip.compress(idx(IMAGES)[:-1]), "claims 24 bytes, found 23"),
        (gzip.compress(idx(IMAGES) + b"x"), "claims 24 bytes, found more"),
        (gzip.compress(struct.pack(">BBBB3I", 0, 0, 8, 3, 2**31, 2**31, 2**31)), "claims"),
        (gzip.compress(struct.pack(">BBBB3I", 0, 0, 8, 3, 0, 28, 28)), "claims 0 × 28 × 28"),
        (gzip.compress(b"\0\0\x0d\x03" + bytes(12)), "begins with 00 00 0d 03"),
    ],
    ids=["empty", "text", "cut", "labels", "short", "long", "huge", "none", "floats"],  # gzip writes the time of day
)
def test_a_damaged_file_is_named(folder, content, sentence):
    file = folder / "train-images-idx3-ubyte.gz"
    file.write_bytes(content)
    with pytest.raises(UserError, match=sentence) as result:
        load_images(folder)
    assert file.name in str(result.value)


def test_missing_files_and_unequal_counts_are_refused(folder):
    with pytest.raises(UserError, match="there is no folder"):
        load_images(folder / "nowhere")
    (folder / "t10k-labels-idx1-ubyte").write_bytes(idx(LABELS[:1]))
    with pytest.raises(UserError, match="has 2 t10k images and 1 labels"):
        load_images(folder)
    (folder / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(UserError, match=r"has no t10k-labels-idx1-ubyte\.gz"):
        load_images(folder)


@pytest.mark.parametrize(
    ("name", "many", "labels"),
    [("mnist_3_8", (11_982, 1_984), [3, 8]), ("fashion_mnist_pullover_shirt", (12_000, 2_000), [2, 6])],
)
def test_the_published_sets(data_dir, name, many, labels):
    if not (data_dir / name).is_dir():
        pytest.skip(f"{name} is not at hand")
    sets = load_images(data_dir / name)
    assert (len(sets.train), len(sets.test)) == many
    assert np.unique(sets.train_labels).tolist() == labels
    assert sets.train.shape[1:] == (28, 28)


def test_a_file_alone(folder):
    np.testing.assert_array_equal(read_idx(folder / "train-labels-idx1-ubyte", 1), LABELS)
