"""Words in each other's place: only whole words that have a synonym, drawn by text and place alone."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import pad

from steadygaze.core.random_key import RandomKey
from steadygaze.perturbations import word_substitution
from steadygaze.perturbations.word_substitution import (
    Synonyms,
    nearest_words,
    substitute_some_words,
    substitute_words,
    without_synonyms,
)

SIZE = 12
START, END, LONER, PIECE = 1, 2, 9, 10
"""0 is padding, 1 and 2 are special, 9 has no synonym, 10 continues the word before it (and has a synonym: a trap)."""
OTHERS = {3: [4], 4: [3, 5], 5: [4, 6, 7], 6: [5], 7: [8, 5, 3], 8: [7], PIECE: [11], START: [5], END: [6]}
"""Special tokens have synonyms here only so that a test can see that their mask alone protects them."""


def synonyms() -> Synonyms:
    """Entries beyond a word's count are a special token, which is never drawn."""
    table, count = torch.full((SIZE, 3), START), torch.zeros(SIZE, dtype=torch.long)
    for word, others in OTHERS.items():
        count[word] = len(others)
        table[word, : len(others)] = torch.tensor(others)
    return Synonyms(table, count, torch.arange(SIZE) == PIECE)


def text(*rows: list[int]) -> tuple[Tensor, Tensor]:
    """Padded ids, and a mask that is False on padding and special tokens."""
    width = max(map(len, rows))
    ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])
    return ids, ids > END


TEXT = [START, 3, 5, 7, PIECE, 4, LONER, 8, END]
FREE = [False, True, True, False, False, True, False, True, False]
rows_of_ids = st.lists(st.lists(st.integers(1, SIZE - 1), min_size=1, max_size=9), min_size=1, max_size=4)


# --- which words may be swapped


def test_swappable_is_every_whole_word_that_has_a_synonym() -> None:
    """7 is continued by a piece, 9 has no synonym, the special tokens are not in the mask."""
    assert synonyms().swappable(*text(TEXT)).tolist() == [FREE]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([3], [True]),
        ([PIECE], [False]),
        ([3, PIECE], [False, False]),
        ([PIECE, 3], [False, True]),  # the first token is not before itself: nothing wraps around
        ([3, PIECE, PIECE, 3], [False, False, False, True]),
        ([LONER, 3, END], [False, True, False]),
    ],
)
def test_a_word_of_several_pieces_is_not_swappable(row: list[int], expected: list[bool]) -> None:
    assert synonyms().swappable(*text(row)).tolist() == [expected]


def test_a_piece_outside_the_mask_continues_nothing() -> None:
    ids = torch.tensor([[3, PIECE]])
    assert synonyms().swappable(ids, torch.tensor([[True, False]])).tolist() == [[True, False]]


def test_tables_that_speak_of_different_vocabularies_are_refused() -> None:
    right = synonyms()
    for wrong in (
        (right.table[:-1], right.count, right.continues),
        (right.table, right.count[:-1], right.continues),
        (right.table, right.count, right.continues[:-1]),
    ):
        with pytest.raises(ValueError, match="table, count and continues must have the same length"):
            Synonyms(*wrong)


def test_another_device_gets_the_same_table() -> None:
    right = synonyms()
    for whole in (None, torch.arange(SIZE) > END):
        ours = Synonyms(right.table, right.count, right.continues, whole, "vectors")
        moved = ours.to("cpu")
        for name in ("table", "count", "continues"):
            assert getattr(moved, name).equal(getattr(ours, name))
        assert (moved.words is None) if whole is None else moved.words.equal(whole)
        assert moved.origin == "vectors"


def test_nobody_knows_a_synonym_so_nothing_is_swapped() -> None:
    ids, mask = text(TEXT)
    nobody = without_synonyms(SIZE, torch.arange(SIZE) == PIECE, torch.arange(SIZE) > END)
    assert nobody.origin == "none"
    assert not nobody.swappable(ids, mask).any()
    assert substitute_words(ids, mask, nobody, RandomKey(0), torch.tensor([0]), share=1.0).equal(ids)
    assert substitute_some_words(ids, mask, nobody, RandomKey(0), torch.tensor([0]), number=9).equal(ids)


# --- swap


def test_with_a_share_of_nothing_nothing_is_swapped_and_with_all_every_free_word_is() -> None:
    ids, mask = text(TEXT)
    row = torch.tensor([4])
    assert substitute_words(ids, mask, synonyms(), RandomKey(0), row, share=0.0).equal(ids)
    changed = substitute_words(ids, mask, synonyms(), RandomKey(0), row, share=1.0)
    assert (changed != ids).tolist() == [FREE]
    assert changed[0, [1, 7]].tolist() == [4, 7]  # 3 and 8 have one synonym each


