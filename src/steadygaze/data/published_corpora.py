r"""Published corpora by name, and functions that clean their texts.

    imdb        `<br />` for line breaks
    yelp        `\n`, `\""` and `\u00e9` spelled out; some copies keep the quotes of a CSV cell
    ag_news     entities, most without their ampersand (`#39;`), and a backslash where a line was broken
    newsgroups  headers and the names of the groups, which reveal the label

Other HTML tags are part of the published text and are kept.

The copies on disk and on the hub differ for some corpora, and so do their fingerprints:

    sst2               disk: sentences, every word rated (rationales); hub: 67,000 phrases, unrated, no labeled test
    newsgroups_sport   hub: signatures and quotations are removed as well as headers
    ag_news yelp_polarity snli multinli babi_3     disk: the rows in the folder, often a part of the corpus
"""

import html
import json
import re
from collections.abc import Sequence

from steadygaze.core.types import Example
from steadygaze.data import row_layouts
from steadygaze.data.corpus import SAME_SPLITS, HubSource, PublishedCorpus
from steadygaze.data.row_layouts import Layout

_TAGGED_BREAKS = re.compile(r"<br\s*/?>(?:\s*<br\s*/?>)*")  # begins with a literal, which is searched for faster

# yelp: inside the quotes of a cell, every other quote is escaped
_CELL = re.compile(r'"((?:[^"\\]|\\ ?""|\\.)*)"', re.DOTALL)
_SPELLED = re.compile(r'\\n|\\ ?""?|(?:\\u[0-9a-fA-F]{4})+|\\')

# ag_news: every "&" had become a space; a bare number must not be a rank, as in "the #1;"
_APART = re.compile(r" (?=&?#0?39;(?:s|t|re|ve|ll|d|m)\b)")
_ENTITY = re.compile(r"&?(#0?3\d|#\d{3,4}|\b(?:quot|amp|lt|gt|apos|nbsp|hellip));")
_BACKSLASHES = re.compile(r"\\+")

# newsgroups: a blank line within a header leaves fields, or the ids of a folded "References:", on top of the body
_MESSAGE_ID = r"<\S+@\S+>(?: +<\S+@\S+>)*"
_FIELD = (
    r"(?:From|Subject|Newsgroups|Lines|Organi[sz]ation|Distribution|Keywords|Summary|Expires|Sender|Originator|"
    r"Reply-To|In-Reply-To|Followup-To|References|Message-ID|Article-I\.D\.|Date|Path|To|Cc|Bcc|Archive-name|"
    r"Disclaimer|News-Software|NNTP-[\w-]+|X-[\w-]+):.*"
)
_HEADER = re.compile(r"^(From|Subject):", re.MULTILINE)
_MORE_HEADER = re.compile(
    rf"\s*(?:{_FIELD}|{_MESSAGE_ID})(?:\n(?:{_FIELD}|{_MESSAGE_ID}|[ \t].*))*(?:\n\n|\s*\Z)", re.I
)
_GROUP = re.compile(r"\b(?:rec\.sports?(?:\.[\w*-]+)*|r\.s(?:\.[\w*-]+)+|rs(?:bb?|h)\b)", re.I)


def imdb(text: str) -> str:
    """Replace a run of `<br />` by a line break; keep other words in angle brackets."""
    return _TAGGED_BREAKS.sub("\n", text)


def yelp(text: str) -> str:
    """Undo escapes.  Remove quotes around the text if all other quotes in it are escaped."""
    cell = _CELL.fullmatch(text)
    return _SPELLED.sub(lambda match: _spelled(match[0]), cell[1] if cell else text)


def _spelled(escape: str) -> str:
    if escape.startswith("\\u"):
        return str(json.loads(f'"{escape}"')).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return {"\\n": "\n", "\\": " "}.get(escape, '"')


def ag_news(text: str) -> str:
    r"""Replace entities by characters, join `country #39;s`, and replace `\$` by $, other backslashes by spaces."""
    text = _ENTITY.sub(lambda match: html.unescape(f"&{match[1]};"), _APART.sub("", text))
    return _BACKSLASHES.sub(" ", text.replace("\\$", "$"))


def newsgroups(text: str) -> str:
    """Remove the header, if there is one, and the names of groups.  A header may contain blank lines."""
    header, _, body = text.partition("\n\n")
    if not _HEADER.search(header):
        body = text
    while further_header := _MORE_HEADER.match(body):
        body = body[further_header.end() :]
    return _GROUP.sub("", body).strip()


def _babi(task: int) -> PublishedCorpus:
    return PublishedCorpus(
        f"bAbI task {task}: where is something, after {task} supporting fact{'s' * (task > 1)}",
        Layout(("passage", "supporting", "question", "answer"), row_layouts.story),
        HubSource("facebook/babi_qa", f"en-10k-qa{task}", exported=True),
        Layout(("story",), row_layouts.nested_story),
        validation_from=_last_stories,
    )


