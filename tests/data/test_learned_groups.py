"""Groups that do not lower macro-F1."""

import random

from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline

from steadygaze.data.learned_groups import halve, learn_groups
from steadygaze.data.synonym_groups import SynonymGroups

FILLER = ("plot", "cast", "music", "ending", "story")
GROUPS = SynonymGroups((("splendid", "dreadful"), ("film", "movie"), ("good", "fine")))


def corpus(number: int, seed: int) -> tuple[list[str], list[int]]:
    """splendid and dreadful define the classes; film and movie do not; good and fine are one word."""
    rng = random.Random(seed)
    labels = [i % 2 for i in range(number)]
    words = [("dreadful", rng.choice(["good", "fine"]) if rng.random() < 0.5 else "splendid") for _ in labels]
    texts = [f"{words[i][y]} {rng.choice(['film', 'movie'])} {rng.choice(FILLER)}" for i, y in enumerate(labels)]
    return texts, labels


def test_merges_that_lower_macro_f1_are_left_out() -> None:
    learned = learn_groups(GROUPS, corpus(200, 0), corpus(80, 1))
    assert learned.groups.groups == (("film", "movie"), ("good", "fine"))
    assert [set(pair) for pair in learned.rejected] == [{"splendid", "dreadful"}]
    assert learned.score >= learned.score_without == 1.0
    assert learned.merges == 3


def test_merges_of_a_group_with_an_absent_representative_are_tested() -> None:
    """The words that occur would be merged, through a representative that does not."""
    groups = SynonymGroups((("tremendous", "splendid", "dreadful"), ("film", "movie")))
    learned = learn_groups(groups, corpus(200, 0), corpus(80, 1))
    assert learned.rejected == (("dreadful", "splendid"),)
    assert learned.groups.groups == (("tremendous", "splendid"), ("film", "movie"))
    assert learned.merges == 2


def test_groups_that_cost_nothing_take_two_evaluations() -> None:
    harmless = SynonymGroups((*GROUPS.groups[1:], ("absent", "unheard")))
    learned = learn_groups(harmless, corpus(200, 0), corpus(80, 1))
    assert learned.groups == harmless
    assert learned.evaluations == 2
    assert learned.merges == 2


def test_the_score_is_that_of_a_regression_on_rewritten_texts() -> None:
    (texts, labels), (held_out, gold) = corpus(60, 2), corpus(60, 3)
    noisy = [label if i % 5 else 1 - label for i, label in enumerate(labels)]

    def macro_f1(*replaced: tuple[str, str]) -> float:
        def rewrite(text: str) -> str:
            for word, name in replaced:
                text = text.replace(word, name)
            return text

        model = make_pipeline(TfidfVectorizer(token_pattern=r"\S+"), LogisticRegression(C=10.0, max_iter=1000))
        model.fit([rewrite(text) for text in texts], noisy)
        return float(f1_score(gold, model.predict([rewrite(text) for text in held_out]), average="macro"))

    groups = SynonymGroups((("film", "movie"), ("good", "fine")))
    learned = learn_groups(groups, (texts, noisy), (held_out, gold))
    assert learned.score_without == macro_f1()
    if not learned.rejected:
        assert learned.score == macro_f1(("movie", "film"), ("fine", "good"))


@given(st.sets(st.integers(0, 40)), st.integers(1, 41))
def test_halving_leaves_out_exactly_the_harmful_merges(harmful: set[int], number: int) -> None:
    merges = [(i, 0) for i in range(number)]
    calls = []

    def score(batch: list[tuple[int, int]]) -> float:
        calls.append(batch)
        return -sum(word in harmful for word, _ in batch)

    accepted, reached, evaluations = halve(merges, score, 0.0)
    assert accepted == [merge for merge in merges if merge[0] not in harmful]
    assert reached == 0
    assert evaluations == len(calls) <= 2 * number


def test_the_number_of_evaluations_is_limited() -> None:
    accepted, _, evaluations = halve([(i, 0) for i in range(10_000)], lambda batch: -float(len(batch) > 0), 0.0)
    assert not accepted
    assert evaluations <= 201
