"""A rationalizer: what is not selected cannot be read, nothing else in the batch either, and nothing is drawn."""

import copy
from dataclasses import replace
from functools import cache, partial

import pytest
import torch
from torch import nn

from contract.tiny import (
    CLASSES,
    ENCODER_NAMES,
    TEXTS,
    VOCABULARY,
    assert_close,
    batch,
    encoder,
    littered,
    split,
    widened,
)
from steadygaze.core.maths import distributions
from steadygaze.core.random_key import RandomKey
from steadygaze.models.classifier import Architecture
from steadygaze.models.rationalizer import Granularity, Rationalizer, SelectionConfig
from steadygaze.perturbations.word_removal import remove_words, trim_padding
from techniques.byhand import Identity, texts

ENDS = torch.arange(VOCABULARY) % 4 == 3
WAYS = {
    "sentence": SelectionConfig("sentence", selection_heads=("hard", "soft")),
    "windows": SelectionConfig("token", share=0.5, spans=2, selection_heads=("hard", "soft")),
    "tokens": SelectionConfig("token", share=0.4, selection_heads=("hard", "soft")),
    "coins": SelectionConfig("token", independent_units=True, selection_heads=("hard", "soft")),
    "attention": SelectionConfig("token", share=0.5, selection_heads=("hard", "soft"), separate_encoders=False),
    "fresh": SelectionConfig("token", share=0.5, spans=2, selection_heads=("hard", "soft"), saliency="attention"),
    "gradient": SelectionConfig("sentence", selection_heads=("hard", "soft"), saliency="gradient"),
}
ENCODER = pytest.mark.parametrize("name", ENCODER_NAMES)
WAY = pytest.mark.parametrize("way", WAYS)
PAIRINGS = [("bigru", way) for way in WAYS] + [("transformer", way) for way in WAYS]
BOTH = pytest.mark.parametrize(
    ("name", "way"),
    [*PAIRINGS, *((name, "sentence") for name in ENCODER_NAMES if name not in ("bigru", "transformer"))],
)


@cache
def made(name: str, way: str) -> Rationalizer:
    torch.manual_seed(0)
    shape = Architecture(hidden=4, dimension=5)
    return Rationalizer(partial(encoder, name, False), shape, CLASSES, ENDS, WAYS[way]).double().eval()


def by_hand(granularity: Granularity = "sentence", share: float | None = None, alone: bool = False) -> Rationalizer:
    """Hidden states are vectors, a unit's score is its first entry, the second logit is the second entry.

    Ids 1 to 4 are (2, 1), (0, 3), (1, −1), (0, 0); id 4 ends a sentence.
    """
    table = torch.tensor([[0.0, 0.0], [2.0, 1.0], [0.0, 3.0], [1.0, -1.0], [0.0, 0.0]], dtype=torch.float64)
    ends = torch.tensor([False, False, False, False, True])
    way = SelectionConfig(granularity, alone, share, selection_heads=("hard", "soft"))
    model = Rationalizer(lambda: Identity(table.clone()), Architecture(score="dot"), 2, ends, way).double()
    with torch.no_grad():
        model.generator.scorer.key.copy_(torch.tensor([2**0.5, 0.0], dtype=torch.float64))
        for head in model.predictor.heads.values():
            assert isinstance(head, nn.Linear)
            head.weight.copy_(torch.tensor([[0.0, 0.0], [0.0, 1.0]]))
            head.bias.zero_()
    return model.eval()


@BOTH
def test_with_the_selection_held_fixed_no_other_token_changes_the_output_at_all(name, way):
    model, inputs = made(name, way), batch(split())
    selection = (RandomKey(4).uniform(inputs.index, inputs.ids.shape[1]) < 0.5) & inputs.mask
    other = torch.where(inputs.mask & ~selection, (inputs.ids + 5) % (VOCABULARY - 2) + 2, inputs.ids)
    assert (other != inputs.ids).any()
    before = model.read(inputs, selection)
    assert torch.equal(model.read(replace(inputs, ids=other), selection), before)
    louder = model.predictor.encoder.embed(inputs.ids).masked_fill((inputs.mask & ~selection).unsqueeze(-1), 1e6)
    assert torch.equal(model.read(inputs, selection, embedded=louder), before)


