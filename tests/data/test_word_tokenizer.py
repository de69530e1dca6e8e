"""The word vocabulary: how text is split, that spans are exact on any text, how ids are given."""

import json
import unicodedata

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from steadygaze.data.word_segmentation import LETTER
from steadygaze.data.word_tokenizer import build_word_tokenizer, document_frequency
from steadygaze.estimator.model_folder import read_tokenizer

TOKENIZER = build_word_tokenizer(["a plain text , with do n't and it 's and 1 number"])

ANYTHING = st.text(st.characters(), max_size=40)  # lone surrogates too
AWKWARD = st.lists(
    st.sampled_from(
        [
            *"aBns td'’.,:-@#!_/ =09…½²¨ßﬁ中٣",
            *["n't", "'s", "'ll", "http://", "www.", "<s>", "e", "İ", "I", "가", "ᄀ", "ᅡ", "ᆨ", "\u0958", "א"],
            *["\u0301", "\u0307", "\u0323", "\u0338", "\u0327", "\u0345", "\u05b7", "\u0344"],  # marks
            *["😀", "👨", "🏽", "🇩", "🏴", "\U000e0067", "\u200d", "\ufe0f", "\u20e3"],
            *["\n", "\x1c", "\u0085", "\u00a0", "\u2029"],  # white space
            *["\ud800", "\udfff", "\x00", "\u200b", "\u200f", "\u00ad", "\ufffd", "\ufeff"],
        ]
    ),
    max_size=25,
).map("".join)
TEXT = ANYTHING | AWKWARD


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in TOKENIZER.place([text]).spans[0]]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("A gorgeous, witty movie.", "A|gorgeous|,|witty|movie|."),
        ("don't can't won't DON'T", "do|n't|ca|n't|wo|n't|DO|N'T"),
        ("it's we'll I'm they're I've he'd", "it|'s|we|'ll|I|'m|they|'re|I|'ve|he|'d"),
        ("don’t it’s", "do|n’t|it|’s"),
        ("couldn't've they'd've", "could|n't|'ve|they|'d|'ve"),
        ("does n't it 's we 'll", "does|n't|it|'s|we|'ll"),
        ("o'clock rock'n'roll O'Brien's", "o'clock|rock'n'roll|O'Brien|'s"),
        ("'so' he said 'sure'", "'|so|'|he|said|'|sure|'"),
        ("well-made -- state-of-the-art", "well|-|made|--|state|-|of|-|the|-|art"),
        ("wait... what?!! no…", "wait|...|what|?|!!|no|…"),
        ("1,000.50 at 10:30, 5% of $3.", "1,000.50|at|10:30|,|5|%|of|$|3|."),
        ("the U.S. and e.g. Mr. X", "the|U.S.|and|e.g.|Mr|.|X"),
        ("@bob: see #win (http://t.co/a1?b=c).", "@|bob|:|see|#|win|(|http://t.co/a1?b=c|)|."),
        ("www.example.org, a@b.com #1", "www.example.org|,|a|@|b|.|com|#|1"),
        ("#MeToo#angry ##x #don't @_ann_ #日本 #😀 # @", "#|MeToo|#|angry|##|x|#|do|n't|@|_ann_|#|日本|#|😀|#|@"),
        (
            ":-) <3 c# 3-4 1,000.50 rock’n’roll ‘so’ well‑made",
            ":|-|)|<|3|c|#|3|-|4|1,000.50|rock’n’roll|‘|so|’|well|‑|made",
        ),
        ("👨‍👩‍👧‍👦👍🏽🇩🇪🇫🇷❤️!", "👨‍👩‍👧‍👦|👍🏽|🇩🇪|🇫🇷|❤️|!"),
        ("😀😀 ok😀", "😀|😀|ok|😀"),
        ("<s> <unk> </s>", "<|s|>|<|unk|>|<|/|s|>"),
        ("می\u200cخواهم שָׁלוֹם", "می\u200cخواهم|שָׁלוֹם"),
        ("İstanbul straße ﬁn", "İstanbul|straße|ﬁn"),
        ("cafe\u0301!", "cafe\u0301|!"),
        ("a\ud800b \x00", "a|\ud800|b|\x00"),
        (" \t\n\u00a0\x1c ", ""),
    ],
)
def test_a_text_is_split_as_the_module_documents(text, tokens):
    assert split(text) == (tokens.split("|") if tokens else [])


def test_hashtags_contractions_and_hyphens_have_the_ids_of_their_words():
    tokenizer = build_word_tokenizer(["angry do n't well - made # @"])
    assert 1 not in tokenizer.encode(["#Angry @angry don’t well-made #well-made @don't"]).ids


def test_a_saved_tokenizer_keeps_the_split_it_was_saved_with():
    """A pattern that keeps #tag and @user whole."""
    document = json.loads(build_word_tokenizer(["angry"]).to_json())
    pattern = document["pre_tokenizer"]["pattern"]
    pattern["Regex"] = r"[@#][\p{L}\p{N}_]+|" + pattern["Regex"]
    document["model"]["vocab"]["#angry"] = 5
    old = read_tokenizer(json.dumps(document), kind="words", max_length=9)
    assert old.encode(["so #Angry"]).ids.tolist() == [2, 1, 5, 3]
    assert old.place(["so #Angry"]).spans == [[(0, 2), (3, 9)]]


