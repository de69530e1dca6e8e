"""The rationale: the selection of a model, with its probability, shown as it is in the text."""

import json
import math
from functools import partial

import pytest
import torch

import commands
import steadygaze
from contract.probing import state
from contract.tiny import assert_close, batch, split, widened
from estimator.test_rationalizers import TEXTS, fitted
from models.test_rationalizer import BOTH, by_hand, made
from steadygaze.core.errors import UserError
from steadygaze.estimator.explain_texts import rationale_spans
from steadygaze.explainers.explainer import SELECTS
from steadygaze.explainers.rationale import RationaleExplainer
from steadygaze.report.text_excerpts import text_pair
from steadygaze.results.explanation import Explanation
from steadygaze.results.row import Shift
from steadygaze.techniques.rnp import Rnp
from techniques.byhand import texts
from training.toys import make_run, model_for


def test_one_sentence_by_hand():
    """Scores 1, 2 and 0: the second sentence, three tokens, with e² / (e + e² + 1)."""
    saliency = RationaleExplainer().explain(by_hand(), texts([3, 4, 1, 2, 4, 2, 4]))
    probability = math.e**2 / (math.e + math.e**2 + 1)
    assert_close(saliency.weights, torch.tensor([[0, 0, 1 / 3, 1 / 3, 1 / 3, 0, 0]], dtype=torch.float64))
    assert saliency.chances is not None
    assert_close(saliency.chances[0, 2:5], torch.full((3,), probability, dtype=torch.float64))


@BOTH
def test_it_is_the_models_own_and_leaves_it_as_it_was(name, way):
    model, read = made(name, way), widened(batch(split()), 2)
    before, output = state(model), model(read)
    result = RationaleExplainer().explain(model, read)
    assert state(model) == before
    assert_close(result.weights, output.weights)
    assert_close(result.logits, output.logits)
    assert (result.weights != 0).equal(output.selected), "what has a weight is what was selected"
    assert not result.weights.requires_grad


def test_a_selected_word_of_almost_zero_probability_has_a_weight():
    """Two of three tokens; scores 1000, 0 and 0: the probability of the second is 0 in double precision."""
    model = by_hand("token", share=0.7)
    model.generator.encoder.words.data[1, 0] = 1000.0
    output = model(texts([1, 2, 4]))
    assert output.selected.tolist() == [[True, True, False]]
    assert output.probability[0, 1] == 0
    assert (output.weights != 0).equal(output.selected)


def test_spans_are_runs_with_the_mean_probability_of_their_tokens():
    spans = [(0, 2), (3, 5), (6, 8), (9, 11)]
    assert rationale_spans(spans, [0.5, 0.5, 0, 1e-30], [0.25, 0.75, 0.9, 0.1]) == ((0, 5, 0.5), (9, 11, 0.1))
    assert rationale_spans(spans, [0, 0, 0, 0], [0.25, 0.75, 0.9, 0.1]) == ()
    assert rationale_spans([], [], []) == ()


def test_a_classifier_that_selects_shows_its_sentence_and_the_number_of_sentences():
    for text, shown in zip(TEXTS, fitted("a2r").explain(TEXTS), strict=True):
        assert (shown.explainer, shown.selected) == ("rationale", True)
        ((start, end, probability),) = shown.rationale
        assert 1 / 3 - 1e-6 <= probability <= 1, "the most probable of three sentences"
        chosen = [span for span, weight in zip(shown.spans, shown.weights, strict=True) if weight]
        assert (chosen[0][0], chosen[-1][1]) == (start, end)
        assert f"selected, 1 of 3 sentences: “{text[start:end]}”" in str(shown).splitlines()
        assert f"selected, 1 of 3 sentences: “{text[start:end]}”" in shown._repr_html_()
        assert shown.to_dict()["sentences"] == 3


def test_words_are_listed_piece_by_piece_in_the_order_of_the_text():
    shown = fitted("a2r attention").explain(TEXTS[0])
    assert 1 <= len(shown.rationale) <= 2
    selected = sum(weight > 0 for weight in shown.weights)
    assert f"selected, {selected} of {len(shown)} words: " in str(shown)
    assert shown.sentences is None
    assert list(shown.rationale) == sorted(shown.rationale)
    line = str(shown).splitlines()[-1]
    assert line.count(" · ") == len(shown.rationale) - 1
    assert all(f"“{TEXTS[0][start:end]}”" in line for start, end, _ in shown.rationale)