@ENCODER
def test_with_the_selection_held_fixed_a_selected_token_does_change_the_output(name):
    model, inputs = made(name, "sentence"), batch(split())
    selection = (RandomKey(4).uniform(inputs.index, inputs.ids.shape[1]) < 0.5) & inputs.mask
    other = torch.where(selection, (inputs.ids + 5) % (VOCABULARY - 2) + 2, inputs.ids)
    moved = (model.read(replace(inputs, ids=other), selection) - model.read(inputs, selection)).abs().amax(-1)
    assert torch.equal(moved > 1e-6, selection.any(-1))


@BOTH
def test_of_a_whole_forward_pass_too_the_logits_come_from_the_selection_alone(name, way):
    """What is not selected can change which tokens are; where it does not, it changes nothing."""
    model, inputs = made(name, way), batch(split())
    output = model(inputs)
    other = replace(inputs, ids=torch.where(inputs.mask & ~output.selected, (inputs.ids + 5) % 21 + 2, inputs.ids))
    assert torch.equal(model.read(other, output.selected), output.logits)


@pytest.mark.parametrize("way", ["sentence", "windows", "tokens", "fresh"])
def test_units_whose_scores_differ_by_rounding_tie_and_the_first_is_selected(way):
    """As in "good film good film …", whose words have equal scores up to rounding, which another batch changes."""
    model, inputs = made("bigru", way), batch(split())
    output = model.generate(inputs)
    noise = 1e-7 * RandomKey(1).normal(inputs.index, output.scores.shape[1]).to(output.scores.dtype)
    level = (output.scores > -torch.inf) & output.real
    scores = [torch.where(level, shift, output.scores) for shift in (torch.zeros_like(noise), noise)]
    probability = [distributions.softmax(score, output.real) for score in scores]
    equal, noisy = (
        model.select(inputs, replace(output, scores=s, probability=p)) for s, p in zip(scores, probability, strict=True)
    )
    assert torch.equal(noisy, equal)


@pytest.mark.sweep(keep=6)
@BOTH
def test_padding_its_content_batch_mates_and_order_change_nothing(name, way):
    model, data = made(name, way), split()
    whole = model(batch(data))
    for changed in (widened(batch(data), 3), littered(batch(data))):
        output, width = model(changed), whole.weights.shape[1]
        assert_close(output.logits, whole.logits)
        for mine, theirs in zip((output.weights, output.probability), (whole.weights, whole.probability), strict=True):
            assert_close(mine[:, :width], theirs)
            assert not mine[:, width:].any()
        assert torch.equal(output.selected[:, :width], whole.selected)
    for rows in ([6, 3, 5, 0], [1, 2], [4]):
        output = model(batch(data, rows))
        width = output.weights.shape[1]
        assert_close(output.logits, whole.logits[rows])
        assert_close(output.weights, whole.weights[rows][:, :width])
        assert torch.equal(output.selected, whole.selected[rows][:, :width])


@WAY
def test_nothing_is_drawn_and_training_mode_reads_as_evaluation_does(way):
    model, inputs = made("bigru", way), batch(split())
    random_state, first = torch.get_rng_state(), model(inputs)
    again = copy.deepcopy(model).train()(inputs)
    assert torch.equal(torch.get_rng_state(), random_state)
    for field in ("weights", "logits", "selected", "probability"):
        assert torch.equal(getattr(first, field), getattr(again, field)), field


