"""The tables and the text of docs/results/shortcuts.md about black boxes are those of the records."""

from collections.abc import Iterable
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "results" / "shortcuts.md"
IMAGES, FASHION, MNIST = ("mnist_3_8", "fashion_mnist_pullover_shirt"), "fashion_mnist_pullover_shirt", "mnist_3_8"
PRETRAINED, RANDOM_QUERY, PLAIN = "l2x-y-random-pretraining", "l2x-y-random-query", "l2x-y-plain"


@pytest.fixture
def cells(bench: None) -> Any:
    from black_boxes_table import load

    return load()


def text() -> str:
    return " ".join(PAGE.read_text(encoding="utf-8").split())


def missing(sentences: Iterable[str]) -> list[str]:
    return [sentence for sentence in sentences if sentence not in text()]


def test_the_tables_of_black_boxes_are_those_of_the_records(cells: Any) -> None:
    """IMDB has no records yet."""
    from black_boxes_table import tables

    page, found = PAGE.read_text(encoding="utf-8"), tables(cells)
    assert set(found) == {"planted", "yelp_polarity", *IMAGES}
    assert [corpus for corpus, table in found.items() if table not in page] == []


def test_every_row_has_all_its_seeds(cells: Any) -> None:
    from black_boxes import FILLS, IMAGE_ROWS, ROWS, UNTRAINED

    for corpus in ("planted", "yelp_polarity"):
        assert {row: len(runs) for row, runs in cells[corpus, ""].items()} == {
            row: 1 if row in UNTRAINED else 5 for row in ROWS
        }
    for corpus in IMAGES:
        for fill in FILLS:
            rows = [row for row in IMAGE_ROWS if fill == "mean" or "wide" not in row]
            assert {row: len(runs) for row, runs in cells[corpus, fill].items()} == {
                row: 1 if row in UNTRAINED else 5 for row in rows
            }
    count = sum(len(runs) for rows in cells.values() for runs in rows.values())
    assert not missing([f"are made from the {count} records of"])


def test_the_text_about_texts_has_the_numbers_of_the_records(cells: Any) -> None:
    from black_boxes_table import FIDELITY, MASK, POST_HOC, values

    def scores(corpus: str, row: str, measure: str = POST_HOC) -> list[float]:
        return sorted(values(cells[corpus, ""][row], measure))

    def means(corpus: str, *rows: str) -> list[float]:
        return [mean(scores(corpus, row)) for row in rows]

    rows = [f"{name}-{kind}" for name in (PRETRAINED, RANDOM_QUERY) for kind in ("simple", "cnn")]
    lowest = [scores("planted", row)[0] for row in rows]
    worst = min(cells["planted", ""][f"{RANDOM_QUERY}-simple"], key=lambda run: run[FIDELITY])
    leaking, ail = scores("planted", f"{PLAIN}-simple"), scores("planted", "ail")
    wide = [f"l2x-y-mask-neutral-wide-{kind}" for kind in ("simple", "cnn")]
    losses = [loss for row in wide for loss in scores("planted", row, MASK)]
    yelp = means("yelp_polarity", "l2x", f"{PLAIN}-simple", "l2x-cnn", f"{PLAIN}-cnn", f"{PRETRAINED}-simple")
    seeds = [scores("yelp_polarity", f"{PRETRAINED}-{kind}")[0] for kind in ("simple", "cnn")]
    selectors = [row for row in cells["yelp_polarity", ""] if row.startswith("l2x")]
    positions = [loss for row in selectors for loss in scores("yelp_polarity", row, MASK)]
    pretrained = mean(scores("yelp_polarity", f"{PRETRAINED}-cnn"))
    sentences = [
        f"chance ({leaking[3]:.3f}; the fifth has {leaking[4]:.3f}), and worse than with five random words "
        f"({scores('planted', 'random')[0]:.3f})",
        f"{lowest[0]:.3f} or more in every seed ({lowest[1]:.3f} with the CNN)",
        f"{lowest[2]:.3f} or more ({lowest[3]:.3f}), also in seeds with a poor approximator "
        f"(fidelity {worst[FIDELITY]:.3f}: post-hoc {worst[POST_HOC]:.3f})",
        f"fidelity is at most {max(scores('planted', row, FIDELITY)[-1] for row in wide):.2f} in all ten runs, and "
        f"post-hoc accuracy at most {max(scores('planted', row)[-1] for row in wide):.3f}",
        f"(at most {sorted(losses)[4]:.3f} nats)",
        f"leaks in four of five seeds ({ail[0]:.3f} to {ail[3]:.3f}; the fifth has {ail[4]:.3f})",
        f"L2X falls from {yelp[0]:.3f} to {yelp[1]:.3f}** with the simple approximator",
        f"({yelp[4]:.3f} and {pretrained:.3f}; every seed {seeds[0]:.3f} and {seeds[1]:.3f} or more)",
        f"[{yelp[3]:.0%} and {pretrained:.0%}](#yelp".replace("%", " %"),
    ]
    assert not missing(sentences)
    assert sum(loss < 0.5 for loss in losses) == 5
    assert sum(0.685 < loss < 0.795 for loss in positions) == len(positions) - 1 == 59


