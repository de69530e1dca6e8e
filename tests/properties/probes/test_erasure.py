"""The top words are erased: exactly ⌈q·n⌉ of each text, in any batch, and the text closes up behind them.

The oracle is `slowly`: one text at a time, its tokens as Python lists, one forward pass for each size.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from contract.probing import spied
from contract.tiny import CLASSES, QUESTIONS, assert_close, batch, cached_classifier, classifier, split, widened
from steadygaze.adapters.transformer_network import TransformerOutput
from steadygaze.core.ragged import TokenArray, row_starts
from steadygaze.core.types import Batch
from steadygaze.data.batches import Data
from steadygaze.explainers.class_probability import MIN_LENGTH_RATIO
from steadygaze.models.classifier import Classifier
from steadygaze.models.inference import Model
from steadygaze.perturbations.word_removal import remove_words, take_rows
from steadygaze.properties.probes.erasure import SHARES, Erasure, distinct_texts, erase_words, rationale_masks
from steadygaze.properties.probes.text_perturbations import observe

PATTERNS = ["s" + "w" * n + "s" for n in (5, 0, 1, 12, 7, 2)]
OTHERS = (0.0, 0.07, 0.3, 0.55, 1.0)
REMOVAL = pytest.mark.parametrize("removal", ["delete", "pad", "zero"])
MODEL = pytest.mark.parametrize("encoder", ["bilstm", "cnn", "transformer"])
PAIR = pytest.mark.parametrize("pair", [False, True], ids=["single", "pair"])


def heavy(texts: Batch) -> Tensor:
    """A saliency of the text alone, without ties, and largest where there is no word.  (B,T)"""
    place = torch.arange(1, texts.ids.shape[1] + 1, dtype=torch.float64)
    return (texts.ids * 12.9898 + place * 78.233).sin().masked_fill(~texts.mask, 9.0)


def erased_output(model: Model, texts: Batch, **how: Any) -> tuple[Tensor, Tensor]:
    return erase_words(model, texts, observe(model, texts).probs, heavy(texts), Erasure(**how))


def ordered(texts: Batch, row: int) -> list[int]:
    """Positions of a text's words, the largest weight first."""
    words = texts.mask[row].nonzero().flatten()
    return words[heavy(texts)[row, words].argsort(descending=True)].tolist()


def slowly(model: Model, texts: Batch, removal: str, shares: Sequence[float]) -> tuple[Tensor, Tensor]:
    without, alone = [], []
    for row in range(len(texts)):
        order = ordered(texts, row)
        many = [ceil(Fraction(str(share)) * len(order)) for share in shares]
        without.append(torch.stack([prediction_without(model, texts, row, order[:k], removal) for k in many]))
        alone.append(torch.stack([prediction_without(model, texts, row, order[k:], removal) for k in many]))
    return torch.stack(without), torch.stack(alone)


def prediction_without(model: Model, texts: Batch, row: int, gone: list[int], removal: str) -> Tensor:
    """The prediction of a model for one text without these positions.  (C,)"""
    places = texts.present[row].nonzero().flatten().tolist()
    if removal == "delete":
        places = [place for place in places if place not in gone]
    there = torch.ones(1, max(len(places), 1), dtype=torch.bool) & bool(places)
    words = texts.mask[row : row + 1, places] if places else there
    ids = texts.ids[row : row + 1, places] if places else there.long() * 0
    names = ("index", "question_ids", "question_present")
    own = {name: getattr(texts, name) for name in names}
    own = {name: None if value is None else value[row : row + 1] for name, value in own.items()}
    inputs = Batch(ids, there, words, **own)
    if removal == "pad":
        inputs.ids[0, gone] = model.padding
    embedded = model.embed(inputs).detach().clone()
    if removal == "zero":
        embedded[0, gone] = 0.0
    return observe(model, inputs, embedded if removal == "zero" else None).probs[0]


def distinct_words(lengths: list[int]) -> Batch:
    """Texts in which no word occurs twice, so that ids show which were erased."""
    width = max(lengths)
    ids = torch.stack([torch.from_numpy(np.random.default_rng(n).permutation(width)) + 2 for n in lengths])
    there = torch.arange(width) < torch.tensor(lengths).unsqueeze(-1)
    return Batch(ids.masked_fill(~there, 0), there, there, torch.arange(len(lengths)))