@WAY
def test_weights_are_shares_of_the_probability_on_what_is_selected(way):
    model, inputs = made("bigru", way), batch(split())
    output = model(inputs)
    assert not (output.selected & ~inputs.mask).any()
    assert torch.equal(output.weights > 0, output.selected)
    assert_close(output.weights.sum(-1), output.selected.any(-1).double())
    expected = output.probability * output.selected
    assert_close(output.weights * expected.sum(-1, keepdim=True), expected)
    if way != "coins":  # there nothing need be above one half
        assert torch.equal(output.selected.any(-1), inputs.mask.any(-1))


def test_a_sentence_is_selected_whole_and_no_second_one():
    model, inputs = made("bigru", "sentence"), batch(split())
    output, numbers = model(inputs), model.sentences(inputs)
    for row in range(len(TEXTS)):
        chosen = numbers[row][output.selected[row]].unique().tolist()
        assert len(chosen) == int(inputs.mask[row].any())
        assert torch.equal(output.selected[row], torch.isin(numbers[row], torch.tensor(chosen)))


def test_sentences_by_hand():
    """Text 1 4 | 2 3 4: states (2, 1) and (1, 3); α = (e², e) / (e² + e) = (.731, .269).

    The first is selected; of (2, 1) and (0, 0) the largest second entry is 1.  Soft: .731 · 1 + .269 · 3 = 1.538.
    """
    model, inputs = by_hand(), texts([1, 4, 2, 3, 4], [2, 1])
    output, looked = model(inputs), model.generate(inputs)
    first = 1 / (1 + torch.tensor(-1.0, dtype=torch.float64).exp())
    assert_close(output.probability[0], torch.stack([first, first, *[1 - first] * 3]))
    assert output.selected.tolist() == [[True, True, False, False, False], [True, True, False, False, False]]
    assert_close(output.weights[0], torch.tensor([0.5, 0.5, 0, 0, 0], dtype=torch.float64))
    assert_close(output.logits, torch.tensor([[0.0, 1.0], [0.0, 3.0]], dtype=torch.float64))
    soft = torch.stack([first + 3 * (1 - first), torch.tensor(3.0, dtype=torch.float64)])
    assert_close(model.soft_attention(inputs, looked)[:, 1], soft)


def test_tokens_by_hand():
    """Text 2 3 1: scores 0, 1, 2, so two of three tokens are 3 and 1, and their largest second entry is 1."""
    model, inputs = by_hand("token", share=0.7), texts([2, 3, 1])
    output = model(inputs)
    probabilities = torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64).softmax(-1)
    assert output.selected.tolist() == [[False, True, True]]
    assert_close(output.probability[0], probabilities)
    assert_close(output.weights[0], torch.stack([0 * probabilities[0], *(probabilities[1:] / probabilities[1:].sum())]))
    assert_close(output.logits, torch.tensor([[0.0, 1.0]], dtype=torch.float64))


