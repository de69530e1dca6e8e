"""A word vocabulary: lower-case words by falling document frequency, `<s> … </s>` around every text.

How a text is split (the golden examples are in tests/data/test_word_tokenizer.py):

    words            letters, marks, digits and "_", with inner apostrophes (o'clock) and inner format characters
                     (zero-width joiners, soft hyphens); cut after 9,999 letters or 99 inner apostrophes
    without spaces   Chinese, Japanese, Thai, Lao, Khmer and Burmese as in word_segmentation.py, also inside a URL
    contractions     do n't, it 's, we 'll, they 'd 've; text that is already split is not changed; ’ counts as '
    hyphens          separate tokens, as in spaCy: well - made.  Fewer words are unknown, and each part has its
                     own weight
    numbers          1,000.50 and 10:30 stay whole; any token with a decimal digit in it has the id of `qqq`
    initials         u.s., e.g.
    tweets           # tag and @ user, so that a hashtag has the vector of its word; http://… and www.… up to the last
                     letter, digit or slash
    emoji            one grapheme cluster, one token: families, skin tones, flags
    other            a run of one character is one token: "..." and "!!!", but "?", "!" in "?!"

Every character that is not white space is in exactly one token; beside a letter of a script without spaces, a
zero-width space is white space.  In other scripts, a token cut out of its text is the same single token again.
Composed and decomposed accents are the same word.

With synonym groups, all words of a group have the id of its representative.  A word outside the training texts has it
too, if any word of its group is in the vocabulary.  With spellings, a typo has the id of its word (typos.py).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain, repeat
from threading import Lock
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from steadygaze.core.errors import UserError
from steadygaze.core.ragged import row_starts
from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.data.text_tokenizer import Kind, Spot, TextTokenizer, align_spans, chunks, clean, size_of
from steadygaze.data.word_segmentation import (
    SEPARATOR,
    blank_zero_width_spaces,
    mark_breaks,
    unmarked_spans,
    word_breaks,
)

PAD, UNKNOWN, START, END = SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")
NUMBER = "qqq"

_DIGIT = re.compile(r"\d")


def _pattern() -> str:
    """One token, in Oniguruma's syntax, on lower-case text in NFC.

    A token on its own is split as in its text, because no part depends on what follows, except that nothing continues
    it.  Backtracking is bounded: time is linear, and Oniguruma stays below its limit of ten million steps.
    """
    space = rf"\s\x1c-\x1f{SEPARATOR}"  # what str.isspace says, and the separator of words
    letter = r"[\p{L}\p{M}\p{N}_]"
    negation = rf"n't(?!(?!n't){letter})"
    inner = rf"(?:(?!{negation}){letter})"  # a letter that does not begin "n't"
    part = rf"(?>{inner}{{1,9999}})"
    clitic = rf"'(?:s|m|d|re|ve|ll)(?!{inner})"
    joint = rf"(?:(?!{clitic})'|\p{{Cf}}++|(?<=\p{{N}})[.,:](?=\p{{N}}))"
    return "|".join(
        [
            rf"(?>{letter}{{1,9999}})(?!['\p{{Cf}}:]|[.,]{letter})",  # for speed: what follows would give the same
            rf"(?:https?://|www\.)[^{space}]{{0,9999}}(?:{letter}|/)",
            r"(?:\p{L}\p{M}*+\.){2,99}\p{M}*+",
            negation,
            clitic,
            rf"{part}(?:{joint}{part}){{0,99}}",
            r"\p{Regional_Indicator}{1,2}\p{M}*+",  # a flag; \X would count back to the first of a run of them
            r"(?=\p{Extended_Pictographic})\X\p{M}*+",
            rf"([^{space}])\1*+\p{{M}}*+",
        ]
    )


def build_word_tokenizer(
    texts: Sequence[str], *, min_df: int = 1, max_length: int = 512, synonym_groups: SynonymGroups | None = None
) -> "WordTokenizer":
    """The words that occur in at least `min_df` texts, the most widespread first and then by alphabet.

    The words of a synonym group count as one word, the representative.
    """
    frequency = document_frequency(texts, None if synonym_groups is None else synonym_groups.representative)
    words = sorted((word for word, n in frequency.items() if n >= min_df), key=lambda word: (-frequency[word], word))
    return tokenizer_of_words(words, max_length=max_length, synonym_groups=synonym_groups)


def tokenizer_of_words(
    words: Sequence[str], *, max_length: int, synonym_groups: SynonymGroups | None = None
) -> "WordTokenizer":
    """A tokenizer with these words in its vocabulary, after the special tokens."""
    engine = _engine({token: index for index, token in enumerate([*SPECIALS, *words])})
    return WordTokenizer(engine, max_length=max_length, pad_id=0, synonym_groups=synonym_groups)


def document_frequency(texts: Sequence[str], name: Callable[[str], str] | None = None) -> dict[str, int]:
    """Number of texts with each word; `name`: word -> the word that it counts as."""
    engine = _engine({})
    trainer = trainers.WordLevelTrainer(vocab_size=2**31, min_frequency=0, special_tokens=[], show_progress=False)
    engine.train_from_iterator(chain.from_iterable(map(_segmented, chunks(texts))), trainer)
    index_of = engine.get_vocab()
    vocabulary = sorted(index_of, key=index_of.__getitem__)
    count_as = {word: NUMBER if _DIGIT.search(word) else name(word) if name else word for word in vocabulary}
    words = list(dict.fromkeys([*vocabulary, NUMBER, *count_as.values()]))
    position = {word: index for index, word in enumerate(words)}
    canonical = np.array([position[count_as.get(word, word)] for word in words])
    total = np.zeros(len(words), np.int64)
    for chunk in chunks(texts):
        total += _spread(engine.encode_batch_fast(_segmented(chunk)), canonical)
    return {word: int(n) for word, n in zip(words, total, strict=True) if n}


class WordTokenizer(TextTokenizer):
    """Splits texts as described above."""

    kind: ClassVar[Kind] = "words"

    def _set_up(self) -> None:
        engine = self._engine
        unknown = engine.token_to_id(UNKNOWN)
        if unknown is None:
            raise UserError(f"tokenizer.json is not a word vocabulary of steadygaze: it has no {UNKNOWN!r}.")
        self._unknown = unknown
        self._number = engine.token_to_id(NUMBER) or unknown
        self._reader, self._representative = engine, None
        if self.synonym_groups is not None:
            self._reader, self._representative = _grouped_engine(engine, self.synonym_groups)
        self._plain = Tokenizer(self._reader.model)  # ASCII in lower case needs no normalizer: two thirds of the time
        self._plain.pre_tokenizer = self._reader.pre_tokenizer
        self._known = SplitCache(self._split)
        # A tokenizer of others may not split at separators: its words are not segmented.
        splitter = engine.pre_tokenizer
        self._segments = splitter is not None and not splitter.pre_tokenize_str(SEPARATOR)

    def _leading(self, question: bool) -> Sequence[int]:
        """A question is a separate sequence and begins with `<s>`."""
        return self._before

    def _prepare(self, text: str) -> str:
        return _folded(text) if self._segments else _plain_apostrophes(text)

    def _ids(self, texts: list[str]) -> list[list[int]]:
        return [ids for ids, _, _ in self._spots(texts)]

    def _spots(self, texts: list[str]) -> list[Spot]:
        known = self._known(texts)
        others = iter(self._split([text for text, spot in zip(texts, known, strict=True) if spot is None]))
        return [next(others) if spot is None else spot for spot in known]

    def _split(self, texts: list[str]) -> list[Spot]:
        breaks = word_breaks(texts) if self._segments and not all(map(str.isascii, texts)) else {}
        marked = mark_breaks(texts, breaks) if breaks else texts
        encodings = self._encodings(marked)
        spots = [self._spot(text, encoding) for text, encoding in zip(marked, encodings, strict=True)]
        for row, positions in breaks.items():
            ids, spans, groups = spots[row]
            spots[row] = ids, unmarked_spans(spans, positions), groups
        return spots

    def _spot(self, text: str, encoding: Encoding) -> Spot:
        ids, spans = encoding.ids, align_spans(text.replace(SEPARATOR, " "), encoding.offsets)
        if self._representative is not None:
            ids = [self._representative[index] for index in ids]
        if self._unknown in ids:
            # Not by a Replace of the normalizer, because that loses the offsets.
            ids = [
                self._unknown_word(text, start, end) if index == self._unknown else index
                for index, (start, end) in zip(ids, spans, strict=True)
            ]
        return ids, spans, range(len(ids))

    def _unknown_word(self, text: str, start: int, end: int) -> int:
        """The id of a number or of a typo; words of the vocabulary have no digits."""
        if _DIGIT.search(text, start, end):
            return self._number
        if self.synonym_groups is None or not self.synonym_groups.spellings:
            return self._unknown
        index = self._engine.token_to_id(self.synonym_groups.representative(text[start:end]))
        return self._unknown if index is None else index

    def _encodings(self, texts: list[str]) -> list[Encoding]:
        """Encode each text with the engine for its characters; the order is kept."""
        plain = [text.isascii() for text in texts]
        encodings: dict[bool, Iterator[Encoding]] = {}
        for is_plain, engine in ((True, self._plain), (False, self._reader)):
            matching = [text for text, flag in zip(texts, plain, strict=True) if flag is is_plain]
            encodings[is_plain] = iter(engine.encode_batch(matching, add_special_tokens=False))
        return [next(encodings[flag]) for flag in plain]


@cache
def _splitter() -> pre_tokenizers.Split:
    """Compiling the pattern takes longer than tokenizing a short text."""
    return pre_tokenizers.Split(Regex(_pattern()), behavior="removed", invert=True)


def _engine(vocabulary: dict[str, int]) -> Tokenizer:
    engine = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    engine.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.NFC()])
    engine.pre_tokenizer = _splitter()
    if vocabulary:
        # Special tokens are not registered with the library: it would find them in the user's text.
        ends = [(token, vocabulary[token]) for token in (START, END)]
        engine.post_processor = processors.TemplateProcessing(single=f"{START} $A {END}", special_tokens=ends)
    return engine


def _grouped_engine(engine: Tokenizer, groups: SynonymGroups) -> tuple[Tokenizer, list[int]]:
    """The engine with all words of the groups in the vocabulary, and the id of the representative for each id."""
    vocabulary = engine.get_vocab()
    size = size_of(engine)
    # A group without a representative in the vocabulary is unknown as a whole.
    members = {word: name for word, name in groups.representatives.items() if name in vocabulary}
    new = [word for word in members if word not in vocabulary]
    extended = {**vocabulary, **{word: size + index for index, word in enumerate(new)}}
    representative = list(range(size + len(new)))
    for word, name in members.items():
        representative[extended[word]] = vocabulary[name]
    reader = Tokenizer.from_str(engine.to_str())
    reader.model = models.WordLevel(extended, unk_token=UNKNOWN)
    return reader, representative


def _segmented(texts: list[str]) -> list[str]:
    """The texts as a new tokenizer reads them, with separators between the words of scripts without spaces."""
    folded = [_folded(text) for text in texts]
    return mark_breaks(folded, word_breaks(folded))


def _folded(text: str) -> str:
    """Apostrophes as below; zero-width spaces that separate words become separators, and no others remain."""
    text = _plain_apostrophes(text)
    return text if text.isascii() else blank_zero_width_spaces(text.replace(SEPARATOR, "\ufffd"))


def _plain_apostrophes(text: str) -> str:
    """Replace typographic apostrophes, and lower the case if no character moves."""
    text = clean(text).replace("’", "'")
    return text.lower() if text.isascii() else text


def _spread(encodings: list[Encoding], canonical: NDArray[np.int64]) -> NDArray[np.int64]:
    """(V,) number of texts with each id, after `canonical` maps the ids."""
    lengths = [len(encoding) for encoding in encodings]
    ids = canonical[np.fromiter(chain.from_iterable(encoding.ids for encoding in encodings), np.int64, sum(lengths))]
    rows = np.repeat(np.arange(len(encodings)), lengths)
    return np.bincount(np.unique(rows * len(canonical) + ids) % len(canonical), minlength=len(canonical))


LONGEST_STRETCH = 32
"""Longest stretch in the cache, in letters."""
MOST_STRETCHES = 200_000
"""Largest number of cached stretches, about 30 MB."""


class StretchTable(NamedTuple):
    """The tokens of stretch c are the entries first[c] to first[c+1] - 1 of the other arrays.  Stretch 0 has none."""

    first: NDArray[np.int64]
    ids: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]


class SplitCache:
    """Cache of stretches: whitespace-separated parts of texts with their tokens.  Threads may share it.

    Most stretches repeat, so that only new ones are split by the library.  No token contains white space or depends on
    text beyond it.

        text      "It's a film, isn't it?"     stretches   It's  a  film,  isn't  it?
        "film,"   -> ids of film and ","       at (0, 4) and (4, 5) of the stretch

    Only ASCII stretches are cached, and only texts with single spaces use the cache.  All other texts give None and are
    split whole.
    """

    def __init__(self, split: Callable[[list[str]], list[Spot]]) -> None:
        self._split = split
        self._row: dict[str, int] = {}
        none = np.zeros(0, np.int64)
        self._table = StretchTable(np.zeros(2, np.int64), none, none, none)
        self._lock = Lock()

    def __reduce__(self) -> tuple[type["SplitCache"], tuple[Callable[[list[str]], list[Spot]]]]:
        return SplitCache, (self._split,)  # a copy begins empty, with its own lock

    def __call__(self, texts: list[str]) -> list[Spot | None]:
        """The spots of every text that is single-spaced ASCII of ordinary words."""
        stretches = [text.split() if text.isascii() else [] for text in texts]
        flat = list(chain.from_iterable(stretches))
        rows = self._look_up(flat)
        table = self._table  # at least as new as the rows
        edges = row_starts(np.fromiter(map(len, stretches), np.int64, len(stretches)))
        size = np.fromiter(map(len, flat), np.int64, len(flat))
        place = row_starts(size + 1)  # where each stretch would begin if all texts were one
        is_covered = np.fromiter(map(len, texts), np.int64, len(texts)) + 1 == np.diff(place[edges])
        is_covered[np.repeat(np.arange(len(texts)), np.diff(edges))[rows == 0]] = False
        count = table.first[rows + 1] - table.first[rows]
        token = row_starts(count)
        source = np.arange(token[-1]) + np.repeat(table.first[rows] - token[:-1], count)
        shift = np.repeat(place[:-1] - np.repeat(place[edges[:-1]], np.diff(edges)), count)
        ids = table.ids[source].tolist()
        spans = list(zip((table.start[source] + shift).tolist(), (table.end[source] + shift).tolist(), strict=True))
        bounds = token[edges].tolist()
        return [
            (ids[a:b], spans[a:b], range(b - a)) if complete else None
            for a, b, complete in zip(bounds[:-1], bounds[1:], is_covered.tolist(), strict=True)
        ]

    def _look_up(self, flat: list[str]) -> NDArray[np.int64]:
        """The row of each stretch; 0 if it is not cached."""
        cached = np.fromiter(map(self._row.get, flat, repeat(0)), np.int64, len(flat))
        new = {flat[i] for i in np.flatnonzero(cached == 0).tolist() if len(flat[i]) <= LONGEST_STRETCH}
        if not new or len(self._row) >= MOST_STRETCHES:
            return cached
        self._learn(sorted(new))
        return np.fromiter(map(self._row.get, flat, repeat(0)), np.int64, len(flat))

    def _learn(self, new: list[str]) -> None:
        spots = self._split(new)
        with self._lock:
            old = self._table
            counts = np.array([len(ids) for ids, _, _ in spots], np.int64)
            spans = np.array([span for _, spans, _ in spots for span in spans], np.int64).reshape(-1, 2)
            flat = np.array([index for ids, _, _ in spots for index in ids], np.int64)
            self._table = StretchTable(
                np.concatenate([old.first, old.first[-1] + np.cumsum(counts)]),
                np.concatenate([old.ids, flat]),
                np.concatenate([old.start, spans[:, 0]]),
                np.concatenate([old.end, spans[:, 1]]),
            )
            # Rows last, so that a row always has its tokens.  Another thread may have added the same stretch.
            self._row.update(zip(new, range(len(old.first) - 1, len(old.first) - 1 + len(new)), strict=True))
