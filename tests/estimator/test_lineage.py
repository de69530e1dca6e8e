"""What determines a model's weights, and with it which teacher may stand for another."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from estimator.students import student
from estimator.tiny import LABELS, TEXTS, transformer_folder
from steadygaze.estimator.fit_plan import stage_identity


@pytest.mark.slow
def test_teachers_of_a_network_with_other_weights_are_other_teachers(tmp_path):
    """Same name, same configuration, other weights: the teacher_cache must not hand over the first one's teacher."""
    network, other = (transformer_folder(tmp_path / place / "network") for place in ("a", "b"))
    weights = load_file(other / "model.safetensors")
    save_file({name: value + 0.1 for name, value in weights.items()}, other / "model.safetensors", {"format": "pt"})
    for folder in (network, other, other):
        student("anchored", encoder=f"transformer:{folder}").fit(
            TEXTS, LABELS, teacher_cache=tmp_path / "teacher_cache"
        )
    assert len(list((tmp_path / "teacher_cache").iterdir())) == 2


def test_a_network_with_vectors_to_spare_substitutes_words(tmp_path):
    """Many published networks have more rows of vectors than their tokenizer has entries."""
    from transformers import AutoModel

    folder = transformer_folder(tmp_path / "network")
    network = AutoModel.from_pretrained(folder)
    network.resize_token_embeddings(network.config.vocab_size + 13)
    network.save_pretrained(folder)
    (tmp_path / "s.jsonl").write_text('{"word": "good", "synonyms": ["bad"]}\n')
    settings = {"synonyms": tmp_path / "s.jsonl"}
    clf = student("anchored", encoder=f"transformer:{folder}", settings=settings).fit(TEXTS, LABELS)
    assert len(clf.stored_.model.encoder.vectors) == clf.stored_.tokenizer.size + 13
    assert torch.isfinite(torch.tensor(clf.predict_proba(TEXTS))).all()


def test_a_teachers_identity_leaves_out_its_student_and_nothing_else():
    whole = {"technique": "x", "technique_settings": {}, "seed": 1, "references": [], "history": [], "best_epoch": {}}
    shared = {"text": {"min_df": 2}, "classes": [0, 1], "files": ["f"], "vectors": "v", "corpus": "c"}
    assert stage_identity({**whole, **shared, "text": {"min_df": 2, "synonyms": "s"}}) == shared


def test_a_table_of_synonyms_may_be_named_by_a_path(tmp_path):
    (tmp_path / "s.jsonl").write_text('{"word": "good", "synonyms": ["fine"]}\n')
    named = student("anchored", settings={"synonyms": tmp_path / "s.jsonl"}).fit(TEXTS, LABELS)
    written = student("anchored", settings={"synonyms": str(tmp_path / "s.jsonl")}).fit(TEXTS, LABELS)
    assert named.stored_.description == written.stored_.description
