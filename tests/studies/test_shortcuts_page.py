"""The tables and the text of docs/results/shortcuts.md about black boxes are those of the records."""

from statistics import mean
from typing import Any

import pytest
from scipy.stats import ttest_ind

from result_pages import RESULTS, missing

PAGE = RESULTS / "shortcuts.md"
TEXTS = ("planted", "imdb", "yelp_polarity")
IMAGES, FASHION, MNIST = ("mnist_3_8", "fashion_mnist_pullover_shirt"), "fashion_mnist_pullover_shirt", "mnist_3_8"
PRETRAINED, RANDOM_QUERY, PLAIN = "l2x-y-random-pretraining", "l2x-y-random-query", "l2x-y-plain"
PRETRAINING, NEUTRAL, WEIGHTED = "random-pretraining", "mask-neutral", "l2x-y-mask-neutral"
WEIGHTED_ROWS = [f"{name}-{kind}" for kind in ("simple", "cnn") for name in (WEIGHTED, f"{WEIGHTED}-wide")]


@pytest.fixture
def cells() -> Any:
    from studies.black_boxes.table import load

    return load()


def welch(first: list[float], second: list[float]) -> tuple[float, float, float]:
    """Difference of the means, and its 95 % interval."""
    limits = ttest_ind(first, second, equal_var=False).confidence_interval()
    return mean(first) - mean(second), limits.low, limits.high


def test_the_tables_of_black_boxes_are_those_of_the_records(cells: Any) -> None:
    from studies.black_boxes.table import tables

    page, found = PAGE.read_text(encoding="utf-8"), tables(cells)
    assert set(found) == {*TEXTS, *IMAGES}
    assert [corpus for corpus, table in found.items() if table not in page] == []


def test_every_row_has_all_its_seeds(cells: Any) -> None:
    from studies.black_boxes.plan import FILLS, IMAGE_ROWS, ROWS, UNTRAINED

    for corpus in TEXTS:
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
    assert not missing([f"are made from the {count} records of"], PAGE)


def test_the_text_about_texts_has_the_numbers_of_the_records(cells: Any) -> None:
    from studies.black_boxes.table import FIDELITY, MASK, POST_HOC, values

    def scores(corpus: str, row: str, measure: str = POST_HOC) -> list[float]:
        return sorted(values(cells[corpus, ""][row], measure))

    def means(corpus: str, *rows: str) -> list[float]:
        return [mean(scores(corpus, row)) for row in rows]

    def difference(row: str, other: str) -> tuple[float, float, float]:
        return welch(scores("yelp_polarity", row), scores("yelp_polarity", other))

    rows = [f"{name}-{kind}" for name in (PRETRAINED, RANDOM_QUERY) for kind in ("simple", "cnn")]
    lowest = [scores("planted", row)[0] for row in rows]
    worst = min(cells["planted", ""][f"{RANDOM_QUERY}-simple"], key=lambda run: run[FIDELITY])
    leaking, ail = scores("planted", f"{PLAIN}-simple"), scores("planted", "ail")
    wide = [f"l2x-y-mask-neutral-wide-{kind}" for kind in ("simple", "cnn")]
    losses, fidelities = (
        sorted(value for row in wide for value in scores("planted", row, measure)) for measure in (MASK, FIDELITY)
    )
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
        f"fidelity is at most {fidelities[-1]:.2f} in all ten runs ({fidelities[0]:.3f} in one), and post-hoc "
        f"accuracy at most {max(scores('planted', row)[-1] for row in wide):.3f}",
        f"(at most {losses[4]:.3f} nats)",
        f"leaks in four of five seeds ({ail[0]:.3f} to {ail[3]:.3f}; the fifth has {ail[4]:.3f})",
        f"L2X falls from {yelp[0]:.3f} to {yelp[1]:.3f}** with the simple approximator",
        f"({yelp[4]:.3f} and {pretrained:.3f}; every seed {seeds[0]:.3f} and {seeds[1]:.3f} or more)",
        f"L2X has {yelp[2]:.0%} without ŷ, {yelp[3]:.0%} with it (no difference can be shown) and {pretrained:.0%} "
        "with random pretraining".replace("%", " %"),
        "(difference {:.3f}, 95 % CI {:.2f} to {:.2f})".format(*difference("l2x", f"{PLAIN}-simple")),
        "({:.3f} and {:.3f}; {:.2f} to {:.2f})".format(*yelp[2:4], *difference("l2x-cnn", f"{PLAIN}-cnn")[1:]).replace(
            "; -", "; −"
        ),
        f"it has {min(positions):.3f}",
    ]
    assert not missing(sentences, PAGE)
    assert sum(loss < 0.5 for loss in losses) == 5
    assert sum(0.685 < loss < 0.795 for loss in positions) == len(positions) - 1 == 59


