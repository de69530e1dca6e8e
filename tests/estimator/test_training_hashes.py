"""Hashes of the training texts: which texts count as equal, what the folder stores, and how it is left out."""

from hashlib import blake2b

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import steadygaze as sg
from estimator.tiny import LABELS, PAIRS, SMALL, TEXTS, tiny
from steadygaze.core.errors import UserError
from steadygaze.estimator.model_folder import TRAINING_TEXTS, hash_texts


def test_a_hash_is_the_keyed_blake2b_of_the_normalized_text():
    digest = blake2b(b"a fine film", digest_size=8, key=b"key").digest()
    expected = int.from_bytes(digest, "little", signed=True)
    assert hash_texts(["  A fine\n film ", "a ﬁne film", "A FINE FILM"], "key").tolist() == [expected] * 3
    different = hash_texts(["a fine film", "a fine film.", ("a fine", "film"), ("a", "fine film")], "other")
    assert len(set(different.tolist()) | {expected}) == 5
    assert hash_texts([], "key").shape == (0,)


@pytest.mark.parametrize("X", [TEXTS, PAIRS], ids=["single", "pair"])
def test_a_model_counts_the_texts_of_its_training_and_validation(X, tmp_path):
    validation = [f"{x} new" if isinstance(x, str) else (f"{x[0]} new", x[1]) for x in X[:4]]
    clf = tiny().fit(X, LABELS, validation=(validation, LABELS[:4]))
    clf.save(tmp_path / "model")
    loaded = sg.load(tmp_path / "model")
    other = [f"{x} other" if isinstance(x, str) else (x[0], f"{x[1]} other") for x in X[:5]]
    for saved in (clf.stored_, loaded.stored_):
        assert saved.training_overlap([*X[:3], *validation[:2], *other]) == 5
    (tmp_path / "model" / TRAINING_TEXTS).unlink()
    assert sg.load(tmp_path / "model").stored_.training_overlap(X) is None


def test_the_setting_leaves_the_hashes_out_and_changes_no_weight(tmp_path):
    plain, without = tiny().fit(TEXTS, LABELS), tiny(settings={**SMALL, "text_hashes": False}).fit(TEXTS, LABELS)
    without.save(tmp_path / "model")
    assert not (tmp_path / "model" / TRAINING_TEXTS).exists()
    assert sg.evaluate(sg.load(tmp_path / "model"), TEXTS, LABELS).training_texts is None
    np.testing.assert_array_equal(plain.predict_proba(TEXTS), without.predict_proba(TEXTS))


@pytest.mark.parametrize("tensors", [{"hashes": torch.zeros(3)}, {"hashes": torch.zeros(3, 1, dtype=torch.int64)}, {}])
def test_a_damaged_file_of_hashes_is_refused(tensors, tmp_path):
    tiny().fit(TEXTS, LABELS).save(tmp_path / "model")
    save_file(tensors, tmp_path / "model" / TRAINING_TEXTS)
    with pytest.raises(UserError, match=r"training_texts.safetensors is damaged"):
        sg.load(tmp_path / "model")