def test_swap_is_the_formula_written_out_word_by_word() -> None:
    """Word t of text r is swapped where u₁(r,t) < share, for synonym ⌊u₂(r,t)·count⌋."""
    ids, mask = text(TEXT, [5, 5, 5, 5], [7, 4])
    index, random_key, table = torch.tensor([8, 0, 5]), RandomKey(3), synonyms()
    whether, which = (random_key.child(side).uniform(index, ids.shape[1]).tolist() for side in (1, 2))
    free = table.swappable(ids, mask).tolist()
    expected = ids.tolist()
    for r, row in enumerate(expected):
        for t, word in enumerate(row):
            if free[r][t] and whether[r][t] < 0.5:
                row[t] = OTHERS[word][int(which[r][t] * len(OTHERS[word]))]
    result = substitute_words(ids, mask, table, random_key, index, share=0.5)
    assert result.tolist() == expected
    assert not result.equal(ids)


def test_words_and_synonyms_are_drawn_as_often_as_they_should_be() -> None:
    """40,000 words: a share of 0.3, σ = √(0.3·0.7/40,000) = 0.0023; each of three synonyms a third, σ = 0.0043."""
    ids = torch.full((1000, 40), 5)
    result = substitute_words(ids, torch.ones_like(ids).bool(), synonyms(), RandomKey(1), torch.arange(1000), share=0.3)
    changed = result[result != ids]
    assert len(changed) / ids.numel() == pytest.approx(0.3, abs=4 * 0.0023)
    for other in OTHERS[5]:
        assert float((changed == other).double().mean()) == pytest.approx(1 / 3, abs=4 * 0.0043)


@given(rows_of_ids, st.integers(0, 5), st.integers(0, 2**40), st.sampled_from(["share", "number"]))
def test_what_a_text_becomes_depends_on_no_padding_and_no_other_text(
    rows: list[list[int]], extra: int, key: int, how: str
) -> None:
    (ids, mask), index, random_key = text(*rows), torch.arange(len(rows)) * 3 + 1, RandomKey(key)

    def changed(ids: Tensor, mask: Tensor, index: Tensor) -> Tensor:
        if how == "share":
            return substitute_words(ids, mask, synonyms(), random_key, index, share=0.5)
        return substitute_some_words(ids, mask, synonyms(), random_key, index, number=2)

    result = changed(ids, mask, index)
    assert changed(pad(ids, (0, extra)), pad(mask, (0, extra)), index).equal(pad(result, (0, extra)))
    for r, row in enumerate(rows):
        alone = changed(*text(row), index[r : r + 1])
        assert alone[0].equal(result[r, : len(row)])


@given(rows_of_ids, st.integers(0, 2**40), st.floats(0, 1), st.integers(0, 12))
def test_only_swappable_words_change_and_only_into_their_synonyms(
    rows: list[list[int]], key: int, share: float, number: int
) -> None:
    (ids, mask), index = text(*rows), torch.arange(len(rows))
    before, free = ids.clone(), synonyms().swappable(ids, mask)
    some = substitute_words(ids, mask, synonyms(), RandomKey(key), index, share=share)
    few = substitute_some_words(ids, mask, synonyms(), RandomKey(key), index, number=number)
    assert ids.equal(before)
    for result in (some, few):
        assert not (result != ids)[~free].any()
        for old, new in zip(ids[result != ids].tolist(), result[result != ids].tolist(), strict=True):
            assert new in OTHERS[old]
            assert new > END
            assert new != PIECE
    assert (few != ids).sum(-1).equal(free.sum(-1).clamp_max(number))


def test_another_text_another_step_another_choice() -> None:
    ids, mask = text([5] * 30, [5] * 30)
    result = substitute_words(ids, mask, synonyms(), RandomKey(0), torch.tensor([0, 1]), share=0.5)
    later = substitute_words(ids, mask, synonyms(), RandomKey(0).child(1), torch.tensor([0, 1]), share=0.5)
    assert len({tuple(row.tolist()) for row in (*result, *later)}) == 4


# --- swap_some


def test_some_words_become_their_closest_synonym() -> None:
    """Of the free words 3, 5, 4, 8 the closest synonyms are 4, 4, 3, 7."""
    ids, mask = text(TEXT)
    row = torch.tensor([0])
    assert substitute_some_words(ids, mask, synonyms(), RandomKey(0), row, number=0).equal(ids)
    for number in (4, 5, 100):  # all, and more than there are
        result = substitute_some_words(ids, mask, synonyms(), RandomKey(0), row, number=number)
        assert result.tolist() == [[START, 4, 4, 7, PIECE, 3, LONER, 7, END]]


def test_the_words_with_the_smallest_lots_are_swapped() -> None:
    ids, mask = text([5] * 6, [5, LONER, 5, PIECE, 5, 5])
    index = torch.tensor([2, 7])
    lots = RandomKey(4).uniform(index, 6, dtype=torch.float64).tolist()
    free = [[0, 1, 2, 3, 4, 5], [0, 4, 5]]
    result = substitute_some_words(ids, mask, synonyms(), RandomKey(4), index, number=2)
    for r in range(2):
        expected = sorted(free[r], key=lambda t, r=r: lots[r][t])[:2]  # type: ignore[misc]
        assert (result[r] != ids[r]).nonzero().flatten().tolist() == sorted(expected)