def test_coins_by_hand():
    """Text 4 3 1: scores 0, 1, 2, so coins of 1 / (1 + e^−s) = .5, .7311, .8808; above one half are 3 and 1.

    Weights are their shares of .7311 + .8808 = 1.6119.  The padding after 3 alone has no coin.
    """
    output = by_hand("token", alone=True)(texts([4, 3, 1], [3]))
    expected = torch.tensor([[0.5, 0.731059, 0.880797], [0.731059, 0.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(output.probability, expected, rtol=0, atol=1e-6)
    assert output.selected.tolist() == [[False, True, True], [True, False, False]]
    weights = torch.tensor([0.0, 0.453551, 0.546449], dtype=torch.float64)
    torch.testing.assert_close(output.weights[0], weights, rtol=0, atol=1e-6)
    assert_close(output.logits[:, 1], torch.tensor([1.0, -1.0], dtype=torch.float64))


def test_probabilities_near_one_remain_distinct():
    """Scores of 20 and 24 have probabilities of 1 in single precision; the larger is selected, in any position."""
    model, inputs = by_hand("token", 0.5, alone=True).float(), texts([3, 1])
    with torch.no_grad():
        model.generator.scorer.key.mul_(12.0)
    assert model(inputs).probability.tolist() == [[pytest.approx(1.0, abs=1e-5), 1.0]]
    with torch.no_grad():
        model.generator.encoder.vectors.add_(1.0)
    output = model(inputs)
    assert output.probability.tolist() == [[1.0, 1.0]]
    assert output.selected.tolist() == [[False, True]]


def test_what_is_not_selected_has_no_part_in_the_maximum_either():
    """Of 3, which is (1, −1), and 1, which is not selected, the largest second entry is −1: not the 0 of nothing."""
    model, inputs = by_hand(), texts([3, 1])
    assert_close(model.read(inputs, torch.tensor([[True, False]]))[0, 1], torch.tensor(-1.0, dtype=torch.float64))


def test_a_transformer_reads_a_selection_as_if_nothing_else_were_there():
    """It does not attend to what is not selected: zeros, too, would be something to attend to."""
    model, longer = made("transformer", "sentence"), batch(split(["wwwwwww"]))
    first = torch.arange(7) < 3
    shorter = replace(longer, **{name: getattr(longer, name)[:, :3] for name in ("ids", "present", "mask")})
    assert_close(model.read(longer, first.unsqueeze(0)), model.read(shorter, first[:3].unsqueeze(0)))


def test_a_text_of_one_sentence_is_selected_whole_with_certainty():
    message = by_hand()(texts([2, 3, 1], [3, 4]))
    assert message.selected.tolist() == [[True, True, True], [True, True, False]]
    assert_close(message.probability, message.selected.double())


def test_a_share_too_small_for_one_token_keeps_one():
    message = by_hand("token", share=0.01)(texts([2, 3, 1], [3]))
    assert message.selected.tolist() == [[False, False, True], [True, False, False]]


@WAY
def test_of_a_text_without_words_nothing_is_selected_and_the_bias_answers(way):
    model, inputs = made("bigru", way), batch(split(["ss", "swws"]))
    output = model(inputs)
    assert not output.selected[0].any()
    assert not output.weights[0].any()
    assert_close(output.logits[0], model.predictor.heads["hard"].bias)


@BOTH
def test_its_own_embeddings_give_the_same_output_and_only_selected_ones_have_gradients(name, way):
    model, inputs = made(name, way), batch(split())
    output, vectors = model(inputs), model.embed(inputs).detach().requires_grad_()
    same = model(inputs, vectors)
    assert_close((same.logits, same.weights), (output.logits, output.weights))
    assert model.vectors.shape == (VOCABULARY, vectors.shape[-1])
    assert_close(model.vectors[inputs.ids], vectors)
    (pull,) = torch.autograd.grad(same.logits.square().sum(), vectors)
    unread = inputs.mask & ~output.selected
    assert not pull[unread].any()
    assert pull[output.selected].any() == output.selected.any()
    if model.selection_config.separate_encoders:
        assert not pull[..., : vectors.shape[-1] // 2].any()  # a selection has no slope


def test_given_sentences_replace_those_of_the_splitter_row_by_row():
    """Id 4 ends a sentence.  The second text has given sentences; their numbers have no gap after a removal."""
    model = by_hand()
    both = texts([1, 4, 2, 3], [1, 4, 2, 3])
    batch = replace(both, sentences=torch.tensor([[-1] * 4, [0, 0, 1, 2]]))
    assert model.sentences(both).tolist() == [[0, 0, 1, 1]] * 2
    assert model.sentences(batch).tolist() == [[0, 0, 1, 1], [0, 0, 1, 2]]
    removed = remove_words(batch, torch.tensor([[False, False, True, False]] * 2))
    assert model.sentences(removed).tolist() == [[0, 0, 1, -1], [0, 0, 1, -1]]
    assert removed.sentences.tolist() == [[-1] * 4, [0, 0, 2, -1]]
    assert trim_padding(removed, 3).sentences.shape == (2, 3)
    with pytest.raises(ValueError, match="sentences"):
        replace(both, sentences=torch.zeros(2, 3, dtype=torch.long))
