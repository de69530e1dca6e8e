"""Which ids of a vocabulary are whole words, and the ids of their synonyms."""

import numpy as np
import pytest

from steadygaze.data.vocabulary_lexicon import vocabulary_lexicon


def table_of(vocabulary, synonyms, most=2):
    """word -> its synonyms, by the ids of the table."""
    known = vocabulary_lexicon(vocabulary, "pieces")
    table, count = known.table(synonyms, most)
    assert table.shape == (len(vocabulary), most)
    assert (table.dtype, count.dtype) == (np.int64, np.int64)
    return {vocabulary[i]: [vocabulary[k] for k in table[i, :n]] for i, n in enumerate(count.tolist()) if n}


def test_of_the_synonyms_those_in_the_vocabulary_count_the_closest_first():
    """`splendid` is not in the vocabulary; no word is its own synonym; at most two are kept."""
    vocabulary = ["<pad>", "<unk>", "<s>", "</s>", "nice", "good", "fine", "bad"]
    synonyms = {"good": ["splendid", "good", "fine", "nice", "bad"], "bad": ["splendid"], "film": ["bad"]}
    assert table_of(vocabulary, synonyms) == {"good": ["fine", "nice"]}
    assert table_of(vocabulary, synonyms, most=3) == {"good": ["fine", "nice", "bad"]}


@pytest.mark.parametrize(
    ("vocabulary", "continues", "names"),
    [
        (["<pad>", "good", "qqq", "don't"], [], ["<pad>", "good", "qqq", "don't"]),
        (["[PAD]", "good", "##ness", "##"], ["##ness", "##"], ["[PAD]", "good", "##ness", "##"]),
        (["<s>", "Ġgood", "ness", "Ġ"], ["<s>", "ness"], ["<s>", "good", "ness", ""]),
        (["<s>", "▁good", "ness"], ["<s>", "ness"], ["<s>", "good", "ness"]),
    ],
    ids=["words", "wordpiece", "byte-level", "sentence-piece"],
)
def test_a_vocabulary_shows_which_subwords_continue_a_word(vocabulary, continues, names):
    known = vocabulary_lexicon(vocabulary, "pieces")
    assert [piece for piece, goes_on in zip(vocabulary, known.continues, strict=True) if goes_on] == continues
    assert known.names == names
    assert [name for name, word in zip(names, known.words, strict=True) if word] == [n for n in names if n.isalpha()]


def test_a_hash_among_words_is_no_mark_of_a_piece():
    assert not vocabulary_lexicon(["<pad>", "##", "good"], "words").continues.any()


def test_words_are_whole_whatever_they_look_like_and_a_rare_letter_is_no_mark():
    for odd in ("▁▁", "Ġ", "##x"):
        assert not vocabulary_lexicon([odd, *map(str, range(50))], "words").continues.any()
        assert not vocabulary_lexicon([odd, *map(str, range(50))], "pieces").continues.any()


def test_a_subword_that_continues_a_word_is_neither_substituted_nor_inserted():
    """`ness` stands in the vocabulary twice: as a word and as what goes on with one."""
    synonyms = {"good": ["ness", "fine"], "ness": ["good"], "ful": ["good"]}
    vocabulary = ["<s>", "Ġgood", "ness", "Ġness", "Ġfine", "ful"]
    assert table_of(vocabulary, synonyms) == {"Ġgood": ["Ġness", "Ġfine"], "Ġness": ["Ġgood"]}
    pieces = ["[PAD]", "good", "##ness", "fine", "##ful"]
    assert table_of(pieces, synonyms) == {"good": ["fine"]}


def test_special_tokens_are_known_by_how_they_are_written():
    special = ["<pad>", "<unk>", "<s>", "</s>", "<mask>", "<extra_id_0>"]
    special += ["[CLS]", "[SEP]", "[PAD]", "[MASK]", "[unused7]"]
    plain = ["good", "<", ">", "[", "]", "##ing", "Ġgood", "▁good", "n't", ".", "<s", "s]", "qqq", "<>", "[]"]
    result = vocabulary_lexicon([*special, *plain], "pieces").special
    assert result.tolist() == [True] * len(special) + [False] * len(plain)
