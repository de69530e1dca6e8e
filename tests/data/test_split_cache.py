"""The cache of splits: a lookup equals splitting the whole text, after any other texts."""

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from steadygaze.data import word_tokenizer
from steadygaze.data.word_tokenizer import SplitCache, build_word_tokenizer

ASCII = st.lists(
    st.sampled_from([*"ab'.,:-@#!/ 09", "n't", "'s", "www.", "don't ", "film, ", "\t", "\n", "u.s.", "\x1c", "é"]),
    max_size=30,
).map("".join)
TOKENIZER = build_word_tokenizer(["don't a film , b 's u.s. 0 and n't"])


@given(st.lists(ASCII, max_size=5))
def test_looking_up_equals_splitting_the_whole_text(texts):
    for spot, whole in zip(SplitCache(TOKENIZER._split)(texts), TOKENIZER._split(texts), strict=True):
        if spot is not None:
            assert [list(part) for part in spot] == [list(part) for part in whole]


def test_it_answers_for_single_spaced_ascii_of_ordinary_length_only():
    texts = ["a film, don't", "a  film", " a", "café", "x" * 33, "a\tfilm", ""]
    assert [spot is not None for spot in SplitCache(TOKENIZER._split)(texts)] == [
        True,
        False,
        False,
        False,
        False,
        True,
        False,
    ]


def test_a_stretch_is_split_once():
    seen: list[str] = []

    def split(texts):
        seen.extend(texts)
        return TOKENIZER._split(texts)

    look_up = SplitCache(split)
    look_up(["a film, a film, b", "b film,"])
    look_up(["film, a"])
    assert seen == ["a", "b", "film,"]


def test_a_full_table_learns_no_more(monkeypatch):
    monkeypatch.setattr(word_tokenizer, "MOST_STRETCHES", 2)
    look_up = SplitCache(TOKENIZER._split)
    assert look_up(["a b"])[0] is not None
    assert look_up(["a c", "b a"])[0] is None
    assert look_up(["a c", "b a"])[1] is not None


def test_threads_that_share_it_find_the_same():
    texts = [f"w{i} film, w{i * 7 % 100} don't" for i in range(400)]
    expected = [ids for ids, _, _ in TOKENIZER._split(texts)]
    shared = SplitCache(TOKENIZER._split)
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(shared, [texts[i : i + 10] for i in range(0, 400, 10)]))
    assert [spot[0] for part in parts for spot in part if spot] == expected