def test_the_text_about_images_has_the_numbers_of_the_records(cells: Any) -> None:
    from black_boxes_table import FIDELITY, MASK, POST_HOC, values

    def score(corpus: str, fill: str, row: str, measure: str = POST_HOC) -> float:
        return mean(values(cells[corpus, fill][row], measure))

    pretrained = f"{PRETRAINED}-cnn"
    gray = values(cells[MNIST, "gray"]["l2x-cnn"], POST_HOC)
    zero = {row: score(MNIST, "zero", row) for row in cells[MNIST, "zero"]}
    by_fill = {row: min(score(MNIST, fill, row) for fill in ("mean", "zero", "gray")) for row in zero}
    assert [row for row, lowest in by_fill.items() if lowest > 0.85] == [pretrained]
    assert sum(value > zero[pretrained] for value in zero.values()) == 8
    assert max(zero, key=lambda row: zero[row]) == "vibi"
    losses = [
        score(corpus, fill, row, MASK)
        for corpus, fill in cells
        if fill
        for row, runs in cells[corpus, fill].items()
        if MASK in runs[0]
    ]
    neutral = [score(corpus, "mean", "l2x-y-mask-neutral-cnn") for corpus in IMAGES]
    sentences = [
        "as good as random-query ({:.3f} and {:.3f})".format(
            *(score(MNIST, "mean", row) for row in (pretrained, f"{RANDOM_QUERY}-cnn"))
        ),
        f"on Fashion-MNIST ({score(FASHION, 'mean', 'ail'):.3f}, paper 0.978)",
        f"best with black pixels ({zero['vibi']:.3f}), and wrong in {100 - 100 * score(MNIST, 'gray', 'vibi'):.0f} of "
        f"100 images with gray ones ({score(MNIST, 'gray', 'vibi'):.3f})",
        f"recovers the prediction ({score(MNIST, 'gray', 'vibi', FIDELITY):.3f})",
        f"L2X has {zero['l2x-cnn']:.3f} and {mean(gray):.3f}; its seeds with gray range from {min(gray):.3f} to "
        f"{max(gray):.3f}",
        "LIME has {:.3f} on MNIST with the mean and {:.3f} with gray; on Fashion-MNIST {:.3f} and {:.3f}".format(
            *(score(corpus, fill, "lime") for corpus in IMAGES for fill in ("mean", "gray"))
        ),
        f"CXPlain has {score(FASHION, 'mean', 'cxplain'):.3f} on Fashion-MNIST with the mean and "
        f"{score(FASHION, 'zero', 'cxplain'):.3f} with zero",
        f"({min(losses):.3f} to {max(losses):.2f} nats)",
        f"images {neutral[0]:.3f} and {neutral[1]:.3f} (paper 0.998 and 0.954)",
    ]
    assert not missing(sentences)
