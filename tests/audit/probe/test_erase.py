"""The heaviest words erased: exactly ⌈q·n⌉ of each text, whatever its batch, and the text closes up behind them."""

from dataclasses import replace
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
import torch
from torch import Tensor

from contract.tiny import assert_close, batch, cached_classifier, classifier, split, widened
from steadygaze.audit.probe.erase import SHARES, deleted, without
from steadygaze.audit.probe.look import look
from steadygaze.batch import Data
from steadygaze.model import Classifier
from steadygaze.tokens.ragged import Ragged, starts_of
from steadygaze.types import Batch

PATTERNS = ["s" + "w" * n + "s" for n in (5, 0, 1, 12, 7, 2)]
REMOVAL = pytest.mark.parametrize("removal", ["delete", "pad", "zero"])
KEEP = pytest.mark.parametrize("keep", [False, True], ids=["erase", "keep"])
MODEL = pytest.mark.parametrize("encoder", ["bilstm", "cnn", "transformer"])
PAIR = pytest.mark.parametrize("pair", [False, True], ids=["single", "pair"])


def heavy(texts: Batch) -> Tensor:
    """A saliency of the text alone, without ties, and largest where there is no word.  (B,T)"""
    place = torch.arange(1, texts.ids.shape[1] + 1, dtype=torch.float64)
    return (texts.ids * 12.9898 + place * 78.233).sin().masked_fill(~texts.mask, 9.0)


def gone(model: Classifier, texts: Batch, *, removal: str = "delete", **asked: object) -> list[list[list[int]]]:
    """For each share and text the words that the model was not shown, as ids; from what reaches the encoder."""
    seen: list[list[list[int]]] = []
    right = model.encode

    def encode(given: Batch, embedded: Tensor | None = None) -> object:
        if removal == "delete":
            left = [row[there].tolist() for row, there in zip(given.ids, given.mask, strict=True)]
        else:
            lost = (embedded == 0).all(-1) if embedded is not None else given.ids == 0
            left = [row[there & ~no].tolist() for row, there, no in zip(texts.ids, texts.mask, lost, strict=True)]
        seen.append(
            [missing(row[there].tolist(), rest) for row, there, rest in zip(texts.ids, texts.mask, left, strict=True)]
        )
        return right(given, embedded)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "encode", encode)
        without(model, texts, heavy(texts), removal=removal, **asked)  # type: ignore[arg-type]
    return seen


def missing(full: list[int], rest: list[int]) -> list[int]:
    """What must be taken out of one list to get the other, in its order."""
    full, lost = list(full), []
    for one in rest:
        while full[0] != one:
            lost.append(full.pop(0))
        full.pop(0)
    return lost + full


def distinct(lengths: list[int]) -> Batch:
    """Texts in which no word comes twice, so that ids tell which went."""
    width = max(lengths)
    ids = torch.stack([torch.from_numpy(np.random.default_rng(n).permutation(width)) + 2 for n in lengths])
    there = torch.arange(width) < torch.tensor(lengths).unsqueeze(-1)
    return Batch(ids.masked_fill(~there, 0), there, there, torch.arange(len(lengths)))


# --- how many, and which


@pytest.mark.parametrize("shares", [SHARES, (0.0, 0.07, 0.3, 0.55, 1.0)], ids=["eraser", "others"])
@KEEP
@REMOVAL
def test_exactly_so_many_of_the_heaviest_words_of_each_text(removal, keep, shares):
    """⌈q·n⌉ by fractions.  In singles 0.3·50 is 15.000001, in doubles 0.07·100 is 7.000000000000001: one too many."""
    model, texts = Counted(), distinct([*range(1, 61), 100, 200])
    saliency = heavy(texts)
    found = gone(model, texts, removal=removal, keep=keep, shares=shares)
    assert len(found) == len(shares)
    for share, rows in zip(shares, found, strict=True):
        for row, lost in enumerate(rows):
            words = texts.ids[row, texts.mask[row]]
            many = ceil(Fraction(str(share)) * len(words))
            order = words[saliency[row, texts.mask[row]].argsort(descending=True)].tolist()
            assert set(lost) == set(order[many:] if keep else order[:many])
            assert len(lost) == (len(words) - many if keep else many)


class Counted(torch.nn.Module):
    """A model of which only what it is shown is of interest."""

    def embed(self, batch: Batch) -> Tensor:
        return batch.ids.double().unsqueeze(-1)

    def encode(self, batch: Batch, embedded: Tensor | None = None) -> Batch:
        return batch

    def score(self, encoded: Batch) -> Tensor:
        return encoded.ids.double()

    def attend(self, scores: Tensor, mask: Tensor) -> Tensor:
        return mask.double()

    def decode(self, encoded: Batch, weights: Tensor) -> Tensor:
        return weights[:, :2]


@REMOVAL
@PAIR
def test_which_words_go_does_not_depend_on_the_other_texts(removal, pair):
    model, data = cached_classifier("bilstm", pair), split(PATTERNS, pair)
    together = gone(model, batch(data), removal=removal)
    for row in range(len(data)):
        alone = gone(model, widened(batch(data, [row]), 2), removal=removal)
        assert [[share[row]] for share in together] == alone
    assert any(share[3] for share in together)


