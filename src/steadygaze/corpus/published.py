"""The published sets by name: what each is, where it lives on the hub, how its columns are read.

The copies on disk and on the hub differ for some sets, and the corpus' fingerprint shows it:

    sst2               disk: sentences, every word rated (evidence); hub: 67,000 phrases, unrated, no labelled test
    newsgroups_sport   hub: signatures and quotations are removed as well as headers
    ag_news yelp_polarity snli multinli babi_3     disk: as much as the folder holds, often a part
"""

from collections.abc import Sequence

from steadygaze.corpus import clean, rows
from steadygaze.corpus.hub import SAME, Hub
from steadygaze.corpus.named import Named
from steadygaze.corpus.rows import Layout
from steadygaze.types import Example


def _babi(task: int) -> Named:
    return Named(
        f"bAbI task {task}: where is something, after {task} supporting fact{'s' * (task > 1)}",
        Layout(("passage", "supporting", "question", "answer"), rows.story),
        Hub("facebook/babi_qa", f"en-10k-qa{task}", exported=True),
        Layout(("story",), rows.nested_story),
        validation_from=_last_stories,
    )


def _last_stories(train: Sequence[Example]) -> int:
    """Where the last tenth of the stories begins.

    A story is asked about several times, as it grows: each passage begins with the one before.  Its questions stay
    together, since a passage in validation that goes on from one in train would be known in part.
    """
    starts = [i for i in range(len(train)) if i == 0 or not train[i].text.startswith(train[i - 1].text)]
    aside = len(starts) // 10
    return starts[-aside] if aside else len(train)


SENTIMENT = {0: "negative", 1: "positive"}
INFERENCE = {0: "entailment", 1: "neutral", 2: "contradiction"}
TRAIN_AND_VALIDATION = {"train": "train", "validation": "validation"}

NAMED: dict[str, Named] = {
    "sst2": Named(
        "sentiment of sentences from film reviews",
        Layout(("text", "tokens", "token_sentiment", "label"), rows.marked_words, SENTIMENT),
        Hub("stanfordnlp/sst2", splits=TRAIN_AND_VALIDATION),  # the hub's test split has no labels
        Layout(("sentence", "label"), rows.text, SENTIMENT),
    ),
    "tweet_emotion": Named(
        "emotion of tweets",
        Layout(("text", "label"), rows.text, {0: "anger", 1: "joy", 2: "optimism", 3: "sadness"}),
        Hub("cardiffnlp/tweet_eval", "emotion"),
    ),
    "tweet_hate": Named(
        "hate speech in tweets (offensive text)",
        Layout(("text", "label"), rows.text, {0: "non-hate", 1: "hate"}),
        Hub("cardiffnlp/tweet_eval", "hate"),
    ),
    "rotten_tomatoes": Named(
        "sentiment of sentences from film reviews; overlaps with sst2: never train on one and test on the other",
        Layout(("text", "label"), rows.text, SENTIMENT),
        Hub("cornell-movie-review-data/rotten_tomatoes"),
    ),
    "imdb": Named(
        "sentiment of long film reviews",
        Layout(("text", "label"), rows.cleaned(clean.imdb), SENTIMENT),
        Hub("stanfordnlp/imdb"),
    ),
    "newsgroups_sport": Named(
        "newsgroup postings about baseball or hockey, without headers",
        Layout(("text", "label"), rows.cleaned(clean.newsgroups), {0: "baseball", 1: "hockey"}),
        Hub("SetFit/20_newsgroups"),
        Layout(
            ("text", "label_text"),
            rows.cleaned(clean.newsgroups),
            {"rec.sport.baseball": "baseball", "rec.sport.hockey": "hockey"},
        ),
    ),
    "ag_news": Named(
        "topic of news in brief",
        Layout(("text", "label"), rows.cleaned(clean.ag_news), {0: "World", 1: "Sports", 2: "Business", 3: "Sci/Tech"}),
        Hub("fancyzhx/ag_news"),
    ),
    "yelp_polarity": Named(
        "sentiment of reviews of businesses",
        Layout(("text", "label"), rows.cleaned(clean.yelp), SENTIMENT),
        Hub("fancyzhx/yelp_polarity"),
    ),
    "babi_1": _babi(1),
    "babi_2": _babi(2),
    "babi_3": _babi(3),
    "snli": Named(
        "does a picture's caption entail a sentence, contradict it, or neither",
        Layout(("premise", "hypothesis", "label"), rows.pair, INFERENCE),
        Hub("stanfordnlp/snli"),
    ),
    "multinli": Named(
        "the same for ten genres of text; test is from the genres of train, test_mismatched from others",
        Layout(("premise", "hypothesis", "label"), rows.pair, INFERENCE),
        Hub(
            "nyu-mll/multi_nli",
            splits={"train": "train", "test": "validation_matched", "test_mismatched": "validation_mismatched"},
        ),
        files=SAME | {"test": "test_matched", "test_mismatched": "test_mismatched"},
    ),
    "movie_rationales": Named(
        "sentiment of film reviews, with the passages that people gave as their reasons",
        Layout(("text", "evidence_start", "evidence_end", "label"), rows.review, SENTIMENT),
        Hub("eraser-benchmark/movie_rationales", exported=True),
        Layout(("review", "evidences", "label"), rows.phrased_review, SENTIMENT),
    ),
}