class Counting(Model):
    """Its logits are the counts of each id, id 0 being padding: the output shows the input."""

    capabilities: frozenset = frozenset({"embeddings"})

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def embed(self, batch: Batch) -> Tensor:
        return torch.eye(self.size, dtype=torch.float64)[batch.ids] * (batch.ids > 0).unsqueeze(-1)

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> TransformerOutput:
        vectors = self.embed(batch) if embedded is None else embedded
        return TransformerOutput(None, (vectors * batch.present.unsqueeze(-1)).sum(1))

    @staticmethod
    def counts(probs: Tensor) -> Tensor:
        """(…,C) -> (…,C)"""
        return (probs / probs[..., :1]).log().round().long()


def shown(probs: Tensor) -> set[int]:
    """The ids that `Counting` was shown.  (C,)"""
    return set(Counting.counts(probs).nonzero().flatten().tolist())


# --- how many, and which


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("shares", [SHARES, OTHERS], ids=["eraser", "others"])
@REMOVAL
def test_the_exact_number_of_top_words_of_each_text_is_erased(removal, shares):
    """⌈q·n⌉ by fractions.  In singles 0.3·50 is 15.000001, in doubles 0.07·100 is 7.000000000000001: one too many."""
    texts = distinct_words([*range(1, 61), 100, 200])
    without, alone = erased_output(Counting(202), texts, removal=removal, shares=shares)
    assert without.shape == alone.shape == (len(texts), len(shares), 202)
    for row in range(len(texts)):
        words = texts.ids[row, ordered(texts, row)].tolist()
        for i, share in enumerate(shares):
            many = ceil(Fraction(str(share)) * len(words))
            assert shown(without[row, i]) == set(words[many:])
            assert shown(alone[row, i]) == set(words[:many])


@pytest.mark.parametrize("level", [0.0, -5.0, -torch.inf])
def test_ties_are_broken_at_random_and_only_words_are_erased(level):
    """In 1,000 texts of five words each place is taken 200 times, give or take 5 standard deviations."""
    ids = torch.from_numpy(np.random.default_rng(0).integers(3, 10**6, (1000, 6)))
    present = torch.ones_like(ids, dtype=torch.bool)
    texts = Batch(ids, present, present & (torch.arange(6) > 0), torch.arange(1000))  # the first is special
    flat = torch.full(ids.shape, level, dtype=torch.float64).masked_fill(~texts.mask, 7.0)
    gone, others = rationale_masks(texts, flat, (0.2,)).unbind(1)
    assert gone.sum(-1).eq(1).all()
    assert torch.equal(others, texts.mask & ~gone)
    special, *each = gone.sum(0).tolist()
    assert special == 0
    assert all(abs(many - 200) < 5 * 13 for many in each), each


def test_of_equals_the_lot_belongs_to_the_text_and_weight_comes_first():
    texts = distinct_words([6, 6])
    tied = torch.tensor([[0, 1, 1, 1, 0, 0]] * 2, dtype=torch.float64)
    gone = rationale_masks(texts, tied, (0.5,))[:, 0]
    assert gone.tolist() == [[False, True, True, True, False, False]] * 2
    wide = widened(texts, 3)
    flat = torch.zeros(wide.ids.shape, dtype=torch.float64)
    both = rationale_masks(wide, flat, (0.5,))[:, 0, :6]
    assert torch.equal(both, rationale_masks(texts, flat[:, :6], (0.5,))[:, 0])
    assert torch.equal(both[1:], rationale_masks(take_rows(texts, torch.tensor([1])), flat[1:, :6], (0.5,))[:, 0])


# --- the same as one text at a time


@pytest.mark.sweep(keep=1)
@REMOVAL
@PAIR
@MODEL
def test_the_result_equals_erasing_one_text_at_a_time(encoder, pair, removal):
    model, texts = cached_classifier(encoder, pair), batch(split([*PATTERNS, "w", "ww"], pair))
    expected = slowly(model, texts, removal, (0.0, *SHARES[1:], 1.0))
    for most in (20, 1 << 13):
        result = erased_output(
            model, widened(texts, 2), removal=removal, shares=(0.0, *SHARES[1:], 1.0), max_tokens=most
        )
        for result_of_one, one_expected in zip(result, expected, strict=True):
            assert_close(result_of_one, one_expected)