@KEEP
def test_of_equals_the_earlier_is_heavier_and_what_is_no_word_is_never_taken(keep):
    texts = distinct([6, 4])
    texts = replace(texts, mask=texts.mask & (torch.arange(6) > 0))  # the first is special
    seen: list[Batch] = []
    model = Counted()
    model.encode = lambda given, embedded=None: seen.append(given) or given  # type: ignore[method-assign]
    for level in (0.0, -5.0, -torch.inf):
        seen.clear()
        flat = torch.full((2, 6), level, dtype=torch.float64).masked_fill(~texts.mask, 7.0)
        without(model, texts, flat, (0.5,), keep=keep)  # type: ignore[arg-type]
        first, second = texts.ids.tolist()  # of 5 words 3, of 3 words 2
        rest = [first[:4], second[:3]] if keep else [[first[0], *first[4:]], [second[0], *second[3:4]]]
        assert [row[there].tolist() for row, there in zip(seen[0].ids, seen[0].present, strict=True)] == rest


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
    text = Ragged(
        data.text.ids[flat], data.text.words[flat], starts_of(np.array([*map(len, kept)], np.int64)), data.text.cut
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
    found, expected = deleted(texts, out), batch(shortened(data, lost))
    expected = widened(expected, texts.ids.shape[1] - expected.ids.shape[1])
    for name in ("ids", "present", "mask", "index", "label"):
        assert getattr(found, name).equal(getattr(expected, name)), name
    assert found.question_ids is texts.question_ids
    model = cached_classifier(encoder, pair)
    narrow = batch(shortened(data, lost))
    assert_close(look(model, found).probs, look(model, narrow).probs)
    assert_close(look(model, found).weights[:, : narrow.ids.shape[1]], look(model, narrow).weights)


def test_nothing_gone_is_the_same_batch_and_the_batch_given_is_left_alone():
    texts = widened(batch(split(PATTERNS)), 2)
    ids = texts.ids.clone()
    found = deleted(texts, torch.zeros_like(texts.mask))
    for name in ("ids", "present", "mask"):
        assert getattr(found, name).equal(getattr(texts, name))
    deleted(texts, texts.mask)
    assert texts.ids.equal(ids)


@MODEL
def test_erased_everything_leaves_the_special_tokens_and_kept_everything_leaves_the_text(encoder):
    model, data = cached_classifier(encoder), split(PATTERNS)
    texts = batch(data)
    found = without(model, texts, heavy(texts), (1.0,))
    bare = shortened(data, [set(row.nonzero().flatten().tolist()) for row in texts.mask])
    assert_close(found[:, 0], look(model, batch(bare)).probs)
    assert_close(without(model, texts, heavy(texts), (1.0,), keep=True)[:, 0], look(model, texts).probs)


def test_a_text_of_which_nothing_is_left_is_predicted_by_the_bias():
    model, texts = cached_classifier("bilstm"), batch(split(["www", "w"]))
    found = without(model, texts, heavy(texts), (1.0,))
    bias = model.decoder.output.bias.detach().softmax(-1)
    assert_close(found[:, 0], bias.expand(2, -1))


@MODEL
def test_pad_and_zero_keep_the_places(encoder):
    """By hand: the id 0, the vector 0, under the old mask.  A word model's padding has the vector 0; a BERT's not."""
    model, texts = classifier(encoder), batch(split(PATTERNS))
    if encoder == "transformer":
        model.encoder.vectors.data[0] = model.encoder.vectors.data[1]  # pre-trained ones are not 0
    half = torch.zeros_like(texts.mask)
    for row, saliency in enumerate(heavy(texts)):
        words = texts.mask[row].nonzero().flatten()
        half[row, words[saliency[words].argsort(descending=True)][: ceil(len(words) / 2)]] = True
    pad = look(model, replace(texts, ids=texts.ids.masked_fill(half, 0))).probs
    zero = look(model, texts, model.embed(texts).detach() * ~half.unsqueeze(-1)).probs
    assert_close(without(model, texts, heavy(texts), (0.5,), removal="pad")[:, 0], pad)
    assert_close(without(model, texts, heavy(texts), (0.5,), removal="zero")[:, 0], zero)
    assert torch.allclose(pad, zero) == (encoder != "transformer")
    assert not torch.allclose(zero, without(model, texts, heavy(texts), (0.5,))[:, 0])


def test_shares_come_in_the_order_asked_for_each_as_if_asked_alone():
    model, texts = cached_classifier(), batch(split(PATTERNS))
    found = without(model, texts, heavy(texts), (0.5, 0.01, 0.2))
    assert found.shape == (len(PATTERNS), 3, 3)
    for i, share in enumerate((0.5, 0.01, 0.2)):
        assert found[:, i].equal(without(model, texts, heavy(texts), (share,))[:, 0])
    assert SHARES == (0.01, 0.05, 0.1, 0.2, 0.5)
