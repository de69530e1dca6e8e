"""Hotel reviews whose label one sentence decides, while the first sentence agrees with it in most training texts.

    "The room was spotless and quiet."      decides the label; at a random position after the first sentence
    "The location was perfect."             the first sentence; it agrees with the label in `agreement` of the texts
    "We stayed three nights in May."        three to five fillers, independent of the label

With `agreement` = 0.5 the first sentence is independent of the label, as in test texts.
"""

import random

LABELS = ("bad", "good")
ROOM = (
    (
        "The room was dirty and smelled of smoke.",
        "Our room was tiny and very loud.",
        "The room had mold on the walls.",
        "Our room was cold and the bed was broken.",
        "The room looked worn and shabby.",
    ),
    (
        "The room was spotless and quiet.",
        "Our room was large and bright.",
        "The room had a lovely soft bed.",
        "Our room was warm and beautifully furnished.",
        "The room looked fresh and modern.",
    ),
)
"""Sentences that decide the label, by label."""
FIRST = (
    (
        "The location was far from everything.",
        "The station was a long walk away.",
        "The neighborhood was noisy.",
        "The street outside was under construction.",
    ),
    (
        "The location was perfect.",
        "The station was just around the corner.",
        "The neighborhood was charming.",
        "The street outside was calm and green.",
    ),
)
FILLERS = (
    "We stayed three nights in May.",
    "My sister came along with her children.",
    "We booked through the website.",
    "Breakfast is served from seven to ten.",
    "The lobby has a large clock.",
    "There is a bus stop in front of the door.",
    "We arrived late in the evening.",
    "The elevator goes to the sixth floor.",
    "They accept all credit cards.",
    "The pool opens in June.",
)


def room_reviews(count: int, seed: int, agreement: float = 0.8) -> tuple[list[str], list[str], list[str]]:
    """Texts, labels, and the sentence of each text that decides its label."""
    draw = random.Random(seed)
    texts, labels, rooms = [], [], []
    for _ in range(count):
        label = draw.randrange(2)
        first = draw.choice(FIRST[label if draw.random() < agreement else 1 - label])
        room = draw.choice(ROOM[label])
        rest = [room, *draw.sample(FILLERS, draw.randint(3, 5))]
        texts.append(" ".join([first, *draw.sample(rest, len(rest))]))
        labels.append(LABELS[label])
        rooms.append(room)
    return texts, labels, rooms