class Imdb:
    """Scores of the rows of L2X on IMDB."""

    def __init__(self, cells: Any) -> None:
        self.cells = cells

    def scores(self, row: str, measure: str = "post-hoc-accuracy", corpus: str = "imdb") -> list[float]:
        return sorted(run[measure] for run in self.cells[corpus, ""][row])

    def mean(self, row: str, measure: str = "post-hoc-accuracy") -> str:
        return f"{mean(self.scores(row, measure)):.3f}"

    def difference(self, row: str, other: str, corpus: str = "imdb") -> tuple[float, float, float]:
        return welch(self.scores(row, corpus=corpus), self.scores(other, corpus=corpus))


@pytest.fixture
def imdb(cells: Any) -> Imdb:
    return Imdb(cells)


def test_the_claims_about_imdb_have_the_numbers_of_the_records(imdb: Imdb) -> None:
    plain, pretrained = (mean(imdb.scores(f"{name}-cnn")) for name in (PLAIN, PRETRAINED))
    best, highest = (max(summary(imdb.scores(row)) for row in WEIGHTED_ROWS) for summary in (mean, max))
    simple, cnn = (imdb.difference(f"{WEIGHTED}-{kind}", f"{PLAIN}-{kind}") for kind in ("simple", "cnn"))
    sentences = [
        f"[{100 * plain:.0f} % with ŷ and {100 * pretrained:.0f} % with random pretraining]",
        f"L2X with ŷ is {plain:.3f}, of random pretraining {pretrained:.3f}, and of mask-neutral weighting at best "
        f"{best:.3f} (without it {plain:.3f} with the same approximator",
        f"mitigates leakage of L2X: {pretrained:.3f} on IMDB (paper 0.971)",
        f"in any run (at most {highest:.3f}). A gain over L2X with ŷ cannot be shown: "
        "{:.3f} (95 % CI {:.2f} to {:.2f}), with the CNN {:.3f} ({:.2f} to {:.2f}); the paper has 0.455".format(
            *simple, *cnn
        ),
        f"mitigates leakage of L2X on IMDB ({imdb.mean(f'{RANDOM_QUERY}-simple')})",
    ]
    assert not missing(sentences, PAGE)
    gains = [imdb.difference(f"{name}-cnn", f"{PLAIN}-cnn") for name in (WEIGHTED, f"{WEIGHTED}-wide")]
    assert all(low < 0 < high for _, low, high in gains)


def test_the_text_below_the_table_of_imdb_has_the_numbers_of_the_records(imdb: Imdb) -> None:
    plain = imdb.scores(f"{PLAIN}-cnn")
    lowest = {
        name: [imdb.scores(f"{name}-{kind}")[0] for kind in ("cnn", "simple")] for name in (PRETRAINED, RANDOM_QUERY)
    }
    fall = "(CNN; difference {:.3f}, 95 % CI {:.2f} to {:.2f};".format(*imdb.difference("l2x-cnn", f"{PLAIN}-cnn"))
    approximators = f"{PRETRAINED}-cnn", f"{PRETRAINED}-simple"
    on_imdb, on_yelp = (imdb.difference(*approximators, corpus) for corpus in ("imdb", "yelp_polarity"))
    sentences = [
        f"L2X falls from {imdb.mean('l2x-cnn')} to {imdb.mean(f'{PLAIN}-cnn')}** {fall} simple approximator: from "
        f"{imdb.mean('l2x')} to {imdb.mean(f'{PLAIN}-simple')})",
        f"(CNN: {plain[0]:.3f} to {plain[-1]:.3f}). In four of five seeds the black box is worse than with ten random "
        f"words ({imdb.mean('random')})",
        f"reaches {imdb.mean(f'{PRETRAINED}-cnn')}, {imdb.difference(f'{PRETRAINED}-cnn', 'l2x-cnn')[0]:.2f} above "
        f"L2X**, and at least {lowest[PRETRAINED][0]:.3f} in every seed (simple approximator "
        f"{lowest[PRETRAINED][1]:.3f})",
        "({:.3f}, 95 % CI {:.3f} to {:.3f}, and {:.3f}, {:.3f} to {:.3f})".format(*on_imdb, *on_yelp),
        "higher by {:.3f} ({:.3f} to {:.3f})".format(*imdb.difference(*approximators[::-1], "planted")),
        f"Random-query reaches {lowest[RANDOM_QUERY][1]:.3f} or more (CNN {lowest[RANDOM_QUERY][0]:.3f})",
        f"It does not leak here in any seed ({imdb.scores('ail')[0]:.3f} or more)",
    ]
    assert not missing(sentences, PAGE)
    assert sum(score < imdb.scores("random")[0] for score in plain) == 4