@given(TEXT)
def test_every_character_but_white_space_is_in_exactly_one_span(text):
    assume("\u200b" not in text or not LETTER.search(text))
    covered = np.zeros(len(text), int)
    last = 0
    for start, end in TOKENIZER.place([text]).spans[0]:
        assert last <= start < end <= len(text)
        covered[start:end] += 1
        last = end
    assert covered.tolist() == [int(not character.isspace()) for character in text]


@given(TEXT)
def test_a_token_cut_out_of_its_text_is_the_same_single_token_again(text):
    assume(len(LETTER.findall(text)) < 2)
    tokens = split(text)
    knows_all = build_word_tokenizer([text])
    assert [split(token) for token in tokens] == [[token] for token in tokens]
    assert [knows_all.encode([token]).ids[1] for token in tokens] == knows_all.encode([text]).ids[1:-1].tolist()


@given(st.lists(TEXT, max_size=6))
def test_encode_and_place_agree_and_a_batch_is_its_texts_one_by_one(texts):
    tokenizer = build_word_tokenizer(texts[::2])
    together, placed = tokenizer.encode(texts), tokenizer.place(texts)
    assert together.ids.tolist() == placed.ragged.ids.tolist()
    assert together.lengths.tolist() == [len(spans) + 2 for spans in placed.spans]
    for row, text in enumerate(texts):
        alone = tokenizer.place([text])
        assert alone.ragged.ids.tolist() == together.select([row]).ids.tolist()
        assert (alone.spans[0], alone.groups[0]) == (placed.spans[row], placed.groups[row])


@given(TEXT)
def test_canonically_equal_texts_have_equal_ids(text):
    text = "".join(character for character in text if character in "’" or unicodedata.category(character) != "Cn")
    vocabulary = build_word_tokenizer([text])
    forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD")]
    assert vocabulary.encode([forms[0]]).ids.tolist() == vocabulary.encode([forms[1]]).ids.tolist()
    assert 1 not in vocabulary.encode(forms).ids


@given(TEXT)
def test_a_token_has_the_id_of_qqq_exactly_when_a_digit_is_in_it(text):
    ids = TOKENIZER.encode([text]).ids[1:-1].tolist()
    number = TOKENIZER.vocabulary.index("qqq")
    for token, index in zip(split(text), ids, strict=True):
        assert (index == number) == (any(character.isdecimal() for character in token) or token.lower() == "qqq")


def test_ids_follow_document_frequency_then_the_alphabet():
    tokenizer = build_word_tokenizer(["b b b b a", "b c 7", "C 8 9", "d"])
    assert tokenizer.vocabulary == ["<pad>", "<unk>", "<s>", "</s>", "b", "c", "qqq", "a", "d"]
    assert tokenizer.encode(["D 55 zebra B"]).ids.tolist() == [2, 8, 6, 1, 4, 3]


def test_document_frequency_counts_texts_not_occurrences():
    assert document_frequency(["x x 1 2", "X qqq", "don’t", ""]) == {"x": 2, "qqq": 2, "do": 1, "n't": 1}


def test_rare_words_are_unknown():
    texts = ["a b c", "a b", "a"]
    assert build_word_tokenizer(texts, min_df=2).vocabulary[4:] == ["a", "b"]
    assert build_word_tokenizer(texts, min_df=2).encode(["c 3"]).ids.tolist() == [2, 1, 1, 3]


def test_specials_typed_by_the_user_are_text():
    tokenizer = build_word_tokenizer(["<s> hello </s> <unk> <pad>"])
    ids = tokenizer.encode(["<s> hello </s> <unk> <pad>"]).ids.tolist()
    assert ids[0] == 2
    assert ids[-1] == 3
    assert min(ids[1:-1]) > 3


def test_the_same_word_however_it_is_written():
    tokenizer = build_word_tokenizer(["café don't"])
    expected = tokenizer.encode(["café don't"]).ids.tolist()
    for text in ["cafe\u0301 don’t", "CAFÉ DON'T", "CAFE\u0301 do n't"]:
        assert tokenizer.encode([text]).ids.tolist() == expected


def test_a_question_is_wrapped_like_any_text():
    assert TOKENIZER.encode(["a text"], question=True).ids.tolist() == TOKENIZER.encode(["a text"]).ids.tolist()


def test_no_texts_and_blank_texts_make_a_vocabulary_of_specials():
    assert build_word_tokenizer([]).size == build_word_tokenizer(["", "  "]).size == 4
    assert build_word_tokenizer([]).encode(["new"]).ids.tolist() == [2, 1, 3]


UNITS = "x a. n't x' 's http:// www.! 1, a\u200b\u200c ! !? 😀\u200d 🇩 e\u0301"


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("end", ["", "'"])
@pytest.mark.parametrize("unit", ["word ", *UNITS.split()])
def test_a_hundred_thousand_of_anything_take_linear_time(unit, end):
    text, tokenizer = unit * 100_000 + end, build_word_tokenizer([], max_length=10**6)
    (spans,) = tokenizer.place([text]).spans
    assert sum(end - start for start, end in spans) == sum(not character.isspace() for character in text)


def test_a_question_has_the_same_ids_whether_spans_are_wanted_or_not():
    """`predict` reads the ids, `explain` and `audit` the ids with spans: both must read the same question."""
    words = build_word_tokenizer(["is it good ?", "a lovely film ."])
    for question in (False, True):
        placed = words.place(["is it good ?"], question=question).ragged.ids
        assert placed.tolist() == words.encode(["is it good ?"], question=question).ids.tolist()
