"""Which tokens end a sentence, in our own vocabularies and in those of word pieces; the sentences of texts."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from steadygaze.core.maths.sentence_ends import SentenceRole, can_end
from steadygaze.core.ragged import segment_ids
from steadygaze.data.batches import Data, collate
from steadygaze.data.corpora import load_corpus
from steadygaze.data.sentence_roles import sentence_roles
from steadygaze.data.word_tokenizer import build_word_tokenizer

WRITTEN = [  # sentences between "|"; the text has a space for each
    "A fine beer.|The head is thin!|Would I buy it?|Yes.",
    "Dr. Smith met Mr. and Mrs. Jones on St. Mary's Road.|They talked.",
    "She visited Prof. Lee vs. Capt. Brown Jr. in court.|He lost.",
    "J. R. R. Tolkien wrote it.|T. S. Eliot did not.",
    "It costs 3.50 or 1,000.75 dollars.|Version 2.0 is out.",
    "I gave it a 3.|Never again.",
    "1. Open the box.|2. Read the manual.|3. Plug it in.",
    "See No. 5 and Fig. 2 on p. 7.|They are good.",
    "Is it good?|No.|I disliked it.",
    "The U.S. army came at 5 p.m. sharp.|We left.",
    "See e.g. the second part, i.e. the end.|It is weak.",
    "Ask at www.example.org or http://a.b/c.html now.|It works.",
    "Order at amazon.com or send file.txt to me.|Thanks.",
    "He holds a Ph.D. in physics.|She does too.",
    "“It works!”|So he message.",
    '"It works." |"It does not." |Who is right?',
    '5\'9" tall.|He left.|"Yes." |She stayed.',
    '"I saw District 9" was all.|"Yes." |She stayed.',
    "„Gut.“|Er ging.|“It works.”|Fine.",
    "(It was cold.)|We went home.",
    "He asked “Why?”) |Nobody knew.",
    "It was slow...|Then it broke…|Why?!",
    "Apple Inc. sold it to Acme Ltd. and others.|A pity.",
    "Smith et al. disagree.|So do I.|Fine.",
    "没有意思。|我不喜欢！|为什么？",
    "面白かった。|また行きたい！",
    "यह अच्छा है।|वह बुरा है।",
    "هل هو جيد؟|نعم.",
    "Это Пушкин А. С. и его дом.|Красиво.",
]
KNOWN_DIFFERENCES = [  # known differences: too many sentences in the first two, too few in the others
    ("“Stop!” he message.", ["“Stop!”", "he message."]),
    ("A. Milne wrote it.", ["A.", "Milne wrote it."]),
    ("It was plan B. We failed.", ["It was plan B. We failed."]),
    ("He works for Acme Inc. She does not.", ["He works for Acme Inc. She does not."]),
    ("We came at 9 p.m. The cast bowed.", ["We came at 9 p.m. The cast bowed."]),
    ("I saw it in the U.S. The film ran.", ["I saw it in the U.S. The film ran."]),
    ("He has a Ph.D. She left.", ["He has a Ph.D. She left."]),
]


def sentences(text: str, vocabulary: list[str], ids: NDArray[np.int32], spans: list[tuple[int, int]]) -> list[str]:
    """The sentences of a text, cut out of it."""
    tokens = torch.from_numpy(ids.astype(np.int64))[None]
    roles = torch.from_numpy(sentence_roles(vocabulary))
    numbers = segment_ids(tokens, torch.ones_like(tokens, dtype=torch.bool), roles)[0].numpy()
    starts = [spans[int(first)][0] for first in np.flatnonzero(np.diff(numbers, prepend=-1))]
    ends = [spans[int(last)][1] for last in np.flatnonzero(np.diff(numbers, append=numbers.max() + 1))]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def word_sentences(text: str) -> list[str]:
    tokenizer = build_word_tokenizer([text])
    placed = tokenizer.place([text])
    return sentences(text, tokenizer.vocabulary, placed.ragged.ids[1:-1], placed.spans[0])


@pytest.mark.parametrize("written", WRITTEN)
def test_abbreviations_numbers_quotes_and_addresses_do_not_end_a_sentence(written):
    parts = [part.strip() for part in written.split("|")]
    assert word_sentences(" ".join(parts)) == parts


@pytest.mark.parametrize(("text", "parts"), KNOWN_DIFFERENCES)
def test_known_differences(text, parts):
    """A vocabulary in lower case does not show whether a word is capitalized."""
    assert word_sentences(text) == parts


@pytest.mark.parametrize(
    ("tokens", "kind", "expected"),
    [
        ("dr . who ? yes ##s .", "words", [0, 0, 0, 0, 1, 1, 1]),
        ("Dr . Ġwho ? ĠDr . Ġdo .", "pieces", [0, 0, 0, 0, 1, 1, 1, 1]),
        ("dr . ##dr . who . who", "pieces", [0, 0, 0, 0, 1, 1, 2]),
        ("ĠInc .) Ġso .) ĠNo", "pieces", [0, 0, 0, 0, 1]),
    ],
)
def test_an_abbreviation_is_a_whole_word_of_any_vocabulary(tokens, kind, expected):
    vocabulary = [*dict.fromkeys(tokens.split())]
    marks = [f"{'Ġ' if 'Ġ' in tokens else '##'}{i}" for i in "abcdefgh"]
    roles = torch.from_numpy(sentence_roles([*vocabulary, *marks], kind))
    ids = torch.tensor([[vocabulary.index(token) for token in tokens.split()]])
    assert segment_ids(ids, torch.ones_like(ids, dtype=torch.bool), roles)[0].tolist() == expected


STOPS = '. ! ? ... !!! ?! … Ġ. ▁? ##. ##... 。 âĢ¦ ãĢĤ Ġ!âĢ¦ ." ?" .) !) .” .âĢĿ Ġ.\''


@pytest.mark.parametrize("token", STOPS.split())
def test_a_stop_ends_a_sentence_however_a_vocabulary_marks_it(token):
    assert can_end(torch.from_numpy(sentence_roles([token]))).all()


@pytest.mark.parametrize(
    "token", ["", "u.s.", "a", ",", ";", ":", "-", '"', "3.5", "##", "Ġ", "▁", "Ġa", "<s>", "qqq", '"."', "(."]
)
def test_other_tokens_do_not_end_a_sentence(token):
    assert not can_end(torch.from_numpy(sentence_roles([token]))).any()


def test_of_a_vocabulary_of_bytes_the_stops_of_other_scripts_are_found():
    """As a library of others spells them."""
    engine = Tokenizer(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=[], show_progress=False)
    engine.train_from_iterator(["よい。", "はい。", "いい。", "yes … no …", "so … so"], trainer)
    vocabulary = [engine.id_to_token(i) for i in range(engine.get_vocab_size())]
    engine.decoder = decoders.ByteLevel()
    ended = {engine.decode([i]).strip() for i in np.flatnonzero(sentence_roles(vocabulary) == SentenceRole.END)}
    assert ended == {"。", "…"}


def test_of_a_word_vocabulary_the_stops_are_found():
    vocabulary = build_word_tokenizer(["Fine beer! Is it? From the U.S. ... yes."]).vocabulary
    ended = [
        token
        for token, ends in zip(vocabulary, can_end(torch.from_numpy(sentence_roles(vocabulary))), strict=True)
        if ends
    ]
    assert sorted(ended) == ["!", ".", "...", "?"]


def test_the_rules_find_the_sentences_that_a_corpus_gives():
    examples = load_corpus("planted-reviews:sizes=[100,10,10]").splits["train"]
    tokenizer = build_word_tokenizer([example.text for example in examples])
    placed = tokenizer.place([example.text for example in examples])
    batch = collate(Data(placed.ragged), np.arange(len(examples)))
    roles = torch.from_numpy(sentence_roles(tokenizer.vocabulary))
    numbers = segment_ids(batch.ids, batch.mask, roles)[batch.mask].tolist()
    inputs = [
        [start <= token_start < end for start, end in example.sentences].index(True)
        for example, spans in zip(examples, placed.spans, strict=True)
        for token_start, _ in spans
    ]
    assert numbers == inputs
    assert max(inputs) > 2