@pytest.mark.sweep(keep=1)
@MODEL
def test_in_single_precision_too(encoder):
    model, texts = classifier(encoder, dtype=torch.float32), batch(split(PATTERNS))
    for result, expected in zip(erased_output(model, texts), slowly(model, texts, "delete", SHARES), strict=True):
        torch.testing.assert_close(result, expected, rtol=0, atol=1e-6)


@pytest.mark.sweep
@REMOVAL
@PAIR
def test_neither_the_other_texts_nor_their_order_nor_padding_matter(removal, pair):
    model, data = cached_classifier("bilstm", pair), split(PATTERNS, pair)
    together = erased_output(model, batch(data), removal=removal)
    turned = erased_output(model, batch(data, [*range(len(data))][::-1]), removal=removal)
    for row in range(len(data)):
        alone = erased_output(model, widened(batch(data, [row]), 2), removal=removal)
        for i in range(2):
            assert_close(alone[i][0], together[i][row])
            assert_close(turned[i][len(data) - 1 - row], together[i][row])


def test_shares_come_in_the_requested_order_each_as_if_it_were_alone():
    model, texts = cached_classifier(), batch(split(PATTERNS))
    result = erased_output(model, texts, shares=(0.5, 0.01, 0.2))
    for i, share in enumerate((0.5, 0.01, 0.2)):
        for half, single in zip(result, erased_output(model, texts, shares=(share,)), strict=True):
            assert half.shape == (len(PATTERNS), 3, CLASSES)
            assert_close(half[:, i], single[:, 0])
    assert SHARES == (0.01, 0.05, 0.1, 0.2, 0.5)


# --- how


def shortened(data: Data, lost: list[set[int]]) -> Data:
    """The split as it is when it was built without these tokens."""
    kept = [
        [
            place
            for place in range(data.text.starts[i], data.text.starts[i + 1])
            if place - data.text.starts[i] not in out
        ]
        for i, out in enumerate(lost)
    ]
    flat = np.array([place for row in kept for place in row], np.int64)
    text = TokenArray(
        data.text.ids[flat], data.text.words[flat], row_starts(np.array([*map(len, kept)], np.int64)), data.text.cut
    )
    return replace(data, text=text)


@PAIR
@MODEL
def test_deleted_is_the_batch_of_the_shortened_texts(encoder, pair):
    data = split(PATTERNS, pair)
    texts = batch(data)
    out = texts.mask & (heavy(texts) > 0)
    lost = [set(row.nonzero().flatten().tolist()) for row in out]
    assert sum(map(len, lost)) > 8
    result, expected = remove_words(texts, out), batch(shortened(data, lost))
    expected = widened(expected, texts.ids.shape[1] - expected.ids.shape[1])
    for name in ("ids", "present", "mask", "index", "label"):
        assert getattr(result, name).equal(getattr(expected, name)), name
    assert result.question_ids is texts.question_ids
    model = cached_classifier(encoder, pair)
    narrow = batch(shortened(data, lost))
    assert_close(observe(model, result).probs, observe(model, narrow).probs)
    assert_close(observe(model, result).weights[:, : narrow.ids.shape[1]], observe(model, narrow).weights)


def test_nothing_gone_is_the_same_batch_and_the_batch_given_is_left_alone():
    texts = widened(batch(split(PATTERNS)), 2)
    ids = texts.ids.clone()
    result = remove_words(texts, torch.zeros_like(texts.mask))
    for name in ("ids", "present", "mask"):
        assert getattr(result, name).equal(getattr(texts, name))
    remove_words(texts, texts.mask)
    assert texts.ids.equal(ids)


@MODEL
def test_erased_everything_leaves_the_special_tokens_and_kept_everything_leaves_the_text(encoder):
    model, data = cached_classifier(encoder), split(PATTERNS)
    texts = batch(data)
    without, alone = erased_output(model, texts, shares=(1.0,))
    bare = shortened(data, [set(row.nonzero().flatten().tolist()) for row in texts.mask])
    assert_close(without[:, 0], observe(model, batch(bare)).probs)
    assert alone[:, 0].equal(observe(model, texts).probs)


@pytest.mark.parametrize("encoder", ["rnn", "gru", "bilstm", "cnn", "average"])
def test_a_text_of_which_nothing_is_left_is_predicted_by_the_bias(encoder):
    model, texts = cached_classifier(encoder), batch(split(["www", "w"]))
    without, _ = erased_output(model, texts, shares=(1.0,))
    bias = model.decoder.output.bias.detach().softmax(-1)
    assert_close(without[:, 0], bias.expand(2, -1))


