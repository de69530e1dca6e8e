"""The certificate of substitutions: its certified share, and attacks on certified texts.

    share    texts with a certified label and certified top-k words, under substitution of every word of the table
    attack   greedy and beam search over the table, on every certified text and every text with a counterexample; no
             certified text may be broken.  Positions are found without the code of the certificate.  With a
             certificate by sampling, the attack is on the smoothed model: label shares of random samples of each
             rewrite

Without a model, one is trained on planted reviews and certified with their synonyms.  Texts of a corpus are a random
sample of the test split.  Exits with 1 where an attack succeeds.
"""

import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

import steadygaze as sg
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.certificates.rewrites import Choices, TextPositions
from steadygaze.certificates.substitution_plans import model_substitutions
from steadygaze.core.maths.smoothing_bounds import Floats
from steadygaze.data.planted.lexicon import SYNONYMS
from steadygaze.data.substitutions import Substitutions
from steadygaze.data.synonym_groups import fold_word
from steadygaze.data.synonym_rewriting import cased_alternatives, match_case
from steadygaze.data.synonym_tables import Table, as_table
from steadygaze.data.word_segmentation import LETTER
from steadygaze.results.substitution_certificates import SubstitutionCertificates

ATTACK_SAMPLES = 50
"""Random samples of each rewrite in an attack on the smoothed model."""
SMOOTHED_TEXTS = 4
"""Texts of an attack on the smoothed model, which takes many forward passes."""


def subject(
    model: str | None, data: str, substitutions: str | None, device: str
) -> tuple[ModelAdapter, list[str], Table]:
    """The model, the texts and the table."""
    if model is None:
        corpus = sg.load_corpus("planted-reviews:sizes=[800,100,100]")
        train = corpus.splits["train"]
        clf = sg.TextClassifier("bilstm", epochs=1, device="cpu")
        clf.fit([example.text for example in train], [example.label for example in train])
        return as_adapter(clf), [example.text for example in corpus.splits["test"]], as_table(SYNONYMS, folded=True)
    texts = [example.text for example in sg.load_corpus(data).splits["test"]]
    assert substitutions is not None, "a model needs --substitutions"
    table = as_table(substitutions, folded=True)
    return as_adapter(model, device=device), texts, table


Predict = Callable[[list[str]], Floats]
"""Texts -> probabilities.  (N,C)"""


@dataclass(frozen=True)
class Target:
    """A text under attack."""

    positions: TextPositions
    options: list[dict[str, str]]
    """For each position the word and its alternatives, as written -> in lower case."""
    network: Substitutions

    def probabilities(self, predict: Predict, choices: Choices) -> Floats:
        """The model's probabilities for the rewrites.  (M,P) -> (M,C)"""
        return predict(self.positions.rewrites([list(row) for row in self.options], choices))

    def label_shares(self, predict: Predict, choices: Choices, samples: int) -> Floats:
        """The probabilities of the smoothed model, estimated by random samples of each rewrite.  (M,P) -> (M,C)"""
        random = np.random.default_rng(0)
        texts: list[str] = []
        for choice in choices:
            rows = zip(self.options, choice.tolist(), strict=True)
            chosen = [list(row.items())[index] for row, index in rows]
            sets = [[match_case(form, name) for name in self.network.perturbation_set(word)] for form, word in chosen]
            drawn = (random.random((samples, len(sets))) * [len(row) for row in sets]).astype(np.int64)
            texts += self.positions.rewrites(sets, drawn)
        probabilities = predict(texts)
        votes = np.eye(probabilities.shape[1])[probabilities.argmax(1)]
        return np.asarray(votes.reshape(len(choices), samples, -1).mean(1))


