"""A requested number of words is substituted by the closest synonym, or words are shuffled; a random key chooses."""

from dataclasses import replace

import pytest
import torch

from contract.tiny import VOCABULARY, batch, cached_classifier, littered, split, widened
from steadygaze.core.random_key import RandomKey, text_key
from steadygaze.perturbations.word_substitution import Synonyms, without_synonyms
from steadygaze.properties.probes.text_perturbations import observe, shuffle_words, substitute_synonyms

PATTERNS = ["s" + "w" * n + "s" for n in range(13)]


def table() -> Synonyms:
    """Of every even id the closest synonym is the next one, then 2; of odd ids there is none."""
    ids = torch.arange(VOCABULARY)
    closest = torch.stack([(ids + 1).clamp_max(VOCABULARY - 1), torch.full_like(ids, 2)], -1)
    even = (ids % 2 == 0) & (ids < VOCABULARY - 1)
    return Synonyms(closest, 2 * even.long(), torch.zeros(VOCABULARY, dtype=torch.bool))


@pytest.mark.parametrize("number", [0, 1, 3, 100])
def test_exactly_the_requested_or_possible_number_of_words_become_their_closest_synonym(number):
    texts = batch(split(PATTERNS))
    moved = substitute_synonyms(texts, table(), number, RandomKey(1))
    shown, many = moved.batch, moved.touched
    for row in range(len(texts)):
        free = sum(
            real and word % 2 == 0 and word < VOCABULARY - 1
            for word, real in zip(texts.ids[row].tolist(), texts.mask[row].tolist(), strict=True)
        )
        changed = [
            (old, new) for old, new in zip(texts.ids[row].tolist(), shown.ids[row].tolist(), strict=True) if old != new
        ]
        assert len(changed) == min(number, free) == many[row]
        assert all(new == old + 1 for old, new in changed)
    assert shown.mask is texts.mask
    assert shown.present is texts.present
    assert moved.embedded is None


def test_the_output_is_that_of_the_model_on_the_substituted_text():
    model, texts = cached_classifier(), batch(split(PATTERNS))
    everything = torch.where(table().swappable(texts.ids, texts.mask), texts.ids + 1, texts.ids)
    expected = observe(model, replace(texts, ids=everything))
    moved = substitute_synonyms(texts, table(), 100, RandomKey(1))
    seen = observe(model, moved.batch, moved.embedded)
    assert seen.weights.equal(expected.weights)
    assert seen.probs.equal(expected.probs)


def test_the_choice_of_words_depends_only_on_text_and_random_key():
    texts = batch(split(["w" * 12] * 3))
    same = replace(texts, ids=texts.ids[:1].expand(3, -1).contiguous())
    assert len(text_key(same).unique()) == 1
    shown = substitute_synonyms(same, table(), 2, RandomKey(1)).batch
    assert (shown.ids == shown.ids[0]).all()
    choices = {tuple(substitute_synonyms(same, table(), 2, RandomKey(key)).batch.ids[0].tolist()) for key in range(20)}
    assert len(choices) > 4


def test_without_synonyms_nothing_is_substituted():
    texts = batch(split(PATTERNS))
    nobody = without_synonyms(VOCABULARY, torch.zeros(VOCABULARY).bool(), torch.ones(VOCABULARY).bool())
    moved = substitute_synonyms(texts, nobody, 3, RandomKey(0))
    assert not moved.touched.any()
    assert moved.batch.ids.equal(texts.ids)


# --- all of them for each other


def test_shuffling_keeps_the_words_of_a_text_and_leaves_all_else_where_it_is():
    """Special tokens between the words too."""
    texts = batch(split([*PATTERNS, "wswwsw", "swwsswwwws", "ss"]))
    shown = shuffle_words(texts, RandomKey(1))
    for old, new, words in zip(texts.ids, shown.ids, texts.mask, strict=True):
        assert sorted(old[words].tolist()) == sorted(new[words].tolist())
        assert old[~words].equal(new[~words])
    assert (shown.ids != texts.ids).any(-1)[4:13].all()  # four words and more
    assert shown.mask is texts.mask
    assert shown.present is texts.present


def test_the_order_belongs_to_the_text_whatever_its_batch():
    data = split(PATTERNS)
    texts = batch(data)
    whole = shuffle_words(texts, RandomKey(1)).ids
    turned = list(reversed(range(len(PATTERNS))))
    assert shuffle_words(batch(data, turned), RandomKey(1)).ids.equal(whole[turned])
    for row in range(len(PATTERNS)):
        alone = shuffle_words(batch(data, [row]), RandomKey(1)).ids[0]
        assert alone.equal(whole[row, : len(alone)])
    assert shuffle_words(widened(texts, 3), RandomKey(1)).ids[:, : whole.shape[1]].equal(whole)
    assert shuffle_words(littered(texts), RandomKey(1)).ids[texts.present].equal(whole[texts.present])


@pytest.mark.slow
def test_every_order_of_three_words_comes_as_often_as_any_other():
    """Six orders of 900 draws, 150 each: 20.5 is what χ² of five exceeds once in a thousand."""
    text = batch(split(["swwws"]))
    text = replace(text, ids=torch.tensor([[9, 3, 4, 5, 9]]))
    drawn = [tuple(shuffle_words(text, RandomKey(key)).ids[0].tolist()) for key in range(900)]
    counts = torch.tensor([drawn.count(order) for order in set(drawn)])
    assert len(counts) == 6
    assert ((counts - 150).double().square() / 150).sum() < 20.5
