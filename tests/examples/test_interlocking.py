"""Two sentences, one of them better: what selection, attention and A2R make of it, by enumeration and by theorem."""

import importlib
import itertools
import math
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize
from scipy.spatial.distance import jensenshannon
from scipy.special import expit
from scipy.stats import entropy

from interlocking_theory import _Pair, a2r, assumptions, attention, descend, selection, selection_slope, toy

TOY = toy()
SHARES = np.linspace(0, 1, 41)
STEP = SHARES[1]
EXACT = 1e-12
SEARCH_TOLERANCE = 1e-8
"""A loss whose weights were searched for: their errors enter it squared."""
WRONG = 0.05
"""Where a generator starts that nearly always selects the worse sentence."""
EXAMPLES = Path(__file__).parents[2] / "examples"


def some_joint(seed: int, words: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(2 * words**2)).reshape(words, words, 2)


def curve(rests: list) -> np.ndarray:
    return np.array([rest.loss for rest in rests])


def h(p: float) -> float:
    return float(entropy([p, 1 - p]))


def by_hand(joint: np.ndarray, policy: np.ndarray, conditioned: bool) -> float:
    """H(y | what is shown), text by text, in loops."""
    seen: dict[object, np.ndarray] = {}
    for x1 in range(len(joint)):
        for x2 in range(len(joint)):
            for word, which, probability in ((x1, 1, policy[x1, x2]), (x2, 2, 1 - policy[x1, x2])):
                key = (which, word) if conditioned else word
                seen[key] = seen.get(key, np.zeros(2)) + probability * joint[x1, x2]
    return sum(float(pair.sum() * entropy(pair)) for pair in seen.values())


# Selection.


def test_selection_in_the_toy_is_a_sentence_that_is_right_now_and_then() -> None:
    """The shown sentence has the label with probability 0.85 π₁ + (1 − 0.8)(1 − π₁): the loss is its entropy."""
    expected = [h(0.85 * share + 0.2 * (1 - share)) for share in SHARES]
    np.testing.assert_allclose(selection(TOY, SHARES[:, None, None]), expected, atol=EXACT)


@pytest.mark.parametrize("conditioned", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_selection_is_the_entropy_of_the_label_given_what_is_shown(seed: int, conditioned: bool) -> None:
    joint, policy = some_joint(seed), np.random.default_rng(seed).random((3, 3))
    assert selection(joint, policy, conditioned) == pytest.approx(by_hand(joint, policy, conditioned), abs=EXACT)


def test_no_predictor_reads_what_is_selected_better() -> None:
    joint, policy = some_joint(1), np.random.default_rng(1).random((3, 3))

    def loss(w: np.ndarray) -> float:
        each = [np.stack([np.logaddexp(0, z), np.logaddexp(0, -z)], -1) for z in (w[:, None], w[None])]
        return float((joint * (policy[..., None] * each[0] + (1 - policy[..., None]) * each[1])).sum())

    best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-9})
    assert selection(joint, policy) == pytest.approx(best.fun, abs=SEARCH_TOLERANCE)