def _last_stories(train: Sequence[Example]) -> int:
    """The start of the last tenth of the stories.

    A story has several questions, and each passage continues the one before.  The questions of a story stay in one
    split, so that validation passages do not overlap with training passages.
    """
    starts = [i for i in range(len(train)) if i == 0 or not train[i].text.startswith(train[i - 1].text)]
    held_out = len(starts) // 10
    return starts[-held_out] if held_out else len(train)


SENTIMENT = {0: "negative", 1: "positive"}
INFERENCE = {0: "entailment", 1: "neutral", 2: "contradiction"}
TRAIN_AND_VALIDATION = {"train": "train", "validation": "validation"}

PUBLISHED_CORPORA: dict[str, PublishedCorpus] = {
    "sst2": PublishedCorpus(
        "sentiment of sentences from film reviews",
        Layout(("text", "tokens", "token_sentiment", "label"), row_layouts.marked_words, SENTIMENT),
        HubSource("stanfordnlp/sst2", splits=TRAIN_AND_VALIDATION),  # the hub's test split has no labels
        Layout(("sentence", "label"), row_layouts.text, SENTIMENT),
    ),
    "tweet_emotion": PublishedCorpus(
        "emotion of tweets",
        Layout(("text", "label"), row_layouts.text, {0: "anger", 1: "joy", 2: "optimism", 3: "sadness"}),
        HubSource("cardiffnlp/tweet_eval", "emotion"),
    ),
    "tweet_hate": PublishedCorpus(
        "hate speech in tweets (offensive text)",
        Layout(("text", "label"), row_layouts.text, {0: "non-hate", 1: "hate"}),
        HubSource("cardiffnlp/tweet_eval", "hate"),
    ),
    "rotten_tomatoes": PublishedCorpus(
        "sentiment of sentences from film reviews; overlaps with sst2: never train on one and test on the other",
        Layout(("text", "label"), row_layouts.text, SENTIMENT),
        HubSource("cornell-movie-review-data/rotten_tomatoes"),
    ),
    "imdb": PublishedCorpus(
        "sentiment of long film reviews",
        Layout(("text", "label"), row_layouts.cleaned(imdb), SENTIMENT),
        HubSource("stanfordnlp/imdb"),
    ),
    "newsgroups_sport": PublishedCorpus(
        "newsgroup postings about baseball or hockey, without headers",
        Layout(("text", "label"), row_layouts.cleaned(newsgroups), {0: "baseball", 1: "hockey"}),
        HubSource("SetFit/20_newsgroups"),
        Layout(
            ("text", "label_text"),
            row_layouts.cleaned(newsgroups),
            {"rec.sport.baseball": "baseball", "rec.sport.hockey": "hockey"},
        ),
    ),
    "ag_news": PublishedCorpus(
        "topic of news in brief",
        Layout(
            ("text", "label"), row_layouts.cleaned(ag_news), {0: "World", 1: "Sports", 2: "Business", 3: "Sci/Tech"}
        ),
        HubSource("fancyzhx/ag_news"),
    ),
    "yelp_polarity": PublishedCorpus(
        "sentiment of reviews of businesses",
        Layout(("text", "label"), row_layouts.cleaned(yelp), SENTIMENT),
        HubSource("fancyzhx/yelp_polarity"),
    ),
    "babi_1": _babi(1),
    "babi_2": _babi(2),
    "babi_3": _babi(3),
    "snli": PublishedCorpus(
        "does a picture's caption entail a sentence, contradict it, or neither",
        Layout(("premise", "hypothesis", "label"), row_layouts.pair, INFERENCE),
        HubSource("stanfordnlp/snli"),
    ),
    "multinli": PublishedCorpus(
        "the same for ten genres of text; test is from the genres of train, test_mismatched from others",
        Layout(("premise", "hypothesis", "label"), row_layouts.pair, INFERENCE),
        HubSource(
            "nyu-mll/multi_nli",
            splits={"train": "train", "test": "validation_matched", "test_mismatched": "validation_mismatched"},
        ),
        files=SAME_SPLITS | {"test": "test_matched", "test_mismatched": "test_mismatched"},
    ),
    "movie_rationales": PublishedCorpus(
        "sentiment of film reviews, with the passages that people gave as their reasons",
        Layout(("text", "evidence_start", "evidence_end", "label"), row_layouts.review, SENTIMENT),
        HubSource("eraser-benchmark/movie_rationales", exported=True),
        Layout(("review", "evidences", "label"), row_layouts.phrased_review, SENTIMENT),
    ),
}