def test_the_text_about_weighting_on_imdb_has_the_numbers_of_the_records(imdb: Imdb) -> None:
    from studies.black_boxes.table import FIDELITY, MASK
    from studies.tables import mean_and_half

    plain_rows = [f"{PLAIN}-{kind}" for kind in ("simple", "cnn")]
    guess, probe = ([loss for row in rows for loss in imdb.scores(row, MASK)] for rows in (plain_rows, WEIGHTED_ROWS))
    accuracy = [score for row in WEIGHTED_ROWS for score in imdb.scores(row)]
    fidelity = [imdb.mean(row, FIDELITY) for row in WEIGHTED_ROWS]
    halves = [mean_and_half(imdb.scores(row))[1] for row in WEIGHTED_ROWS]
    sentences = [
        f"a loss of {min(guess):.2f} to {max(guess):.2f} nats; a guess has 0.69. With mask-neutral weighting it has "
        f"{min(probe):.2f} to {max(probe):.2f}.",
        f"In {sum(loss >= 0.6855 for loss in probe)} of {len(probe)} runs it has at least 0.686",
        f"fails in every run ({min(accuracy):.3f} to {max(accuracy):.3f})",
        f"({min(fidelity)} to {max(fidelity)}, plain {imdb.mean(plain_rows[0], FIDELITY)} and "
        f"{imdb.mean(plain_rows[1], FIDELITY)}; not significant)",
        "are {:.3f} and {:.3f} with the simple one, {:.3f} and {:.3f} with the CNN".format(*halves),
    ]
    assert not missing(sentences, PAGE)


def test_the_text_about_attention_has_the_numbers_of_the_records() -> None:
    from studies.default_tokens.run import plan
    from studies.default_tokens.table import FILES, table
    from studies.tables import read_records

    records = read_records(FILES)
    assert sorted(run["job"] for run in records) == sorted(job.id for job in plan(5))
    assert table() in PAGE.read_text(encoding="utf-8")

    def scores(encoder: str, technique: str, measure: str) -> list[float]:
        return [run[measure] for run in records if (run["encoder"], run["technique"]) == (encoder, technique)]

    def fall(encoder: str, technique: str, measure: str, scale: float = 1) -> tuple[float, ...]:
        """By how much the mean is below vanilla's, and the 95 % interval."""
        return tuple(scale * x for x in welch(scores(encoder, "vanilla", measure), scores(encoder, technique, measure)))

    def percent(encoder: str, technique: str) -> str:
        return f"{100 * mean(scores(encoder, technique, 'mass')):.0f} %"

    def average(encoder: str, technique: str, measure: str, digits: int = 3) -> str:
        return f"{mean(scores(encoder, technique, measure)):.{digits}f}"

    probe = mean(run["terms"][-1]["mask"] for run in records if run["job"].startswith(f"pooling.{NEUTRAL}"))
    rise, low, high = fall("pooling", PRETRAINING, "test", -1)
    by_label = [mean(run["defaults"][k] for run in records if run["job"].startswith("rcnn.vanilla")) for k in (1, 0)]
    sentences = [
        f"test accuracy falls from {average('rcnn', 'vanilla', 'test')} to {average('rcnn', PRETRAINING, 'test')}.",
        f"it leaves {percent('pooling', NEUTRAL)} of the attention on tokens without meaning (without it "
        f"{percent('pooling', 'vanilla')}; paper 7 %). With an RCNN it is {percent('rcnn', NEUTRAL)} (without it "
        f"{percent('rcnn', 'vanilla')};",
        f"with pooling they get {percent('pooling', 'vanilla')} of the attention",
        f"have {100 * by_label[0]:.0f} % and negative ones {100 * by_label[1]:.0f} %, in the paper 17 and 85 %",
        f"reduces it to {percent('pooling', PRETRAINING)}**, and the gap from "
        f"{average('pooling', 'vanilla', 'gap', 2)} to {average('pooling', PRETRAINING, 'gap', 2)}.",
        f"Test accuracy does not fall (+{rise:.3f}, 95 % CI {high:.3f} to {low:.3f}); training accuracy falls from "
        f"{average('pooling', 'vanilla', 'train')} to {average('pooling', PRETRAINING, 'train')}.",
        f"({percent('rcnn', 'vanilla')[:-2]} to {percent('rcnn', PRETRAINING)}; 95 % CI of the difference "
        "{:.0f} to {:.0f} points)".format(*fall("rcnn", PRETRAINING, "mass", 100)[1:]),
        f"({average('rcnn', 'vanilla', 'gap', 2)} and {average('rcnn', PRETRAINING, 'gap', 2)}; 95 % CI of the "
        "difference {:.2f} to {:.2f}), and".format(*fall("rcnn", PRETRAINING, "gap")[1:]),
        f"test accuracy falls by {fall('rcnn', PRETRAINING, 'test')[0]:.3f}.",
        "by {:.1f} points (95 % CI {:.1f} to {:.1f}); the".format(*fall("pooling", NEUTRAL, "mass", 100)),
        f"predicts the label from the weights ({probe:.3f} nats). With the RCNN the reduction is "
        "{:.1f} points ({:.2f} to {:.1f})".format(*fall("rcnn", NEUTRAL, "mass", 100)),
        f"from the {len(records)} records of `studies/records/default_tokens-*.jsonl.gz`",
    ]
    assert not missing(sentences, PAGE)


