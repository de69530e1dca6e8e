"""Fitted classifiers outside of this package: pickle, joblib, parallel searches, and encoders for transformers."""

import io
import json
import pickle

import joblib
import numpy as np
import pytest
import torch
from sklearn.model_selection import GridSearchCV

from estimator.tiny import LABELS, PAIRS, SMALL, TEXTS, fitted, fitted_pair, tiny
from steadygaze.core.errors import UserError

TOKENS = {**SMALL, "granularity": "token"}


@pytest.fixture(scope="module")
def transformer(encoder):
    return tiny(encoder, settings={"learning_rate": 0.01}).fit(TEXTS, LABELS)


def joblib_copy(clf):
    file = io.BytesIO()
    joblib.dump(clf, file)
    file.seek(0)
    return joblib.load(file)


@pytest.mark.parametrize("copy", [lambda clf: pickle.loads(pickle.dumps(clf)), joblib_copy], ids=["pickle", "joblib"])
@pytest.mark.parametrize("kind", ["word", "pair", "rationalizer", "transformer"])
def test_a_fitted_classifier_survives_the_callers_own_pickle(copy, kind, transformer):
    clf = {
        "word": fitted,
        "pair": fitted_pair,
        "rationalizer": lambda: tiny("average", technique="a2r", settings=TOKENS).fit(TEXTS, LABELS),
        "transformer": lambda: transformer,
    }[kind]()
    texts = PAIRS if kind == "pair" else TEXTS
    same = copy(clf)
    assert np.array_equal(same.predict_proba(texts), clf.predict_proba(texts))
    assert same.explain(texts[:2]) == clf.explain(texts[:2])
    assert same.get_params() == clf.get_params()


@pytest.mark.slow
def test_a_grid_search_runs_in_several_processes():
    grid = {"hidden": [3, 4]}
    search, two = (
        GridSearchCV(tiny("average"), grid, cv=2, n_jobs=jobs).fit(TEXTS * 2, LABELS * 2) for jobs in (None, 2)
    )
    assert np.allclose(search.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])
    assert two.predict(TEXTS).shape == (24,)


def test_an_exported_encoder_has_the_same_hidden_states_in_transformers(transformer, tmp_path):
    from transformers import AutoModel, AutoTokenizer

    transformer.export_transformers(tmp_path / "encoder")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "encoder")
    network = AutoModel.from_pretrained(tmp_path / "encoder", add_pooling_layer=False).eval()
    inputs = tokenizer(TEXTS[:3], padding=True, return_tensors="pt")
    with torch.no_grad():
        theirs = network(**inputs).last_hidden_state
        model = transformer.stored_.model.eval()
        ours = model.encoder(model.encoder.embed(inputs["input_ids"]), inputs["attention_mask"].bool()).hidden
    real = inputs["attention_mask"].bool()
    torch.testing.assert_close(theirs[real], ours[real], rtol=0, atol=1e-6)
    for text, ids in zip(TEXTS[:3], inputs["input_ids"], strict=True):
        words = transformer.stored_.data([text], None).text
        assert ids[ids != tokenizer.pad_token_id].tolist() == words.ids.tolist()
    assert tokenizer.model_max_length == transformer.stored_.description.max_length + 2  # [CLS] and [SEP]


def test_an_exported_encoder_can_be_trained_on(transformer, tmp_path):
    transformer.export_transformers(tmp_path / "encoder")
    again = tiny(f"transformer:{tmp_path / 'encoder'}").fit(TEXTS, LABELS)
    assert again.predict(TEXTS).shape == (24,)
    assert json.loads((tmp_path / "encoder/config.json").read_text())["model_type"] == "bert"


def test_only_a_transformer_can_be_exported_and_only_to_a_new_folder(transformer, tmp_path):
    with pytest.raises(UserError, match=r"the encoder average is not a transformer: use save\(\)"):
        fitted().export_transformers(tmp_path / "encoder")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("years of work")
    with pytest.raises(UserError, match="is not empty"):
        transformer.export_transformers(tmp_path / "full")
