"""Reviews whose label is the exclusive or of two sentences: no single sentence predicts it better than chance.

    "The room was warm."  XOR  "The street was loud."        two informative sentences, each with one of two adjectives
    "We stayed two nights."                                  fillers, the same in every review

A review has both informative sentences in a random order, and then all fillers in a random order.  Each sentence alone
is independent of the label, and so is its position.  A model that selects one sentence can predict the label only if
the choice of the sentence carries it.
"""

import random

TOXIC = ("You are a complete idiot.", "Shut up you moron.", "What a disgusting fool.", "Go away you loser.")
NEUTRAL = (
    "We stayed two nights.",
    "My sister came along.",
    "The house has a blue door.",
    "It rained on Monday.",
    "The train was late.",
    "I bought some bread.",
    "The park is large.",
    "He reads a book.",
)

INFORMATIVE = (("The room was warm.", "The room was cold."), ("The street was quiet.", "The street was loud."))
FILLERS = ("We stayed two nights.", "My sister came along.", "The house has a blue door.")
LABELS = ("bad", "good")


def xor_reviews(count: int, seed: int) -> tuple[list[str], list[str]]:
    """Texts, and labels that are the exclusive or of two sentences."""
    draw = random.Random(seed)
    texts, labels = [], []
    for _ in range(count):
        values = draw.randrange(2), draw.randrange(2)
        informative = [pair[value] for pair, value in zip(INFORMATIVE, values, strict=True)]
        sentences = [*draw.sample(informative, 2), *draw.sample(FILLERS, len(FILLERS))]
        texts.append(" ".join(sentences))
        labels.append(LABELS[values[0] ^ values[1]])
    return texts, labels


def one_sided_comments(count: int, seed: int, toxic: float) -> tuple[list[str], list[str]]:
    """Texts and labels.  A share `toxic` of the texts has one toxic sentence; all other sentences are neutral."""
    draw = random.Random(seed)
    labels = ["toxic" if draw.random() < toxic else "fine" for _ in range(count)]
    texts = [[*draw.sample(NEUTRAL, 4), draw.choice(TOXIC if label == "toxic" else NEUTRAL)] for label in labels]
    return [" ".join(draw.sample(sentences, 5)) for sentences in texts], labels
