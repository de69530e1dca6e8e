from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import IterableDataset

import steadygaze as sg
from adapters.folders import network, tokenizer
from stable_training.scripts import GROUPS, LABELS, TEXTS, rows, trainer
from steadygaze import SynonymGroups
from steadygaze.core.errors import SynonymWarning, UserError

FILM, CAST = "The film was good, not bad!", "The cast was good, not bad!"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a short training with one group, cast and film."""
    folder = tmp_path_factory.mktemp("saved")
    trained = trainer(folder, model=network("bert"), synonym_groups=GROUPS, arguments={"num_train_epochs": 3})
    trained.train()
    trained.save_model()
    return folder


def plain_probabilities(folder: Path, texts: list[str]) -> Any:
    from transformers import pipeline

    answers = pipeline("text-classification", str(folder), top_k=None)(texts)
    return np.array([[score["score"] for score in sorted(row, key=lambda score: score["label"])] for row in answers])


def test_plain_transformers_loads_the_folder_without_the_groups(saved: Path) -> None:
    film, cast = plain_probabilities(saved, [FILM, CAST])
    assert np.abs(film - cast).max() > 1e-3


def test_load_applies_the_groups_and_predicts_what_transformers_does_for_representatives(saved: Path) -> None:
    model = sg.load(saved)
    representative = model.tokens.synonym_groups.representative("film")
    assert representative == "cast"  # the more frequent word of the training texts
    expected = plain_probabilities(saved, [CAST, "bad"])
    assert model.predict_proba([FILM, "bad"]) == pytest.approx(expected, abs=1e-6)
    assert list(model.classes_) == ["negative", "neutral", "positive"]


def test_a_substitution_inside_a_group_changes_neither_prediction_nor_explanation(saved: Path) -> None:
    model = sg.load(saved)
    film, cast = model.predict_proba([FILM, CAST])
    assert film.tolist() == cast.tolist()
    first, second = model.explain([FILM, CAST], explainer="leave-one-out")
    assert first.weights == pytest.approx(second.weights, abs=1e-7)
    assert first.tokens[1] == "film"
    assert second.tokens[1] == "cast"  # the user's own words are shown


def test_the_report_and_the_card_state_the_groups(saved: Path) -> None:
    assert sg.load(saved).facts["synonym groups"].startswith("1 groups of 2 words, SHA-256 ")
    card = (saved / "README.md").read_text()
    assert "technique word-at (epsilon 0.2" in card
    assert "1 groups of 2 words" in card
    assert sg.load(saved).facts["synonym groups"] in card


def test_saving_again_replaces_the_part_of_the_card_and_keeps_the_rest(saved: Path, tmp_path: Path) -> None:
    card = tmp_path / "README.md"
    card.write_text("---\nlicense: mit\n---\nMine.\n")
    (tmp_path / "synonym_groups.json").write_text(SynonymGroups((("cast", "film"),)).to_json())  # of an earlier model
    plain = trainer(tmp_path, technique="vanilla", train_dataset=rows())
    plain.save_model()
    plain.save_model()
    text = card.read_text()
    assert text.startswith("---\nlicense: mit\n---\nMine.\n")
    assert text.count("Trained with StableTrainer") == 1
    assert "synonym" not in text
    assert not (tmp_path / "synonym_groups.json").exists()


def test_checkpoints_have_the_groups(tmp_path: Path) -> None:
    trainer(tmp_path, synonym_groups=GROUPS, arguments={"save_strategy": "epoch"}).train()
    assert sg.load(next(tmp_path.glob("checkpoint-*"))).tokens.synonym_groups.groups == (("cast", "film"),)


def test_a_pair_is_read_with_the_groups(saved: Path) -> None:
    model = sg.load(saved)
    first, second = model.predict_proba([(FILM, "the cast"), (CAST, "the film")])
    assert first.tolist() == second.tolist()


def test_an_adapter_folder_has_the_groups(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    base = tmp_path / "base"
    network("bert").save_pretrained(base)
    tokenizer("bert").save_pretrained(base)
    config = peft.LoraConfig(task_type="SEQ_CLS", target_modules=["query", "value"], r=2)
    model = peft.get_peft_model(network("bert"), config)
    ours = trainer(tmp_path / "adapter", model=model, synonym_groups=GROUPS)
    ours.train()
    ours.save_model()
    loaded = sg.load(tmp_path / "adapter", base_model=base)
    film, cast = loaded.predict_proba([FILM, CAST])
    assert film.tolist() == cast.tolist()
    assert "synonym groups" in loaded.facts


def texts_of_batches(loader: Any) -> list[str]:
    return [text for batch in loader for text in tokenizer("bert").batch_decode(batch["input_ids"])]


def test_rows_are_rewritten_in_training_evaluation_and_prediction(tmp_path: Path) -> None:
    ours = trainer(tmp_path, synonym_groups=GROUPS, eval_dataset=rows())
    loaders = ours.get_train_dataloader(), ours.get_eval_dataloader(), ours.get_test_dataloader(rows())
    for loader in (*loaders, ours.get_eval_dataloader(ours.eval_dataset)):
        texts = texts_of_batches(loader)
        assert len(texts) == len(TEXTS)
        assert not any("film" in text for text in texts)
        assert sum("cast" in text for text in texts) == 6


def test_datasets_of_the_library_are_rewritten(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    encode = tokenizer("bert")
    table = datasets.Dataset.from_dict({"review": TEXTS, "label": LABELS})
    table = table.map(lambda part: encode(part["review"], truncation=True, max_length=12), batched=True)
    parts = {"a": table, "b": table.select(range(3))}
    ours = trainer(
        tmp_path,
        train_dataset=table,
        eval_dataset=parts,
        synonym_groups=SynonymGroups((("film", "cast"),)),
        text_column="review",
        max_length=12,
    )
    assert not any("cast" in text for text in texts_of_batches(ours.get_train_dataloader()))
    assert len(texts_of_batches(ours.get_eval_dataloader("b"))) == 3
    ours.train()
    assert set(ours.evaluate()) >= {"eval_a_loss", "eval_b_loss"}


def test_texts_alone_are_enough(tmp_path: Path) -> None:
    bare = [{"text": text, "label": label} for text, label in zip(TEXTS, LABELS, strict=True)]
    encoded = trainer(tmp_path, synonym_groups=GROUPS).train_dataset
    alone = trainer(tmp_path, synonym_groups=GROUPS, train_dataset=bare).train_dataset
    assert [row["input_ids"] for row in alone] == [row["input_ids"] for row in encoded]


class Stream(IterableDataset):
    def __iter__(self) -> Any:
        return iter(rows())


def without_text() -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "text"} for row in rows()]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train_dataset": without_text()}, "no column 'text' of strings: keep the column beside input_ids"),
        ({"eval_dataset": without_text()}, "no column 'text' of strings"),
        ({"text_column": "label"}, "no column 'label' of strings"),
        ({"max_length": 4}, r"\(5 tokens\) are not those of the tokenizer \(4 tokens\): pass the max_length"),
        ({"synonym_groups": {"wine": ["vin"], "vin": ["wine"]}}, "no word of the training texts is in a group"),
        ({"synonym_groups": "nowhere.json"}, "nowhere.json"),
        ({"processing_class": None}, "pass processing_class=tokenizer"),
        ({"train_dataset": Stream(), "arguments": {"max_steps": 1}}, "need a dataset with a length"),
    ],
)
def test_groups_that_cannot_be_applied_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        trainer(tmp_path, **{"synonym_groups": GROUPS, **options})


def test_rows_of_another_column_are_refused(tmp_path: Path) -> None:
    other = [{**row, "text": "a bad film"} for row in rows()]
    with pytest.raises(UserError, match="the column that it tokenizes as text_column="):
        trainer(tmp_path, train_dataset=other, synonym_groups=GROUPS)


def test_given_groups_of_words_of_different_classes_are_reported(tmp_path: Path) -> None:
    texts, labels = ["good film", "bad film"] * 30, [2, 0] * 30
    dataset = rows(texts=texts, labels=labels)
    with pytest.warns(SynonymWarning, match="merged in the given groups: .*bad"):
        trainer(tmp_path, train_dataset=dataset, synonym_groups=SynonymGroups((("good", "bad"),)))
    groups = {"good": ["bad"], "bad": ["good"], "film": ["cast"], "cast": ["film"]}
    with pytest.warns(SynonymWarning, match="not merged"):
        ours = trainer(tmp_path, train_dataset=dataset, synonym_groups=groups)
    assert ours.synonym_groups.groups == (("film", "cast"),)


def test_a_damaged_file_of_groups_is_refused(saved: Path, tmp_path: Path) -> None:
    import shutil

    folder = shutil.copytree(saved, tmp_path / "copy")
    (folder / "synonym_groups.json").write_text('{"format": "other"}')
    with pytest.raises(UserError, match=r"synonym_groups\.json has no synonym groups"):
        sg.load(folder)


def test_vectors_stay_equal_in_the_saved_folder(saved: Path) -> None:
    loaded = sg.load(saved).model.network.get_input_embeddings().weight
    assert torch.isfinite(loaded).all()
    assert not torch.equal(loaded, network("bert").get_input_embeddings().weight)
