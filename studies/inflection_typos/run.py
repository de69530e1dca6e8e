"""Label flips under one typo, and under one other inflected form per text, with and without groups.

Groups are files of `steadygaze synonyms build --inflection` (other forms that occur in the training texts) and, for
the model, of any options; without --groups, every word has its own id.  A typo inserts, leaves out or substitutes an
inner letter of a random word of at least four letters, or exchanges two neighboring ones.
"""

import random
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from sklearn.metrics import f1_score

import steadygaze as sg
from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.data.word_tokenizer import document_frequency
from steadygaze.estimator.resumable_training import columns

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def typo(word: str, chance: random.Random) -> str:
    kind, position = chance.randrange(4), chance.randrange(1, len(word) - 1)
    letter = chance.choice(LETTERS)
    if kind == 3:
        position = chance.randrange(1, len(word) - 2)
        return word[:position] + word[position + 1] + word[position] + word[position + 2 :]
    return word[:position] + ("" if kind == 1 else letter) + word[position + (kind > 0) :]


def with_typo(text: str, chance: random.Random) -> str:
    words = text.split()
    if positions := [i for i, word in enumerate(words) if word.isalpha() and len(word) > 3]:
        position = chance.choice(positions)
        words[position] = typo(words[position], chance)
    return " ".join(words)


def with_other_form(text: str, chance: random.Random, forms: SynonymGroups, known: dict[str, int]) -> str | None:
    """None: no word has another form."""
    words = text.split()
    pairs = [
        (i, form) for i, word in enumerate(words) for form in forms.members(word) if form != word and form in known
    ]
    if not pairs:
        return None
    position, form = chance.choice(pairs)
    return " ".join([*words[:position], form, *words[position + 1 :]])


def run(
    *,
    inflections: Annotated[Path, typer.Option()],
    groups: Path | None = None,
    data: str = "sst2",
    encoder: str = "average",
    vectors: str | None = None,
    device: str = "cpu",
    seed: int = 0,
    repeats: int = 5,
) -> None:
    splits = sg.load_corpus(data).splits
    train, validation, test = (columns(splits[name]) for name in ("train", "validation", "test"))
    clf = sg.TextClassifier(encoder, seed=seed, device=device, vectors=vectors, synonym_groups=groups).fit(
        *train, validation=validation
    )
    predicted, known = clf.predict(test[0]), document_frequency(train[0])
    forms = SynonymGroups.from_json(inflections.read_text())
    flips: dict[str, list[float]] = {"typo": [], "inflection": []}
    for repeat in range(repeats):
        chance = random.Random(repeat)
        flips["typo"].append(float(np.mean(clf.predict([with_typo(text, chance) for text in test[0]]) != predicted)))
        rewrites = [with_other_form(text, chance, forms, known) for text in test[0]]
        rows = [i for i, text in enumerate(rewrites) if text is not None]
        flips["inflection"].append(float(np.mean(clf.predict([rewrites[i] for i in rows]) != predicted[rows])))
    print(f"macro-F1 {f1_score(test[1], predicted, average='macro'):.3f}")
    for name, values in flips.items():
        print(f"label flips, one {name} per text: {np.mean(values):.2%}")
