"""Answers on disk: whole files, of one identity, read once."""

import json

import numpy as np
import pytest

from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import digest_values
from steadygaze.explainers.learned import answer_cache as room
from steadygaze.explainers.learned.answer_cache import AnswerCache

IDENTITY = {"texts": "abc", "model": "def", "settings": {"k": 3}}


def rows(*numbers):
    return np.array(numbers, np.int64)


def filled(folder):
    kept = AnswerCache(folder, IDENTITY)
    kept.add(rows(4, 1), np.array([[0.25, 0.75], [1.0, 0.0]]))
    kept.add(rows(0), np.array([[0.5, 0.5]]))
    return kept


@pytest.mark.parametrize("on_disk", [True, False])
def test_what_is_added_comes_back_by_input_and_the_rest_is_missing(tmp_path, on_disk):
    kept = filled(tmp_path / "answers" if on_disk else None)
    for cache in (kept, AnswerCache(tmp_path / "answers", IDENTITY)) if on_disk else (kept,):
        owners, numbers = cache.lines()
        assert owners.tolist() == [0, 1, 4]
        assert numbers.tolist() == [[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]
        assert cache.missing(6).tolist() == [2, 3, 5]
        assert cache.width == 2


def test_inputs_may_have_any_number_of_lines_which_stay_in_order():
    kept = AnswerCache()
    kept.add(rows(2, 2, 0, 2), np.array([[3.0], [1.0], [9.0], [2.0]]))
    kept.add(rows(), np.zeros((0, 1)))
    owners, numbers = kept.lines()
    assert (owners.tolist(), numbers[:, 0].tolist()) == ([0, 2, 2, 2], [9.0, 3.0, 1.0, 2.0])
    assert kept.missing(3).tolist() == [1]


def test_nothing_is_written_before_there_is_something_to_keep(tmp_path):
    kept = AnswerCache(tmp_path / "answers", IDENTITY)
    assert (kept.width, kept.missing(2).tolist(), kept.lines()[0].tolist()) == (None, [0, 1], [])
    assert list(tmp_path.iterdir()) == []


def test_files_are_plain_numbers_that_need_no_pickle(tmp_path):
    filled(tmp_path / "answers")
    assert sorted(file.name for file in (tmp_path / "answers").iterdir()) == [
        "000000.npy",
        "000001.npy",
        "identity.json",
    ]
    assert np.load(tmp_path / "answers" / "000001.npy", allow_pickle=False).tolist() == [[0.0, 0.5, 0.5]]
    assert json.loads((tmp_path / "answers" / "identity.json").read_text()) == IDENTITY


def test_one_that_goes_on_writes_over_nothing(tmp_path):
    filled(tmp_path / "answers")
    AnswerCache(tmp_path / "answers", IDENTITY).add(rows(7), np.array([[0.1, 0.9]]))
    assert AnswerCache(tmp_path / "answers", IDENTITY).lines()[0].tolist() == [0, 1, 4, 7]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({**IDENTITY, "texts": "xyz"}, "has answers to other texts.  Resume with"),
        ({**IDENTITY, "model": "xyz"}, "has answers of another black box, or of other weights of it.  Resume with"),
        ({**IDENTITY, "settings": {"k": 4}}, "has answers for settings.k = 3, and it is 4 now.  Resume with"),
        ({"texts": "abc", "model": "def"}, "has answers for settings.k = 3, and it is None now"),
    ],
)
def test_answers_of_another_identity_are_refused_and_left_alone(tmp_path, changed, says):
    filled(tmp_path / "answers")
    with pytest.raises(UserError, match=says):
        AnswerCache(tmp_path / "answers", changed)
    assert AnswerCache(tmp_path / "answers", IDENTITY).lines()[0].tolist() == [0, 1, 4]


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match="contains other files"):
        AnswerCache(tmp_path, IDENTITY)
    with pytest.raises(UserError, match="contains other files"):
        AnswerCache(tmp_path / "thesis.txt", IDENTITY)


def test_a_part_depends_on_more_and_has_a_place_of_its_own(tmp_path):
    whole = AnswerCache(tmp_path / "answers", IDENTITY)
    whole.part("effects", removal="pad").add(rows(3), np.array([[1.0]]))
    whole = AnswerCache(tmp_path / "answers", IDENTITY)
    assert whole.part("effects", removal="pad").missing(4).tolist() == [0, 1, 2]
    assert whole.part("answers").missing(1).tolist() == [0]
    with pytest.raises(UserError, match="for removal = 'pad', and it is 'delete' now"):
        whole.part("effects", removal="delete")
    assert AnswerCache().part("effects", removal="pad").folder is None


def test_a_killed_write_leaves_nothing_that_is_read(tmp_path):
    folder = tmp_path / "answers"
    filled(folder)
    torn = folder / ".000002.npy.0123abcd.tmp"
    torn.mkdir()
    (torn / "000002.npy").write_bytes(b"\x93NUM")
    assert AnswerCache(folder, IDENTITY).lines()[0].tolist() == [0, 1, 4]
    assert not torn.exists()
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / ".identity.json.0123abcd.tmp").write_text("{")  # killed before anything had a name
    assert filled(tmp_path / "new").missing(5).tolist() == [2, 3]


@pytest.mark.parametrize("what", [b"", b"nonsense", "narrow"])
def test_a_damaged_file_is_named(tmp_path, what):
    filled(tmp_path / "answers")
    file = tmp_path / "answers" / "000001.npy"
    if what == "narrow":
        np.save(file, np.zeros((2, 2)))
    else:
        file.write_bytes(what)
    with pytest.raises(UserError, match=r"000001\.npy is damaged"):
        AnswerCache(tmp_path / "answers", IDENTITY)
    file.unlink()
    assert AnswerCache(tmp_path / "answers", IDENTITY).missing(5).tolist() == [0, 2, 3]


def test_answers_of_two_runs_to_one_query_are_stored_once(tmp_path):
    filled(tmp_path / "answers")
    np.save(tmp_path / "answers" / "000002.npy", np.array([[4.0, 0.0, 1.0], [5.0, 1.0, 0.0]]))
    owners, numbers = AnswerCache(tmp_path / "answers", IDENTITY).lines()
    assert owners.tolist() == [0, 1, 4, 5]
    assert numbers[2].tolist() == [0.25, 0.75]


def test_a_full_disk_is_a_sentence(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(room.np, "save", full)
    with pytest.raises(UserError, match=r"could not write the black box.*No space left"):
        filled(tmp_path / "answers")
    assert [file.name for file in (tmp_path / "answers").iterdir()] == ["identity.json"]


def test_a_digest_distinguishes_different_values():
    """Also the same characters cut elsewhere, the same bytes in another shape, and texts UTF-8 cannot hold."""
    image = np.arange(4, dtype=np.float32)
    parts = [("a", "b"), ("ab",), ("a", "b", ""), (["a", "b"],), (image,), (image.reshape(2, 2),), ("\ud800",)]
    assert len({digest_values(*part) for part in parts}) == len(parts)
    assert digest_values(["a"], image) == digest_values(["a"], image.copy())
