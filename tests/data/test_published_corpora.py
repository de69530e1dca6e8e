"""The published sets: rows as they are on disk, rows as they are on the hub, and the corpora that are generated."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import datasets
import pyarrow as pa
import pytest
from pyarrow import parquet

from steadygaze.core.errors import UserError
from steadygaze.core.types import Example
from steadygaze.data.corpora import CORPORA, load_corpus
from steadygaze.data.corpus import EXPORT, Corpus, GeneratedCorpus

REAL = Path(os.environ.get("STEADYGAZE_DATA") or Path(__file__).parents[3] / "shared" / "data")
PUBLISHED = [name for name in CORPORA if not name.startswith("planted-")]


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch):
    monkeypatch.delenv("STEADYGAZE_DATA", raising=False)


@pytest.fixture
def on_disk(tmp_path):
    """Write a split of a set, and load the set from there."""

    def load(name, columns, split="train"):
        (tmp_path / name).mkdir(exist_ok=True)
        parquet.write_table(pa.table(columns), tmp_path / name / f"{split}.parquet")
        return load_corpus(name, data_dir=tmp_path)

    return load


@pytest.fixture
def on_hub(monkeypatch):
    """Answer `datasets.load_dataset` with splits of these columns, and record the calls."""

    def load(name, **splits):
        calls = []

        def load_dataset(path, **options):
            calls.append((path, options))
            return datasets.DatasetDict({split: datasets.Dataset.from_dict(rows) for split, rows in splits.items()})

        monkeypatch.setattr(datasets, "load_dataset", load_dataset)
        return load_corpus(name), calls[0]

    return load


def marked(example):
    return [example.text[start:end] for start, end in example.rationales]


def sentences(example):
    return [example.text[start:end] for start, end in example.sentences]


def test_labels_become_names_and_empty_rows_are_counted(on_disk):
    corpus = on_disk("tweet_hate", {"text": ["a", " ", "b", None, "c"], "label": [0, 1, 1, 0, None]})
    assert corpus.splits == {"train": [Example("a", "non-hate"), Example("b", "hate")]}
    assert corpus.dropped == {"empty text": 2, "no label": 1}
    assert corpus.source == "disk"


def test_sst2_marks_the_words_on_the_labels_side(on_disk):
    columns = {
        "text": ["not bad , good good", "so bad , a good cast", "other text"],
        "label": [1, 0, 1],
        "tokens": [["not", "bad", ",", "good", "good"], ["so", "bad", ",", "a", "good", "cast"], ["lost"]],
        "token_sentiment": [[1, 0, 2, 3, 4], [2, 1, 2, 2, 3, 2], [4]],
    }
    first, second, third = on_disk("sst2", columns).splits["train"]
    assert (first.label, first.rationales) == ("positive", ((10, 14), (15, 19)))
    assert (second.label, marked(second)) == ("negative", ["bad"])
    assert third.rationales is None  # its tokens are not in the text


def test_texts_are_cleaned_as_their_set_needs(on_disk):
    def texts(name, text):
        return [e.text for e in on_disk(name, {"text": [text, None], "label": [1, 1]}).splits["train"]]

    assert texts("imdb", "one.<br /><br />two") == ["one.\ntwo"]
    assert texts("yelp_polarity", r"one.\ntwo") == ["one.\ntwo"]
    assert texts("ag_news", "a day #39;s work") == ["a day's work"]
    assert texts("newsgroups_sport", "From: a\nLines: 1\n\nBody.") == ["Body."]


def test_a_posting_that_is_nothing_but_a_header_is_empty(on_disk):
    corpus = on_disk("newsgroups_sport", {"text": ["From: nobody\nSubject: nothing\n\n", "b"], "label": [1, 0]})
    assert [e.text for e in corpus.splits["train"]] == ["b"]
    assert corpus.dropped == {"empty text": 1}


def test_babi_marks_the_supporting_sentences(on_disk):
    columns = {
        "passage": [["John left.", "Mary sat.", "John ate."]],
        "question": ["Who ate?"],
        "answer": ["John"],
        "supporting": [[2, 0]],
    }
    (example,) = on_disk("babi_2", columns).splits["train"]
    assert (example.text, example.question, example.label) == ("John left. Mary sat. John ate.", "Who ate?", "John")
    assert sentences(example) == ["John left.", "Mary sat.", "John ate."]
    assert marked(example) == ["John left.", "John ate."]


def test_the_last_tenth_of_the_babi_stories_is_for_validation(on_disk):
    passages = [[f"Fact {story}.", *["More."] * more] for story in range(25) for more in range(3)]
    columns = {"passage": passages, "question": ["?"] * 75, "answer": ["x"] * 75, "supporting": [[0]] * 75}
    splits = on_disk("babi_1", columns).splits
    assert [len(splits["train"]), len(splits["validation"])] == [69, 6]
    assert [e.text for e in splits["validation"][:4]] == [
        "Fact 23.",
        "Fact 23. More.",
        "Fact 23. More. More.",
        "Fact 24.",
    ]
    splits = on_disk("babi_1", columns, "validation").splits
    assert [len(splits["train"]), len(splits["validation"])] == [75, 75]  # a split of its own is left alone


def test_movie_rationales_count_words_and_drop_what_marks_nothing(on_disk):
    columns = {
        "text": ["a dull film .\nvery dull", "fine"],
        "evidence_start": [[4, 1, 2], []],
        "evidence_end": [[6, 3, 2], []],
        "label": [0, 1],
    }
    corpus = on_disk("movie_rationales", columns, "test")
    (example,) = corpus.splits["test"]
    assert marked(example) == ["dull film", "very dull"]
    assert sentences(example) == ["a dull film .", "very dull"]
    assert corpus.dropped == {"zero-length rationales span": 1, "no rationales": 1}


FINE = {"text": ["a film"], "label": [1]}
SST2 = {**FINE, "tokens": [["a", "film"]], "token_sentiment": [[2, 3]]}
STORY = {"passage": [["John left."]], "question": ["Who?"], "answer": ["John"], "supporting": [[0]]}
MOVIE = {**FINE, "evidence_start": [[0]], "evidence_end": [[1]]}


@pytest.mark.parametrize(
    ("name", "columns", "found"),
    [
        ("tweet_hate", {**FINE, "text": [5]}, "text=5"),
        ("tweet_hate", {**FINE, "text": [["a"]]}, "text=['a']"),
        ("imdb", {**FINE, "text": [5.0]}, "text=5.0"),
        ("imdb", {**FINE, "label": [[1]]}, "label=[1]"),
        ("sst2", {**SST2, "tokens": ["a film"]}, "tokens='a film'"),
        ("sst2", {**SST2, "token_sentiment": [3]}, "token_sentiment=3"),
        ("snli", {"premise": ["p"], "hypothesis": [7], "label": [2]}, "hypothesis=7"),
        ("babi_1", {**STORY, "passage": [3]}, "passage=3"),
        ("babi_1", {**STORY, "passage": ["John left."]}, "passage='John left.'"),
        ("babi_1", {**STORY, "supporting": [[4]]}, "supporting=[4]"),
        ("babi_1", {**STORY, "supporting": [[-1]]}, "supporting=[-1]"),
        ("babi_1", {**STORY, "answer": [[1]]}, "answer=[1]"),
        ("movie_rationales", {**MOVIE, "evidence_end": [[9]]}, "evidence_end=[9]"),
        ("movie_rationales", {**MOVIE, "evidence_start": [[-1]]}, "evidence_start=[-1]"),
        ("movie_rationales", {**MOVIE, "evidence_start": [[0, 1]]}, "evidence_start=[0, 1]"),
        ("movie_rationales", {**MOVIE, "evidence_start": [["a"]]}, "evidence_start=['a']"),
    ],
)
def test_a_row_of_other_types_or_values_is_named(name, columns, found, on_disk):
    with pytest.raises(UserError, match=re.escape(f"{name}, train split, row 1 is not a row")) as raised:
        on_disk(name, columns)
    assert found in str(raised.value)


def test_inference_pairs_explain_the_premise(on_disk):
    columns = {"premise": ["p", "p"], "hypothesis": ["h", "i"], "label": [2, -1]}
    corpus = on_disk("snli", columns)
    assert corpus.splits == {"train": [Example("p", "contradiction", question="h")]}
    assert corpus.dropped == {"no label": 1}
    assert set(on_disk("multinli", columns, "test_matched").splits) == {"test"}
    assert set(on_disk("multinli", columns, "test_mismatched").splits) == {"test", "test_mismatched"}


def test_the_hub_serves_what_the_folder_lacks(on_hub, tmp_path, monkeypatch):
    monkeypatch.setenv("STEADYGAZE_DATA", str(tmp_path))
    rows = {"text": ["a", "b"], "label": [0, 3]}
    corpus, call = on_hub("tweet_emotion", train=rows, test=rows, extra=rows)
    assert corpus.splits["test"] == [Example("a", "anger"), Example("b", "sadness")]
    assert (list(corpus.splits), corpus.source) == (["train", "test"], "hub")
    assert call == ("cardiffnlp/tweet_eval", {"name": "emotion"})


def test_sst2_on_the_hub_has_no_labeled_test(on_hub):
    rows = {"idx": [0, 1], "sentence": ["fine ", "dull "], "label": [1, 0]}
    corpus, call = on_hub("sst2", train=rows, validation=rows, test=rows | {"label": [-1, -1]})
    assert corpus.splits["train"] == [Example("fine ", "positive"), Example("dull ", "negative")]
    assert list(corpus.splits) == ["train", "validation"]
    assert call == ("stanfordnlp/sst2", {"name": None})


def test_newsgroups_on_the_hub_are_chosen_by_name(on_hub):
    groups = ["rec.sport.baseball", "rec.sport.hockey", "sci.med"]
    rows = {"text": ["a", "b", "c"], "label": [9, 10, 0], "label_text": groups}
    corpus, _ = on_hub("newsgroups_sport", train=rows)
    assert corpus.splits == {"train": [Example("a", "baseball"), Example("b", "hockey")]}
    assert corpus.dropped == {"label of another task": 1}


STORY = {
    "id": ["1", "2", "3", "4", "5"],
    "type": [0, 0, 1, 0, 1],
    "text": ["Mary left.", "John sat.", "Who left? ", "Mary sat.", "Who sat last?"],
    "supporting_ids": [[], [], ["1"], [], ["4", "2"]],
    "answer": ["", "", "Mary", "", "Mary"],
}


@pytest.mark.parametrize(
    "story", [STORY, [dict(zip(STORY, line, strict=True)) for line in zip(*STORY.values(), strict=True)]]
)
def test_babi_on_the_hub_is_the_same_corpus_as_on_disk(on_hub, on_disk, story):
    hub, call = on_hub("babi_1", train={"story": [story]})
    disk = on_disk(
        "babi_1",
        {
            "passage": [["Mary left.", "John sat."], ["Mary left.", "John sat.", "Mary sat."]],
            "question": ["Who left?", "Who sat last?"],
            "answer": ["Mary", "Mary"],
            "supporting": [[0], [1, 2]],
        },
    )
    assert hub.splits == disk.splits
    assert hub.fingerprint == disk.fingerprint
    assert call == ("facebook/babi_qa", {"data_dir": "en-10k-qa1", "revision": EXPORT})


def test_movie_rationales_on_the_hub_are_phrases(on_hub):
    rows = {
        "review": ["a dull film .\nvery dull", "fine", "odd", "even"],
        "label": [0, 1, 1, 0],
        "evidences": [["dull", "film . very", ""], [], ["lost"], ["even"]],
    }
    corpus, call = on_hub("movie_rationales", train=rows)
    first, second = corpus.splits["train"]
    assert marked(first) == ["dull", "film .\nvery"]
    assert marked(second) == ["even"]
    assert corpus.dropped == {"zero-length rationales span": 1, "no rationales": 1, "rationales not in the text": 1}
    assert call == ("eraser-benchmark/movie_rationales", {"data_dir": "default", "revision": EXPORT})


def test_without_the_extra_the_way_to_install_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UserError, match=r"imdb is not in the data folder.*pip install 'steadygaze\[hub\]'"):
        load_corpus("imdb")


@pytest.mark.parametrize("error", [ConnectionError("no network\nmore"), RuntimeError("no scripts"), ValueError()])
def test_a_hub_that_cannot_be_read_gets_one_sentence(monkeypatch, error):
    def load_dataset(*_, **__):
        raise error

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(
        UserError, match=r"could not be read from the hub \(stanfordnlp/imdb: .*STEADYGAZE_DATA"
    ) as caught:
        load_corpus("imdb")
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_not_what_it_should_be(on_disk, tmp_path):
    with pytest.raises(UserError, match=r"there is no data folder .*nowhere"):
        load_corpus("imdb", data_dir=tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"imdb, train split: unknown column 'text': did you mean 'texts'"):
        on_disk("imdb", {"texts": ["a"], "label": [0]})
    (tmp_path / "ag_news").mkdir()
    with pytest.raises(UserError, match=r"contains none of train.parquet, validation.parquet, test.parquet"):
        load_corpus("ag_news", data_dir=tmp_path)
    (tmp_path / "ag_news" / "test.parquet").write_text("no")
    with pytest.raises(UserError, match="cannot be read as parquet"):
        load_corpus("ag_news", data_dir=tmp_path)


def test_options_reach_the_generator_and_the_seed_too():
    small = load_corpus("planted-reviews:sizes=[20,10,10],appearance_first=0.0", seed=1)
    assert small.sizes == {"train": 20, "validation": 10, "test": 10}
    assert (small.source, small.dropped) == ("generated", {})
    again = load_corpus("planted-reviews:appearance_first=0,sizes=[20,10,10]", seed=1)
    other = load_corpus("planted-reviews:sizes=[20,10,10],appearance_first=0.0", seed=2)
    assert small.fingerprint == again.fingerprint != other.fingerprint
    fixed = load_corpus("planted-reviews:sizes=[20,10,10],appearance_first=0.0,seed=1", seed=2)
    assert fixed.fingerprint == small.fingerprint


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ("planted-review", "unknown corpus 'planted-review': did you mean 'planted-reviews'"),
        ("planted-reviews:aspekt=palate", "unknown option of planted-reviews 'aspekt': did you mean 'aspect'"),
        ("planted-reviews:palate", "found 'palate' after the corpus' name; options are key=value"),
        ("sst2:aspect=palate", "sst2 takes no options; found aspect"),
    ],
)
def test_a_wrong_name_or_option_is_named(data, sentence):
    with pytest.raises(UserError, match=sentence):
        load_corpus(data)
    with pytest.raises(UserError, match="sst2 has fixed columns"):
        load_corpus("sst2", text=("sentence",))


def test_a_generators_arguments_are_checked_by_their_types():
    def generate(seed: int = 0, *, share: float = 0.5, sizes: Sequence[int] = (1,)) -> dict[str, list[Example]]:
        if share > 1:
            raise UserError("share is at most 1")
        return {"train": [Example(f"{seed} {share} {sizes[0]}", "x")]}

    made = GeneratedCorpus("", generate)
    corpus = made.load("made", {"share": 1, "sizes": [7]}, None, seed=3)
    assert (corpus.name, corpus.splits) == ("made:share=1,sizes=[7]", {"train": [Example("3 1.0 7", "x")]})
    with pytest.raises(UserError, match=r"^made: setting 'share': found 'often'; it should be a valid number"):
        made.load("made", {"share": "often"}, None, seed=0)
    with pytest.raises(UserError, match=r"^share is at most 1"):
        made.load("made", {"share": 2}, None, seed=0)


def test_the_fingerprint_sees_what_a_model_sees():
    def fingerprint(*examples, split="train", name="a", source="file"):
        return Corpus(name, {split: list(examples)}, source=source).fingerprint

    example, two = Example("a", "x"), Example("b", "y")
    assert fingerprint(example, two) == fingerprint(example, two, name="b")
    different = [
        fingerprint(example, two),
        fingerprint(two, example),
        fingerprint(example),
        fingerprint(example, two, split="test"),
        fingerprint(Example("a", 1), two),
        fingerprint(Example("a", "1"), two),
        fingerprint(Example("a", "x", question=""), two),
        fingerprint(Example("a", "x", rationales=()), two),
        fingerprint(Example("a", "x", rationales=((0, 1),)), two),
        fingerprint(Example("a", "x", sentences=((0, 1),)), two),
    ]
    assert len(set(different)) == len(different)
    with_sentences = fingerprint(Example("a", "x", sentences=((0, 1),)), two, source="generated")
    assert with_sentences == fingerprint(example, two)  # the text determines them


SIZES = {
    "sst2": {"train": 6920, "validation": 872, "test": 1821},
    "tweet_emotion": {"train": 3257, "validation": 374, "test": 1421},
    "tweet_hate": {"train": 9000 - 7, "validation": 1000 - 1, "test": 2970},
    "rotten_tomatoes": {"train": 8530, "validation": 1066, "test": 1066},
    "imdb": {"train": 25000, "test": 25000},
    "newsgroups_sport": {"train": 1197 - 1, "test": 796},
    "ag_news": {"train": 28816, "test": 7600},
    "yelp_polarity": {"train": 4455, "test": 1000},
    "babi_1": {"train": 9000, "validation": 1000, "test": 1000},
    "babi_2": {"train": 9000, "validation": 1000, "test": 1000},
    "babi_3": {"train": 900, "validation": 100, "test": 1000},
    "snli": {"train": 9842, "test": 9824},
    "multinli": {"test": 1000, "test_mismatched": 1000},
    "movie_rationales": {"train": 1600 - 1, "validation": 200, "test": 199},
}
FIRST_RATIONALE = {
    "sst2": ["fun", "good"],
    "babi_1": ["John travelled to the hallway."],
    "babi_2": ["Mary got the milk there.", "Mary travelled to the hallway."],
    "movie_rationales": ["i even giggled"],
}
"""Of the first test example; the first span of a film review."""
DROPPED = {
    "tweet_hate": {"empty text": 8},
    "newsgroups_sport": {"empty text": 1},
    "movie_rationales": {"no rationales": 1, "zero-length rationales span": 20},
}


LEFT_OVERS = {
    "imdb": r"<br",
    "yelp_polarity": r"\\",
    "ag_news": r"\\|#39;|&lt;|&gt;|\bquot;",
    "newsgroups_sport": r"(?i)rec\.sport|\br\.s\.[bh]|\A<\S+@\S+>\n|\A(lines|nntp-posting-host|newsgroups):",
}


LARGE = ("ag_news", "imdb", "movie_rationales")
"""They take more than a second to read."""


def _cases(names):
    return [pytest.param(name, marks=pytest.mark.slow) if name in LARGE else name for name in names]


@pytest.fixture(scope="module", params=_cases(PUBLISHED))
def real(request):
    """Read once for all tests of it; of this scope, so that one is freed before the next is read."""
    if not (REAL / request.param).is_dir():
        pytest.skip(f"{request.param} is not in the data folder")
    return load_corpus(request.param, data_dir=REAL)


def only(*names):
    return pytest.mark.parametrize("real", _cases(names), indirect=True, scope="module")


@pytest.mark.sweep(keep=2)
def test_the_real_set_has_the_rows_it_should(real):
    name = real.name
    assert real.sizes == SIZES[name]
    assert real.dropped == DROPPED.get(name, {})
    labels = {example.label for example in real.splits["test"]}
    assert labels == set(real.label_names)
    assert len(labels) >= 2
    if name in FIRST_RATIONALE:
        assert marked(real.splits["test"][0])[: len(FIRST_RATIONALE[name])] == FIRST_RATIONALE[name]


@only(*LEFT_OVERS)
def test_nothing_is_left_over_in_the_real_texts(real):
    examples = [example for split in real.splits.values() for example in split]
    assert not [example.text[:80] for example in examples if re.search(LEFT_OVERS[real.name], example.text)]


@only("babi_1", "babi_2", "babi_3")
def test_no_real_story_is_on_both_sides_of_the_cut(real):
    splits = real.splits
    assert not splits["validation"][0].text.startswith(splits["train"][-1].text)
    assert len(splits["validation"]) % 5 == 0


def test_a_name_is_taken_however_the_usual_column_is_written():
    """The command line hands over a list, where the default is a tuple."""
    assert load_corpus("planted-reviews:sizes=[30,4,4]", text=["text"]).sizes["train"] == 30
