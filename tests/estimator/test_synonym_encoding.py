"""Models with synonym groups: substitutions inside a group change nothing."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import steadygaze as sg
from estimator.rewrites import GROUPS, random_text, rewrite, rewrites
from estimator.tiny import LABELS, SMALL, TEXTS, tiny
from steadygaze.core.errors import CoverageWarning, HealthWarning, SynonymWarning, UserError
from steadygaze.data.synonym_groups import SynonymGroups, fold_word
from steadygaze.data.word_tokenizer import build_word_tokenizer
from steadygaze.estimator import fit_plan
from steadygaze.estimator.model_folder import read_tokenizer
from steadygaze.estimator.text_classifier import TextClassifier

TABLE = {"good": ["fine", "splendid"], "film": ["movie"], "bad": ["dreadful"]}
QUESTIONS = ["was the movie good ?", "a lousy plot"]


def outcome(clf: TextClassifier, X: list, **options: Any) -> list[tuple]:
    """The content of an explanation, without the words of the text."""
    return [
        (e.weights, e.label, tuple(e.probabilities.values()), e.rationale and [c for *_, c in e.rationale])
        for e in clf.explain(X, **options)
    ]


def random_texts(number: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return [random_text(rng) for _ in range(number)]


@pytest.fixture(scope="module")
def grouped() -> TextClassifier:
    return tiny(synonym_groups=GROUPS).fit(TEXTS, LABELS)


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize(
    "explainer", [None, "lime", "kernel-shap", "integrated-gradients", "leave-one-out", "input-x-gradient"]
)
def test_in_group_rewrites_leave_every_explanation_bit_identical(grouped: TextClassifier, explainer: Any) -> None:
    texts = random_texts(8)
    expected = outcome(grouped, texts, explainer=explainer)
    for seed in range(2):
        assert outcome(grouped, rewrites(texts, seed, recase=True), explainer=explainer) == expected


@pytest.mark.parametrize("encoder", ["average", "cnn", "gru"])
@pytest.mark.parametrize("technique", ["word-at", "rnp", "seat"])
@pytest.mark.sweep
def test_encoders_and_techniques_do_not_see_in_group_rewrites(encoder: str, technique: str) -> None:
    settings = {**SMALL, "granularity": "token"} if technique == "rnp" else SMALL
    clf = tiny(encoder, technique=technique, synonym_groups=GROUPS, settings=settings).fit(TEXTS, LABELS)
    texts = random_texts(30, 1)
    assert outcome(clf, texts) == outcome(clf, rewrites(texts, 0, recase=True))
    assert outcome(clf, ["the plot"]) != outcome(clf, ["the good"])


@pytest.mark.slow
def test_a_transformer_does_not_see_in_group_rewrites(encoder: str, tmp_path: Path) -> None:
    clf = tiny(encoder, synonym_groups=GROUPS).fit(TEXTS, LABELS)
    clf.save(tmp_path / "model")
    loaded = sg.load(tmp_path / "model")
    texts = random_texts(40, 2)
    for granularity in ("word", "piece"):
        expected = outcome(clf, texts, granularity=granularity)
        assert outcome(clf, rewrites(texts, 0, recase=True), granularity=granularity) == expected  # it is uncased
        assert outcome(loaded, texts, granularity=granularity) == expected
    with pytest.warns(SynonymWarning, match="the exported tokenizer does not apply the synonym groups"):
        clf.export_transformers(tmp_path / "exported")


def test_pairs_do_not_see_in_group_rewrites() -> None:
    pairs = [(text, QUESTIONS[i % 2]) for i, text in enumerate(TEXTS)]
    with pytest.warns(SynonymWarning, match="merged in the given groups: bad/lousy"):
        clf = tiny(synonym_groups=GROUPS).fit(pairs, LABELS)
    texts, questions = random_texts(20, 3), random_texts(20, 4)
    before = clf.explain(list(zip(texts, questions, strict=True)))
    after = clf.explain(list(zip(rewrites(texts, 0), rewrites(questions, 1), strict=True)))
    assert [(e.weights, e.question_weights, e.probabilities) for e in before] == [
        (e.weights, e.question_weights, e.probabilities) for e in after
    ]


def test_a_fitted_explainer_does_not_see_in_group_rewrites(grouped: TextClassifier, short_probe_training: None) -> None:
    with pytest.warns(HealthWarning, match="the same label"):
        explainer = sg.fit_explainer(grouped, TEXTS, k=2)
    texts = random_texts(20, 5)
    assert outcome(grouped, texts, explainer=explainer) == outcome(
        grouped, rewrites(texts, 0, recase=True), explainer=explainer
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["words", "pieces"])
def test_a_hundred_rewrites_of_a_thousand_texts_are_bit_identical(kind: str, encoder: str) -> None:
    """All have the same ids, from which everything else follows; of some, the explanations are compared, too."""
    clf = tiny("bilstm" if kind == "words" else encoder, synonym_groups=GROUPS).fit(TEXTS, LABELS)
    texts = random_texts(1000, 6)
    ids, expected = clf.stored_.data(texts, None).text.ids.tolist(), outcome(clf, texts)
    for seed in range(100):
        rewritten = rewrites(texts, seed, recase=True)
        assert clf.stored_.data(rewritten, None).text.ids.tolist() == ids
        assert seed % 20 or outcome(clf, rewritten) == expected


WORD = st.text(st.sampled_from("abcdefghijklmnoprstuvwéüßøσж"), min_size=2, max_size=6)


@st.composite
def groups_and_rewrites(draw: st.DrawFn) -> tuple[SynonymGroups, list[str], list[str], list[str]]:
    words = draw(st.lists(WORD.filter(lambda word: fold_word(word) == word), min_size=4, max_size=12, unique=True))
    cuts = sorted(draw(st.sets(st.sampled_from(range(2, len(words) - 1)), max_size=3)))
    parts = [words[a:b] for a, b in zip([0, *cuts], [*cuts, len(words)], strict=True)]
    groups = SynonymGroups(tuple(tuple(part) for part in parts if len(part) > 1))
    # Case: characters whose upper case is another letter, such as ß, change the word itself.
    case = st.sampled_from([str.lower, lambda w: w.upper() if w.upper().lower() == w else w])
    joint = st.sampled_from([" ", ", ", "-", "\n", "'s ", "n't ", "!", "…", " 7 ", "(", "#"])
    frame = draw(st.lists(st.tuples(st.sampled_from(words), joint), min_size=1, max_size=8))
    first = "".join(draw(case)(word) + mark for word, mark in frame)
    second = "".join(draw(case)(draw(st.sampled_from(groups.members(word)))) + mark for word, mark in frame)
    return groups, [" ".join(words[::2])], [first], [second]


@pytest.mark.slow
@given(groups_and_rewrites())
def test_arbitrary_groups_give_the_same_ids_in_any_case_and_punctuation(
    drawn: tuple[SynonymGroups, list[str], list[str], list[str]],
) -> None:
    groups, corpus, first, second = drawn
    tokenizer = build_word_tokenizer(corpus, synonym_groups=groups)
    placed, other = tokenizer.place(first), tokenizer.place(second)
    assert placed.ragged.ids.tolist() == other.ragged.ids.tolist()
    again = read_tokenizer(tokenizer.to_json(), kind="words", max_length=512, synonym_groups=groups)
    assert again.encode(second).ids.tolist() == placed.ragged.ids.tolist()
    assert all(0 <= a < b <= len(second[0]) for a, b in other.spans[0])


def test_highlights_show_the_words_of_the_text(grouped: TextClassifier, encoder: str) -> None:
    text = "A SUPERB, well-made picture! The bistro wasn't lousy."
    words = ["A", "SUPERB", ",", "well", "-", "made", "picture", "!", "The", "bistro", "was", "n't", "lousy", "."]
    explanation = grouped.explain(text)
    assert list(explanation.tokens) == words
    assert [text[a:b] for a, b in explanation.spans] == words
    pieces = tiny(encoder, synonym_groups=GROUPS).fit(TEXTS, LABELS).explain(text)
    assert [text[a:b] for a, b in pieces.spans] == list(pieces.tokens)
    assert {"SUPERB", "picture", "bistro", "lousy"} <= set(pieces.tokens)


def test_typos_leave_what_the_model_reads_identical_and_highlights_as_written(tmp_path: Path) -> None:
    groups = SynonymGroups((), ("film", "good", "thought", "dull"))
    tiny(epochs=2, synonym_groups=groups).fit(TEXTS, LABELS).save(tmp_path / "model")
    clf = sg.load(tmp_path / "model")
    texts = ["a good film i thought", "a goood Fiilm i tohught"]
    ids, typed_ids = (clf.stored_.data([text], None).text.ids.tolist() for text in texts)
    assert ids == typed_ids
    plain, typed = clf.explain(texts)
    assert plain.label == typed.label
    assert plain.weights == pytest.approx(typed.weights, abs=1e-5)  # two rows of a batch can round in another way
    assert typed.tokens == ("a", "goood", "Fiilm", "i", "tohught")
    other = clf.explain("a xgood film i thought")  # the first letter is wrong: an unknown word
    assert other.weights != plain.weights


def test_words_outside_the_training_texts_have_the_id_of_their_group(grouped: TextClassifier) -> None:
    ids = grouped.stored_.tokenizer.encode(["good superb film picture wow gosh unheard"]).ids.tolist()[1:-1]
    good, superb, film, picture, wow, gosh, unheard = ids
    assert good == superb
    assert film == picture
    assert wow == gosh == unheard == grouped.stored_.tokenizer.unknown_id
    assert "superb" not in grouped.stored_.tokenizer.vocabulary
    # A group counts with all its words: two texts have one each, and min_df is 2.
    tokenizer = build_word_tokenizer(["a superb one", "a splendid one"], min_df=2, synonym_groups=GROUPS)
    assert tokenizer.vocabulary[4:] == ["a", "good", "one"]


def test_the_folder_has_the_groups_and_loads_without_their_file_only_if_it_needs_none(
    grouped: TextClassifier, tmp_path: Path
) -> None:
    grouped.save(tmp_path / "model")
    loaded = sg.load(tmp_path / "model")
    assert loaded.synonym_groups == GROUPS
    texts = random_texts(20, 7)
    assert outcome(loaded, rewrites(texts, 0)) == outcome(grouped, texts)
    assert outcome(clone(loaded).fit(TEXTS, LABELS), texts) == outcome(grouped, texts)
    assert "5 groups of 14 words" in (tmp_path / "model" / "README.md").read_text()
    grouped.save(tmp_path / "model")  # may replace itself
    file = tmp_path / "model" / "synonym_groups.json"
    file.write_text(SynonymGroups((("good", "bad"),)).to_json())
    with pytest.raises(UserError, match="the model was trained with 5 groups of 14 words"):
        sg.load(tmp_path / "model")
    file.unlink()
    with pytest.raises(UserError, match=r"has no synonym_groups\.json"):
        sg.load(tmp_path / "model")
    tiny().fit(TEXTS, LABELS).save(tmp_path / "plain")
    assert not (tmp_path / "plain" / "synonym_groups.json").exists()
    assert sg.load(tmp_path / "plain").synonym_groups is None


@pytest.mark.parametrize("form", ["mapping", "jsonl", "json"])
def test_groups_come_from_a_mapping_a_table_or_a_file_of_groups(form: str, tmp_path: Path) -> None:
    source: Any = TABLE
    if form == "jsonl":
        source = tmp_path / "table.jsonl"
        source.write_text("".join(json.dumps({"word": w, "synonyms": s}) + "\n" for w, s in TABLE.items()))
    if form == "json":
        source = str(tmp_path / "groups.json")
        Path(source).write_text(SynonymGroups((("good", "fine", "splendid"), ("film", "movie"))).to_json())
    clf = tiny(synonym_groups=source).fit(TEXTS, LABELS)
    groups = clf.stored_.tokenizer.synonym_groups
    assert groups is not None
    assert groups.members("fine") == ("fine", "good", "splendid") if form != "json" else ("good", "fine", "splendid")
    assert groups.members("movie") == ("film", "movie")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("none.json", "'none.json' does not exist"),
        (7, "must be a file, SynonymGroups or a mapping"),
        ({"good": "fine"}, "synonyms of 'good' must be a list"),
        ({"gut": ["fein"]}, "no word of the training texts is in a group"),
        ({}, "no word of the training texts is in a group"),
    ],
)
def test_wrong_groups_are_named(source: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        tiny(synonym_groups=source).fit(TEXTS, LABELS)


def test_teachers_are_cached_by_their_groups(tmp_path: Path, unlearned_teachers: None) -> None:
    settings = {**SMALL, "swaps": 0, "teachers": 2}
    first = tiny(technique="consensus", settings=settings).fit(TEXTS, LABELS, teacher_cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    groups = {"technique": "consensus", "settings": settings, "synonym_groups": GROUPS}
    second = tiny(**groups).fit(TEXTS, LABELS, teacher_cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 4
    third = tiny(**groups).fit(TEXTS, LABELS, teacher_cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 4
    assert np.array_equal(second.predict_proba(TEXTS), third.predict_proba(TEXTS))
    assert first.stored_.tokenizer.size != second.stored_.tokenizer.size


def test_a_run_is_resumed_with_the_same_groups_only(tmp_path: Path) -> None:
    tiny(synonym_groups=GROUPS).fit(TEXTS, LABELS, checkpoint=tmp_path)
    with pytest.raises(UserError, match="synonym_groups"):
        tiny().fit(TEXTS, LABELS, checkpoint=tmp_path, resume=True)


def test_models_of_several_seeds_share_the_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, resolve = [], fit_plan.resolve_groups
    monkeypatch.setattr(fit_plan, "resolve_groups", lambda *inputs: calls.append(1) or resolve(*inputs))
    clf = tiny(n_seeds=2, synonym_groups=GROUPS).fit(TEXTS, LABELS)
    first, second = (classifier.stored_ for classifier in (clf, *clf.other_seeds_))
    assert len(calls) == 1
    assert first.tokenizer.synonym_groups is not None
    assert first.tokenizer.synonym_groups == second.tokenizer.synonym_groups
    assert first.description.synonym_groups == second.description.synonym_groups


def test_a_reference_needs_the_same_groups(grouped: TextClassifier) -> None:
    with pytest.raises(UserError, match="has other synonym groups"):
        tiny(technique="seat").fit(TEXTS, LABELS, reference=grouped)


@pytest.mark.parametrize(("option", "expected"), [("representative", [1.0, 2.0]), ("mean", [3.0, 1.0])])
def test_the_vector_of_a_group_is_that_of_its_representative_or_the_mean(
    tmp_path: Path, option: str, expected: list[float]
) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text("good 1 2\nfine 5 0\nmovie 7 7\nthe 1 1\nwas 0 1\n")  # "film" and "splendid" have none
    groups = SynonymGroups((("good", "fine", "splendid"), ("film", "movie")))
    settings = {**SMALL, "group_vectors": option, "train_vectors": False, "small_data": False}
    with pytest.warns(CoverageWarning, match="31 % of the tokens"):
        clf = tiny(synonym_groups=groups, vectors=file, settings=settings).fit(TEXTS, LABELS)
    vectors, vocabulary = clf.stored_.model.vectors.detach().numpy(), clf.stored_.tokenizer.vocabulary
    assert vectors[vocabulary.index("good")].tolist() == expected
    # min_df is 2, and the film is in two texts
    assert vectors[vocabulary.index("film")].tolist() == [7.0, 7.0]


@pytest.mark.slow
def test_the_audit_counts_substitutions_inside_a_group(grouped: TextClassifier) -> None:
    table = {"good": ["fine"], "fine": ["good"], "bad": ["dreadful", "dull"], "film": ["movie"], "plot": ["story"]}
    report = sg.audit(grouped, TEXTS, LABELS, synonyms=table, skewed_epochs=1)
    assert report.find("words-substituted/1-synonym").value == 1
    only_groups = {key: table[key] for key in ("good", "fine", "bad", "film")}
    report = sg.audit(grouped, TEXTS, LABELS, synonyms=only_groups, skewed_epochs=1)
    assert report.find("words-substituted/1-synonym").value == 1
    assert report.facts["synonym groups"].startswith("5 groups of 14 words")
    assert report.find("jensen-shannon/1-synonym").value == 0
    assert report.find("label-flip/1-synonym").value == 0


def test_rewrite_changes_words_of_groups_and_nothing_else() -> None:
    """The helper of these tests is not idle."""
    rng = random.Random(0)
    changed = {rewrite("The FILM wasn't bad; o'clock 3", rng) for _ in range(50)}
    assert len(changed) == 9
    assert all(text.endswith("; o'clock 3") and "wasn't" in text for text in changed)


def test_learned_groups_leave_out_words_that_lower_macro_f1() -> None:
    texts = [f"a {word} {film}" for word in ("splendid", "dreadful") for film in ("film", "movie")] * 30
    labels = [text.split()[1] == "splendid" for text in texts]
    groups = SynonymGroups((("splendid", "dreadful"), ("film", "movie")))
    settings = {**SMALL, "small_data": False, "learn_groups": True}
    clf = tiny(synonym_groups=groups, settings=settings)
    with pytest.warns(SynonymWarning, match="merged in the given groups: dreadful/splendid"):
        clf.fit(texts, [int(label) for label in labels])
    assert clf.stored_.tokenizer.synonym_groups == SynonymGroups((("film", "movie"),))
    clf.set_params(synonym_groups=SynonymGroups((("splendid", "dreadful"),)))
    with pytest.warns(SynonymWarning), pytest.raises(UserError, match="every group lowers macro-F1"):
        clf.fit(texts, [int(label) for label in labels])