@MODEL
def test_pad_and_zero_keep_the_places(encoder):
    """By hand: the id 0, the vector 0, under the old mask.  A word model's padding has the vector 0; a BERT's not."""
    model, texts = classifier(encoder), batch(split(PATTERNS))
    if encoder == "transformer":
        model.encoder.vectors.data[0] = model.encoder.vectors.data[1]  # pre-trained ones are not 0
    half = torch.zeros_like(texts.mask)
    for row in range(len(texts)):
        words = ordered(texts, row)
        half[row, words[: ceil(len(words) / 2)]] = True
    pad = observe(model, replace(texts, ids=texts.ids.masked_fill(half, 0))).probs
    zero = observe(model, texts, model.embed(texts).detach() * ~half.unsqueeze(-1)).probs
    results = {
        how: erased_output(model, texts, shares=(0.5,), removal=how)[0][:, 0] for how in ("delete", "pad", "zero")
    }
    assert_close(results["pad"], pad)
    assert_close(results["zero"], zero)
    assert torch.allclose(pad, zero) == (encoder != "transformer")
    assert not torch.allclose(zero, results["delete"])


def test_padding_is_the_models_own_padding():
    model, texts = classifier("bilstm"), batch(split(PATTERNS))
    model.padding = 1
    expected = slowly(model, texts, "pad", (0.5,))
    assert_close(erased_output(model, texts, shares=(0.5,), removal="pad")[0], expected[0])
    model.padding = 0
    assert not torch.allclose(erased_output(model, texts, shares=(0.5,), removal="pad")[0], expected[0])


# --- no more than is needed


def read_by(model: Classifier, work: Callable[[], object]) -> list[tuple[list[int], ...]]:
    """Every text that the model reads, as the ids of its tokens and of its question's."""
    with spied(model) as seen:
        work()
    results = []
    for inputs, _ in seen:
        rows = [row[there].tolist() for row, there in zip(inputs.ids, inputs.present, strict=True)]
        asks = [[] for _ in rows]
        if inputs.question_ids is not None and inputs.question_present is not None:
            asks = [
                row[there].tolist() for row, there in zip(inputs.question_ids, inputs.question_present, strict=True)
            ]
        results.extend(zip(rows, asks, strict=True))
    return results


def test_sizes_that_come_to_the_same_are_read_once_and_the_whole_text_never():
    """⌈q·n⌉ of 10 words: 1, 1, 1, 2, 5; of 2 words: 1 five times.  Without or alone: 6 and 2 texts; of 1 word one."""
    model, texts = cached_classifier(), distinct_words([10, 2, 1])
    clean = observe(model, texts).probs
    assert len(read_by(model, lambda: erase_words(model, texts, clean, heavy(texts)))) == 6 + 2 + 1


@PAIR
def test_what_reads_the_same_is_read_once_whichever_text_it_comes_from(pair):
    """Two texts of the same two words, and one in which they come twice: of all three one word or the other is left."""
    model = cached_classifier("bilstm", pair)
    ids = torch.tensor([[5, 6, 0, 0], [5, 6, 0, 0], [5, 6, 5, 6]])
    question = {"question_ids": torch.tensor([[7], [8], [7]]), "question_present": torch.ones(3, 1, dtype=torch.bool)}
    texts = Batch(ids, ids > 0, ids > 0, torch.arange(3), **(question if pair else {}))
    weights = torch.tensor([[2.0, 1, 0, 0], [1, 2, 0, 0], [4, 1, 3, 2]])
    clean = observe(model, texts).probs
    result = read_by(model, lambda: erase_words(model, texts, clean, weights, Erasure((0.5,))))
    pairs = [([5], [7]), ([6], [7]), ([5], [8]), ([6], [8]), ([5, 5], [7]), ([6, 6], [7])]
    expected = pairs if pair else [(text, []) for text in ([5], [6], [5, 5], [6, 6])]
    assert sorted(result) == sorted(expected)


def test_a_special_token_is_another_than_the_word_of_its_id():
    ids = torch.tensor([[5, 6], [5, 6], [6, 5], [5, 6], [5, 0], [0, 5]])
    mask = torch.tensor([[1, 1], [0, 1], [1, 1], [1, 1], [1, 0], [0, 1]]).bool()
    first, kind = distinct_texts(Batch(ids, ids > 0, mask, torch.arange(6)))
    assert kind.unique().numel() == 5  # that padding comes last is taken for granted
    assert kind[0] == kind[3]
    assert first[kind].tolist() == [0, 1, 2, 0, 4, 5]