@pytest.mark.parametrize("conditioned", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_theorem_1_selection_is_concave_also_where_the_policy_depends_on_the_text(seed: int, conditioned: bool) -> None:
    random = np.random.default_rng(seed)
    joint = some_joint(seed)
    policy, other = random.random((2, 200, 3, 3)).round(random.integers(0, 3))  # rounded to 0 digits: corners
    t = random.random((200, 1, 1))
    mixed = selection(joint, t * policy + (1 - t) * other, conditioned)
    straight = t[:, 0, 0] * selection(joint, policy, conditioned) + (1 - t[:, 0, 0]) * selection(
        joint, other, conditioned
    )
    assert (mixed >= straight - EXACT).all()
    assert (mixed > straight + 1e-6).any()


def test_theorem_1_in_the_toy_selection_bends_down_everywhere() -> None:
    assert (np.diff(selection(TOY, SHARES[:, None, None]), 2) < -1e-4).all()


def test_a_predictor_conditioned_on_the_selection_makes_selection_a_straight_line_to_the_better_sentence() -> None:
    """Constant policies only: π₁ H(y|x₁) + π₂ H(y|x₂).  Concave, and nothing interlocks."""
    expected = SHARES * h(0.85) + (1 - SHARES) * h(0.8)
    np.testing.assert_allclose(selection(TOY, SHARES[:, None, None], conditioned=True), expected, atol=EXACT)


def test_both_ends_are_minima_of_selection_and_the_better_sentence_is_the_lower() -> None:
    losses = selection(TOY, SHARES[:, None, None])
    assert losses[0] < losses[1]
    assert losses[-1] < losses[-2]
    assert losses[-1] < losses[0]


# Attention.


def test_attention_in_the_middle_worked_by_hand() -> None:
    """π₁ = ½: all weights are at the bound ln(.85/.15), so sentences that differ cancel out.

    Both right .85 · .8 = .68, both wrong .15 · .2 = .03, else .29:  .68 ln(1/.85) + .03 ln(1/.15) + .29 ln 2.
    """
    expected = 0.68 * math.log(1 / 0.85) + 0.03 * math.log(1 / 0.15) + 0.29 * math.log(2)
    assert attention(TOY, 0.5).loss == pytest.approx(expected, abs=SEARCH_TOLERANCE)
    assert np.abs(attention(TOY, 0.5).soft) == pytest.approx(np.full(4, math.log(0.85 / 0.15)))


@pytest.mark.parametrize("share", [0.1, 0.2, 0.6])
@pytest.mark.parametrize("conditioned", [True, False])
def test_attention_finds_the_best_weights_within_the_bound(share: float, conditioned: bool) -> None:
    """Against a grid over the weights of a predictor that treats praise and blame alike."""
    grid = np.linspace(-1, 1, 401) * math.log(0.85 / 0.15)
    first_weight, second_weight = np.meshgrid(grid, grid) if conditioned else (grid, grid)
    losses = np.zeros_like(first_weight)
    for x1, x2, y in np.ndindex(2, 2, 2):
        logit = share * first_weight * (2 * x1 - 1) + (1 - share) * second_weight * (2 * x2 - 1)
        losses += TOY[x1, x2, y] * np.logaddexp(0, -(2 * y - 1) * logit)
    result = attention(TOY, share, conditioned).loss
    assert losses.min() - 1e-4 < result <= losses.min() + SEARCH_TOLERANCE


def test_the_assumptions_of_theorem_2_hold_in_the_toy_and_attention_is_convex_as_stated() -> None:
    """L_a*'' = ∂²L_a/∂α₁² − what better weights save ≥ 2 (μ − l), since ‖α − α'‖² = 2 (α₁ − α₁')²."""
    strong, regret = assumptions(TOY, SHARES.tolist())
    assert strong > regret > 0
    bends = np.diff(curve([attention(TOY, share) for share in SHARES]), 2) / STEP**2
    assert bends.min() > 2 * (strong - regret)


def test_strong_convexity_and_regret_are_what_they_are_called() -> None:
    """μ by finite differences of the loss in α₁, l by what weights lose that are best elsewhere: three α₁, in loops."""
    shares = [0.1, 0.4, 0.8]
    softs = {share: attention(TOY, share).soft for share in shares}

    def loss(share: float, soft: np.ndarray) -> float:
        total = 0.0
        for x1, x2, y in np.ndindex(2, 2, 2):
            p = expit(share * soft[x1] + (1 - share) * soft[2 + x2])
            total -= TOY[x1, x2, y] * math.log(p if y else 1 - p)
        return total

    e = 1e-4
    bend = [(loss(a + e, w) - 2 * loss(a, w) + loss(a - e, w)) / e**2 for a in shares for w in softs.values()]
    regret = [
        (loss(a, softs[b]) - loss(a, softs[a])) / ((a - b) ** 2 + (b - a) ** 2) * 2
        for a in shares
        for b in shares
        if a != b
    ]
    result = assumptions(TOY, shares)
    assert result.strong == pytest.approx(min(bend) / 2, abs=1e-6)
    assert result.regret == pytest.approx(max(regret), abs=1e-6)


@pytest.mark.slow
def test_the_assumptions_are_enough_and_not_needed() -> None:
    joint = toy(0.9, 0.8)
    strong, regret = assumptions(joint, SHARES.tolist())
    assert strong < regret
    assert (np.diff(curve([attention(joint, share) for share in SHARES]), 2) > 0).all()


@pytest.mark.parametrize("seed", range(8))
def test_attention_that_distinguishes_sentences_is_convex_for_all_texts(seed: int) -> None:
    losses = curve([attention(some_joint(seed), share) for share in SHARES[::4]])
    assert (np.diff(losses, 2) > -SEARCH_TOLERANCE).all()


def test_a_counterexample_attention_that_cannot_distinguish_sentences_is_not_convex_and_interlocks() -> None:
    strong, regret = assumptions(TOY, SHARES.tolist(), conditioned=False)
    assert strong < regret
    low, high, end = curve([attention(TOY, share, conditioned=False) for share in (0.0, 0.45, 0.9)])
    assert high > (low + end) / 2 + 0.1
    assert descend(lambda share: attention(TOY, share, conditioned=False).slope, WRONG)[-1] == 0


def test_attention_has_its_minimum_between_the_ends() -> None:
    losses = curve([attention(TOY, share) for share in SHARES])
    assert 0.3 < SHARES[losses.argmin()] < 0.8
    assert losses.min() < losses[-1] - 0.05


# Both, and A2R between them.


@pytest.mark.parametrize("strength", [0.0, 0.3, 2.0, 20.0])
def test_all_curves_meet_at_the_ends(strength: float) -> None:
    for share, loss in ((0.0, h(0.8)), (1.0, h(0.85))):
        assert selection(TOY, share) == pytest.approx(loss, abs=EXACT)
        assert attention(TOY, share).loss == pytest.approx(loss, abs=SEARCH_TOLERANCE)
        assert attention(TOY, share, conditioned=False).loss == pytest.approx(loss, abs=SEARCH_TOLERANCE)
        assert a2r(TOY, share, strength).loss == pytest.approx(loss, abs=SEARCH_TOLERANCE)


@pytest.mark.parametrize("seed", range(5))
def test_attention_never_loses_more_than_selection_whatever_the_texts(seed: int) -> None:
    joint = some_joint(seed)
    for share in SHARES[::4]:
        assert attention(joint, share).loss <= selection(joint, share) + SEARCH_TOLERANCE


@pytest.mark.parametrize("strength", [0.1, 0.3, 1.0, 2.0, 5.0])
def test_a2r_lies_between_attention_and_selection(strength: float) -> None:
    for share in SHARES[2:-1:4]:
        result = a2r(TOY, share, strength).loss
        assert attention(TOY, share).loss + 1e-5 < result < selection(TOY, share) - 1e-5


def test_a2r_rises_with_its_strength_from_attention_itself() -> None:
    for share in (0.2, 0.5, 0.8):
        losses = curve([a2r(TOY, share, strength) for strength in (0.0, 0.3, 1.0, 2.0, 5.0)])
        assert losses[0] == pytest.approx(attention(TOY, share).loss, abs=SEARCH_TOLERANCE)
        assert (np.diff(losses) > 0).all()


def test_too_strong_a_tie_makes_predictors_agree_by_saying_nothing() -> None:
    """Then A2R's curve is not below selection's any more."""
    assert a2r(TOY, 0.9, 20.0).loss > selection(TOY, 0.9) + 0.05
    assert a2r(TOY, 0.5, 1000.0).loss == pytest.approx(math.log(2), abs=0.01)


def test_at_rest_neither_predictor_gains_by_moving() -> None:
    """The weights are the least of a total whose slopes are right."""
    pair = _Pair(TOY, 0.3, 1.0)
    start = np.random.default_rng(0).normal(size=6)
    assert check_grad(lambda w: pair.total(w)[0], lambda w: pair.total(w)[1], start) < 1e-6
    soft = a2r(TOY, 0.3, 1.0).soft
    hard = minimize(lambda w: pair.total(np.concatenate([w, soft]))[0], np.zeros(2), method="BFGS").x
    best = pair.total(np.concatenate([hard, soft]))[0]
    moved = soft + 0.01 * np.random.default_rng(1).normal(size=(50, 4))
    inside = np.clip(moved, -math.log(0.85 / 0.15), math.log(0.85 / 0.15))
    assert all(pair.total(np.concatenate([hard, w]))[0] >= best - SEARCH_TOLERANCE for w in inside)


def loss_given_the_draw(weight: float, share: float, hard, soft, strength: float) -> float:
    """L_a + λ JS, by hand: attention gives x₁ this weight, and x₁ is drawn with another probability."""
    whole = 0.0
    for x1, x2 in itertools.product(range(2), repeat=2):
        q = expit(weight * soft[x1] + (1 - weight) * soft[2 + x2])
        negative, positive = TOY[x1, x2]
        whole -= negative * math.log(1 - q) + positive * math.log(q)
        for probability, word in ((share, x1), (1 - share, x2)):
            p = expit(hard[word])
            whole += strength * probability * (negative + positive) * jensenshannon([p, 1 - p], [q, 1 - q]) ** 2
    return whole


def test_slopes_are_how_the_loss_changes_while_predictors_hold_still() -> None:
    """If the generator's loss is that of the predictors, the curve changes in this way; A2R's is computed directly."""
    e = 1e-5
    for share in (0.1, 0.25, 0.7):
        around = share - e, share + e
        low, high = (selection(TOY, x) for x in around)
        assert selection_slope(TOY, share) == pytest.approx((high - low) / (2 * e), abs=1e-6)
        low, high = (attention(TOY, x).loss for x in around)
        assert attention(TOY, share).slope == pytest.approx((high - low) / (2 * e), abs=1e-4)
        hard, soft = np.array([-0.4, 0.7]), np.array([-1.0, 0.5, 1.2, -0.3])
        low, high = (loss_given_the_draw(x, share, hard, soft, 1.5) for x in around)
        assert _Pair(TOY, share, 1.5).generator(hard, soft)[1] == pytest.approx((high - low) / (2 * e), abs=1e-8)
        assert a2r(TOY, share, 0.0).slope == pytest.approx(attention(TOY, share).slope, abs=1e-6)


@pytest.mark.slow
def test_from_the_wrong_corner_selection_interlocks_and_a2r_ends_where_attention_does() -> None:
    assert descend(partial(selection_slope, TOY), WRONG)[-1] == 0
    between = descend(lambda share: attention(TOY, share).slope, WRONG)[-1]
    assert 0.55 < between < 0.65
    for strength, start in itertools.product((0.3, 1.0), (WRONG, 1 - WRONG)):
        result = descend(lambda share, strength=strength: a2r(TOY, share, strength).slope, start)[-1]
        assert result == pytest.approx(between, abs=0.01)


@pytest.mark.slow
def test_too_strong_a_tie_leaves_the_generator_on_the_side_it_came_from() -> None:
    wrong, right = (descend(lambda share: a2r(TOY, share, 5.0).slope, start)[-1] for start in (WRONG, 1 - WRONG))
    assert 0.2 < wrong < 0.4
    assert 0.7 < right < 0.9


def test_from_the_right_corner_selection_stays_right() -> None:
    assert descend(partial(selection_slope, TOY), 1 - WRONG)[-1] == 1


# The example.


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_every_example_imports_in_its_own_folder(name: str) -> None:
    """The import path of `python examples/NAME.py`, unlike that of pytest, begins with the folder of the examples."""
    command = [sys.executable, "-c", f"import {name}"]
    ended = subprocess.run(command, cwd=EXAMPLES, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.slow
def test_the_example_writes_a_plot(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "interlocking.py"), "a.png"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    plot = (tmp_path / "a.png").read_bytes()
    assert plot.startswith(b"\x89PNG")
    width, height = (int.from_bytes(plot[at : at + 4]) for at in (16, 20))
    assert width > 1500
    assert height > 500
    message = ended.stdout
    ends = [line.rsplit("   ", 1)[1].split(": ") for line in message.splitlines() if line.startswith("A2R")]
    assert [float(end) for end, _ in ends] == pytest.approx([0.60, 0.60, 0.55, 0.28], abs=0.02)
    assert [which for _, which in ends] == [
        f"between them, the {side} one more probable" for side in ["better"] * 3 + ["worse"]
    ]
    assert message.count("0.00: the worse one, interlocked") == 2, "selection, and attention that is not conditioned"
    assert message.count("1.00: the better one") == 1, "selection that is conditioned"
    assert message.endswith("wrote a.png\n")


def test_the_example_names_a_missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    example = importlib.import_module("interlocking")
    with pytest.raises(SystemExit, match=r"pip install 'steadygaze\[examples\]'"):
        example.draw({}, {}, tmp_path / "a.png")