def test_a_text_of_one_sentence_is_selected_whole():
    shown = fitted("a2r").explain("the film was good")
    assert shown.rationale == ((0, 17, 1.0),)
    assert fitted("rnp").predict(["the film was good", "bad !"]).shape == (2,)


def test_the_gaps_of_a_sentence_are_marked_as_its_words_are():
    shown = fitted("a2r").explain("the film was good")
    html = shown._repr_html_()
    assert html.count("background-color") == 4 + 3 + 1, "words, gaps, and the sample of the legend"
    assert "the input of the predictor" in html


def test_of_other_models_there_is_none_and_the_usual_is_their_attention():
    plain = steadygaze.TextClassifier(epochs=1, device="cpu", settings={"hidden": 4, "dimension": 4})
    plain.fit(TEXTS, ["pos"] * 12 + ["neg"] * 12)
    assert plain.explain(TEXTS[0]).explainer == "attention"
    with pytest.raises(UserError, match="rationale cannot explain this model: the model does not select a rationale"):
        plain.explain(TEXTS[0], explainer="rationale")
    with pytest.raises(UserError, match=f"attention cannot explain this model: {SELECTS}; choose another explainer"):
        fitted("a2r").explain(TEXTS[0], explainer="attention")
    with pytest.raises(UserError, match="rationale is the same for every class"):
        fitted("a2r").explain(TEXTS[0], target="pos")


def test_the_command_shows_it_and_writes_it(capsys, tmp_path):
    run, folder = partial(commands.run, capsys), tmp_path / "model"
    fitted("a2r").save(folder)
    shown = fitted("a2r").explain(TEXTS[0])
    start, end, _ = shown.rationale[0]
    saliency = run("explain", folder, TEXTS[0])
    assert saliency.code == 0, saliency.err
    assert f"selected, 1 of 3 sentences: “{TEXTS[0][start:end]}”" in " ".join(saliency.out.split())
    assert f'"rationale":[[{start},{end},' in run("explain", folder, TEXTS[0], "--json").out
    refused = run("explain", folder, TEXTS[0], "--explainer", "attention")
    assert (refused.code, refused.out) == (2, "")
    assert f"attention cannot explain model: {SELECTS}" in " ".join(refused.err.split())
    assert run("explain", folder, TEXTS[0], "--html", tmp_path / "why.html").code == 0
    page = (tmp_path / "why.html").read_text()
    assert f"<b>{TEXTS[0][start:end]}</b>" in page
    assert "and the selected words." in page


def test_the_rationale_of_eraser_is_what_was_selected(capsys, tmp_path):
    fitted("a2r").save(tmp_path / "model")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS[:3]))
    out = tmp_path / "found.jsonl"
    commands.run(capsys, "explain", tmp_path / "model", "--file", tmp_path / "texts.txt", "--eraser", out)
    for line, shown in zip(out.read_text().splitlines(), fitted("a2r").explain(TEXTS[:3]), strict=True):
        (hard,) = json.loads(line)["rationales"][0]["hard_rationale_predictions"]
        words = shown.text.split()[hard["start_token"] : hard["end_token"]]
        start, end, _ = shown.rationale[0]
        assert " ".join(words) == shown.text[start:end]


def test_of_a_long_text_that_a_report_shows_in_parts_the_sentence_is_marked_where_it_stands():
    words = [f"w{i}" for i in range(200)]
    spans = [(5 * i, 5 * i + len(word)) for i, word in enumerate(words)]
    text = "".join(f"{word:5}" for word in words)
    weights = tuple(0.25 * (120 <= i < 124) for i in range(200))
    sure = (*spans[120][:1], spans[123][1], 0.75)
    whole = Explanation(text, tuple(words), tuple(spans), weights, "a", {"a": 1.0}, selected=True, rationale=(sure,))
    shown = text_pair(Shift("noise", 0.1, whole, whole)).before
    ((start, end, probability),) = shown.rationale
    assert len(shown) < 200
    assert (shown.text[start:end].split(), probability) == (words[120:124], 0.75)


def test_training_reports_which_sentence_is_always_selected_and_calls_no_other_collapsed():
    """tests/core/maths/test_collapse.py tests the detection; here a run of a rationalizer is tested by sentences."""
    technique = Rnp()
    run = make_run(technique, partial(model_for, technique), epochs=1)
    run.execute()
    assert run.history[0]["attention"]["unit"] == "sentence"
    words = Rnp(granularity="token")
    run = make_run(words, partial(model_for, words), epochs=1)
    run.execute()
    assert run.history[0]["attention"]["unit"] == "word"