def test_without_erasure_the_earlier_output_is_used_and_no_pass_runs():
    model, texts = cached_classifier(), batch(split(PATTERNS))
    clean = torch.rand(len(texts), CLASSES, dtype=torch.float64)
    with spied(model) as seen:
        without, _ = erase_words(model, texts, clean, heavy(texts), Erasure((0.0,)))
        _, alone = erase_words(model, texts, clean, heavy(texts), Erasure((1.0,)))
    assert without[:, 0].equal(clean)
    assert alone[:, 0].equal(clean)
    calls = [inputs for inputs, _ in seen]
    nothing_left = {tuple(row[there].tolist()) for b in calls for row, there in zip(b.ids, b.mask, strict=True)}
    assert nothing_left == {()}


@PAIR
def test_no_forward_pass_has_more_tokens_than_allowed_or_is_mostly_padding(pair):
    model, texts = cached_classifier("bilstm", pair), batch(split(PATTERNS * 2, pair))
    clean = observe(model, texts).probs
    asks = max(map(len, QUESTIONS)) if pair else 0
    longest = max(map(len, PATTERNS)) + asks
    many = []
    for most in (longest, 2 * longest, 1 << 13):
        with spied(model) as seen:
            erase_words(model, texts, clean, heavy(texts), Erasure(max_tokens=most))
        for inputs, _ in seen:
            width = inputs.ids.shape[1] + asks
            assert len(inputs) * width <= most
            lengths = inputs.present.sum(-1).clamp_min(1) + asks
            assert lengths.max() == width
            assert lengths.min() >= MIN_LENGTH_RATIO * width
        many.append(len(seen))
    assert many[0] > many[1] > many[2]


def test_each_text_that_is_read_names_the_row_it_comes_from():
    model, texts = cached_classifier(), replace(batch(split(PATTERNS)), index=torch.tensor([7, 3, 9, 4, 1, 8]))
    clean = observe(model, texts).probs
    with spied(model) as seen:
        erase_words(model, texts, clean, heavy(texts))
    for inputs, _ in seen:
        for row, there, index in zip(inputs.ids, inputs.present, inputs.index, strict=True):
            source = texts.ids[texts.index == index][0].tolist()
            assert set(row[there].tolist()) <= set(source)


# --- any model, and none but sensible wishes


def test_a_model_without_embeddings_can_be_probed():
    class Closed(Counting):
        capabilities: frozenset = frozenset()

        def embed(self, batch: Batch) -> Tensor:
            raise NotImplementedError

        def forward(self, batch: Batch, embedded: Tensor | None = None) -> TransformerOutput:
            assert embedded is None
            return Counting.forward(self, batch, Counting.embed(self, batch))

    texts = distinct_words([4, 9])
    for removal in ("delete", "pad"):
        for result, expected in zip(
            erased_output(Closed(11), texts, removal=removal),
            erased_output(Counting(11), texts, removal=removal),
            strict=True,
        ):
            assert result.equal(expected)


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"shares": (0.1, 1.2)}, r"1\.2"),
        ({"shares": (-0.1,)}, "between 0 and 1"),
        ({"max_tokens": 0}, "max_tokens is 0"),
    ],
)
def test_an_erasure_that_makes_no_sense_is_refused(wish, message):
    with pytest.raises(ValueError, match=message):
        Erasure(**wish)


# --- words of several pieces


def test_a_word_of_several_pieces_is_weighed_and_erased_whole():
    """Three words of 3, 1 and 1 pieces: the pieces of the first weigh 0.2 each, 0.6 together, the others 0.3 and 0.5.

    ⌈⅓ · 3⌉ = 1 word goes: the first, though each of its pieces weighs least.
    """
    texts = replace(distinct_words([5]), word_starts=torch.tensor([[True, False, False, True, True]]))
    weights = torch.tensor([[0.2, 0.2, 0.2, 0.3, 0.5]], dtype=torch.float64)
    gone = rationale_masks(texts, weights, (1 / 3, 2 / 3))
    assert gone[0].int().tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 0, 1], [0, 0, 0, 1, 1], [0, 0, 0, 1, 0]]