def test_every_choice_of_words_is_as_likely_as_any_other() -> None:
    """12,000 texts, 6 choices of two words among four: a sixth each, σ = √(5/36/12,000) = 0.0034."""
    ids = torch.tensor([[3, 4, 5, 8]]).expand(12_000, 4)
    result = substitute_some_words(ids, ids > 0, synonyms(), RandomKey(0), torch.arange(12_000), number=2)
    pairs = (result != ids).double() @ torch.tensor([1.0, 2.0, 4.0, 8.0], dtype=torch.float64)
    shares = torch.unique(pairs, return_counts=True)[1] / 12_000
    assert len(shares) == 6
    assert (shares - 1 / 6).abs().max() < 4 * 0.0034


def test_texts_without_a_word_to_swap_stay_as_they_are() -> None:
    ids, mask = text([START, END], [LONER], [7, PIECE])
    for result in (
        substitute_words(ids, mask, synonyms(), RandomKey(0), torch.arange(3), share=1.0),
        substitute_some_words(ids, mask, synonyms(), RandomKey(0), torch.arange(3), number=3),
    ):
        assert result.equal(ids)


# --- nearest


def loop(vectors: Tensor, k: int, allowed: list[bool]) -> list[list[tuple[float, int]]]:
    """Every word's closest others, by the definition."""
    results = []
    for i, vector in enumerate(vectors.double()):
        cosines = [
            (float(vector @ other / vector.norm() / other.norm()), j)
            for j, other in enumerate(vectors.double())
            if j != i and allowed[j]
        ]
        results.append(sorted(cosines, reverse=True)[:k])
    return results


@pytest.mark.parametrize("block", [1, 40, 1 << 24])  # a word at a time; three, the last block shorter; all
@pytest.mark.parametrize("k", [1, 3, 12])
def test_nearest_is_what_a_loop_finds_in_blocks_of_any_size(
    block: int, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_substitution, "BLOCK", block)
    vectors = torch.randn(13, 4)
    allowed = torch.arange(13) % 5 != 2
    for chosen in (None, allowed):
        ids, cosines = nearest_words(vectors, k, chosen)
        assert ids.shape == cosines.shape == (13, k)
        expected = loop(vectors, k, [True] * 13 if chosen is None else chosen.tolist())
        for row, (result, values) in enumerate(zip(ids.tolist(), cosines.tolist(), strict=True)):
            real = len(expected[row])
            assert result[:real] == [j for _, j in expected[row]]
            assert values[:real] == pytest.approx([cosine for cosine, _ in expected[row]], abs=1e-6)
            assert values[real:] == [-torch.inf] * (k - real)


def test_nearest_worked_by_hand() -> None:
    """Angles 0°, 30°, 90°, 180°, whatever the lengths: cos 30° = √¾, cos 60° = ½, cos 150° = −√¾."""
    vectors = torch.tensor([[2.0, 0.0], [3**0.5 / 2, 0.5], [0.0, 7.0], [-1.0, 0.0]])
    ids, cosines = nearest_words(vectors, 2)
    assert ids.tolist() == [[1, 2], [0, 2], [1, 0], [2, 1]] or ids.tolist()[2] == [1, 3]  # 0° and 180° tie at 90°
    expected = [[0.75**0.5, 0.0], [0.75**0.5, 0.5], [0.5, 0.0], [0.0, -(0.75**0.5)]]
    torch.testing.assert_close(cosines, torch.tensor(expected), rtol=0, atol=1e-6)


def test_fewer_allowed_words_than_requested_and_fewer_words_than_requested() -> None:
    vectors = torch.randn(5, 3)
    ids, cosines = nearest_words(vectors, 4, torch.tensor([True, False, False, True, False]))
    assert cosines.isfinite().sum(-1).tolist() == [1, 2, 2, 1, 2]  # the two allowed have only each other
    assert (ids[0, 0], ids[3, 0]) == (3, 0)
    assert nearest_words(vectors, 9)[0].shape == (5, 5)
    assert nearest_words(vectors, 9)[1].isfinite().sum(-1).tolist() == [4] * 5


def test_nearest_neither_changes_the_vectors_nor_requires_gradients() -> None:
    vectors = torch.nn.Parameter(torch.randn(6, 3))
    before = vectors.detach().clone()
    _, cosines = nearest_words(vectors, 2)
    assert vectors.equal(before)
    assert not cosines.requires_grad
    for dtype in (torch.float64, torch.bfloat16):
        assert nearest_words(vectors.to(dtype), 2)[1].dtype == torch.float32


@given(st.permutations(range(7)))
def test_renaming_the_words_renames_their_neighbors(order: list[int]) -> None:
    vectors = torch.randn(7, 4, generator=torch.Generator().manual_seed(0))
    ids, cosines = nearest_words(vectors, 3)
    renamed, same = nearest_words(vectors[order], 3)
    place = torch.tensor(order)
    assert place[renamed].equal(ids[order])
    torch.testing.assert_close(same, cosines[order], rtol=0, atol=1e-6)