UNSPACED = LETTER.pattern
URL = re.compile(r"(?:https?://|www\.)\S*")
WORD = re.compile(
    rf"(?<![\d_\u00ad\u200c\u200d])(?<!\w['’])(?:(?!{UNSPACED})[^\W\d_])++"
    r"(?![\d_\u0300-\u036f\u00ad\u200c\u200d])(?!['’](?!(?:s|m|d|re|ve|ll)\b)\w)"
)
"""A run of letters: not a part of a contraction, of a word with an apostrophe, or of one with digits."""


def target_positions(text: str, words: frozenset[str]) -> TextPositions:
    """The positions of these words, without the tokenizer and the function of the certificate."""
    blank = URL.sub(lambda match: "_" * len(match[0]), text)
    spans = [match.span() for match in WORD.finditer(blank) if fold_word(match[0]) in words]
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    parts = tuple(text[edges[i] : edges[i + 1]] for i in range(0, len(edges), 2))
    return TextPositions(tuple(text[start:end] for start, end in spans), parts)


def target(text: str, network: Substitutions) -> Target:
    positions = target_positions(text, frozenset(network.nodes))
    options = []
    for form in positions.words:
        name = fold_word(form) or form
        options.append({form: name, **cased_alternatives(form, network.alternatives.get(name, ()))})
    return Target(positions, options, network)


def attack(text: Target, probabilities: Callable[[Choices], Floats], column: int, width: int) -> bool:
    """Whether beam search finds a rewrite with another label.  Width 1: greedy."""
    beam = np.zeros((1, len(text.options)), np.int64)
    for _ in text.options:
        rows = [
            np.concatenate([row[:t], [choice], row[t + 1 :]])
            for row in beam
            for t in range(len(text.options))
            if not row[t]
            for choice in range(1, len(text.options[t]))
        ]
        if not rows:
            return False
        choices = np.unique(np.stack(rows), axis=0)
        values = probabilities(choices)
        if (values.argmax(1) != column).any():
            return True
        beam = choices[np.argsort(values[:, column], kind="stable")[:width]]
    return False


def count_broken(adapter: ModelAdapter, certificates: SubstitutionCertificates, network: Substitutions) -> int:
    """Number of certified texts that an attack breaks; also prints how many others it breaks."""

    def predict(texts: list[str]) -> Floats:
        return adapter.predict_covered(texts, 512)[0]

    broken = 0
    for method, width in product(("exact", "sampling"), (1, 5)):
        rows = [row for row in certificates if row.method == method and (row.certified or row.counterexample)]
        rows = rows[:SMOOTHED_TEXTS] if method == "sampling" else rows
        results: Counter[bool] = Counter()
        for row in rows:
            text = target(row.text, network)
            values = partial(text.probabilities, predict)
            if method == "sampling":
                values = partial(text.label_shares, predict, samples=ATTACK_SAMPLES)
            results[row.certified] += attack(text, values, list(adapter.classes).index(row.label), width)
        numbers = [sum(row.certified == certified for row in rows) for certified in (True, False)]
        print(
            f"attack, {method}, beam {width}: {results[True]} of {numbers[0]} certified texts broken, "
            f"{results[False]} of {numbers[1]} with a counterexample"
        )
        broken += results[True]
    return broken


def run(
    *,
    model: str | None = None,
    data: str = "sst2",
    substitutions: str | None = None,
    device: str = "cpu",
    texts: int = 20,
    k: int = 5,
    samples: int = 1000,
) -> None:
    """`texts`: how many of the corpus."""
    adapter, corpus, table = subject(model, data, substitutions, device)
    chosen = [corpus[i] for i in np.random.default_rng(0).permutation(len(corpus))[:texts]]
    start = time.perf_counter()
    certificates = sg.certify(adapter, chosen, k=k, substitutions=table, samples=samples)
    assert isinstance(certificates, SubstitutionCertificates)
    print(f"{certificates}\n{time.perf_counter() - start:.1f} s for {len(chosen)} texts")
    network = model_substitutions(adapter.tokens, table, 100)
    if count_broken(adapter, certificates, network):
        raise SystemExit(1)