def test_the_text_about_images_has_the_numbers_of_the_records(cells: Any) -> None:
    from studies.black_boxes.table import FIDELITY, MASK, POST_HOC, values

    def score(corpus: str, fill: str, row: str, measure: str = POST_HOC) -> float:
        return mean(values(cells[corpus, fill][row], measure))

    pretrained = f"{PRETRAINED}-cnn"
    gray = values(cells[MNIST, "gray"]["l2x-cnn"], POST_HOC)
    zero = {row: score(MNIST, "zero", row) for row in cells[MNIST, "zero"]}
    by_fill = {row: min(score(MNIST, fill, row) for fill in ("mean", "zero", "gray")) for row in zero}
    assert [row for row, lowest in by_fill.items() if lowest > 0.85] == [pretrained]
    assert sum(value > zero[pretrained] for value in zero.values()) == 8
    assert max(zero, key=lambda row: zero[row]) == "vibi"
    runs = [run for (_, fill), rows in cells.items() if fill for row in rows.values() for run in row if MASK in run]
    losses, reader = sorted(run[MASK] for run in runs), "independent-reader-accuracy"
    constant = [abs(run[f"{reader}/random-words"] - run[f"{reader}/no-words"]) < 0.01 for run in runs]
    neutral, plain = (
        [score(corpus, "mean", row) for corpus in IMAGES] for row in ("l2x-y-mask-neutral-cnn", f"{PLAIN}-cnn")
    )
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
        f"in {sum(loss < 0.3 for loss in losses)} of {len(losses)} runs (at most {losses[-7]:.2f} nats; the other six "
        f"have {losses[-6]:.2f} to {losses[-1]:.2f})",
        f"images it has {neutral[0]:.3f} and {neutral[1]:.3f}, without it {plain[0]:.3f} and {plain[1]:.3f}",
        f"a constant prediction in {sum(constant)} of {len(constant)} runs",
    ]
    assert not missing(sentences, PAGE)


def test_the_gaps_of_the_second_study_are_those_of_the_records(cells: Any) -> None:
    """A gap of more than 0.05 to the reader and to the black box, on texts."""

    def warned(*rows: str) -> list[bool]:
        runs = [run for corpus in TEXTS for row in rows for run in cells[corpus, ""][row]]
        return [min(run["leakage-gap"], run["leakage-gap/black-box"]) > 0.05 for run in runs]

    def both(name: str) -> list[str]:
        return [f"{name}-{kind}" for kind in ("simple", "cnn")]

    leaking = warned(*both(PLAIN), *both("l2x-y-mask-neutral"))
    other = warned("l2x", "l2x-cnn", *both(PRETRAINED), *both(RANDOM_QUERY))
    exceed = (
        f"both gaps exceed 0.05 in {sum(leaking)} of {len(leaking)} runs of L2X with ŷ, plain or mask-neutral with "
        "the usual clip, and in"
    )
    wide, ail = warned(*both("l2x-y-mask-neutral-wide")), warned("ail")
    sentences = [
        f"{exceed} {sum(other)} of {len(other)} of L2X without ŷ",
        f"With clip 10⁶ both gaps exceed 0.05 in {sum(wide)} of {len(wide)} runs, and in none of the ten on",
        f"AIL: in {sum(ail[:5])} of 5 on the planted corpus, and in {sum(ail[5:])} of {len(ail[5:])} on IMDB",
    ]
    assert not missing(sentences, PAGE)
    assert not any(wide[:10])
    arbitrary = [run for run in cells["planted", ""][f"{PLAIN}-simple"] if run["independent-reader-accuracy"] == 1]
    assert [round(run["post-hoc-accuracy"], 1) for run in arbitrary] == [0.5]
