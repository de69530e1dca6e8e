"""Consensus: anchoring to a mean; students have separate teachers unless `first_teacher` is set."""

import math
from collections import Counter

import pytest
import torch

from contract.tiny import assert_close
from steadygaze.core.errors import UserError
from steadygaze.techniques.anchored import Anchored
from steadygaze.techniques.consensus import Consensus
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.techniques.word_at import WordAT
from techniques.byhand import EVEN, PEAKED, by_hand, frozen, handed, loss, texts
from training.toys import corpus, make_model, make_run, outcome

OFF = {"noise": 0, "swaps": 0, "stability": 0}


def test_the_anchor_by_hand():
    """Teachers with w = (¾, ¼), p = 27/28 and w = (½, ½), p = 9/10: the mean is w = (5/8, 3/8), p = (27/28 + 9/10)/2.

    The first teacher as a student: D1 = −p ln(27/28) − (1 − p) ln(1/28), L_topk = (⅛ + ⅛) · 2/4 = ⅛.
    """
    teacher, other = by_hand(PEAKED), by_hand(EVEN)
    models = {"teacher-0": frozen(teacher), "teacher-1": frozen(other)}
    terms = loss(Consensus(**OFF, closeness=1, overlap=1), teacher, texts([1, 2]), models=models)
    p = (27 / 28 + 9 / 10) / 2
    assert terms["task"].item() == pytest.approx(-p * math.log(27 / 28) - (1 - p) * math.log(1 / 28), abs=1e-12)
    assert terms["top-k"].item() == pytest.approx(1 / 8, abs=1e-12)


def test_a_temperature_of_one_half_squares_the_mean_prediction():
    """The teachers of the test above: p is the mean, the target is p² / (p² + (1 − p)²), and attention is unchanged."""
    teacher, other = by_hand(PEAKED), by_hand(EVEN)
    models = {"teacher-0": frozen(teacher), "teacher-1": frozen(other)}
    memory = handed(Consensus(target_temperature=0.5), teacher, texts([1, 2]), models=models).cached_targets
    p = (27 / 28 + 9 / 10) / 2
    assert memory.texts["probs"].max().item() == pytest.approx(p**2 / (p**2 + (1 - p) ** 2), abs=1e-12)
    assert_close(memory.tokens["weights"][0, :2], torch.tensor([5 / 8, 3 / 8], dtype=torch.float64))


def seeds(technique, seed):
    return [stage.seed for stage in technique.stages(seed)[:-1]]


@pytest.mark.parametrize("teachers", [1, 3, 5])
def test_students_of_different_seeds_have_no_teacher_in_common(teachers):
    groups = [set(seeds(Consensus(teachers=teachers), seed)) for seed in range(20)]
    assert all(len(group) == teachers for group in groups)
    assert len(set.union(*groups)) == 20 * teachers


def test_with_a_first_teacher_they_share_one_group():
    technique = Consensus(first_teacher=100)
    assert seeds(technique, 0) == seeds(technique, 7) == [100, 101, 102, 103, 104]
    assert seeds(Consensus(teachers=2, first_teacher=0), 9) == [0, 1]


def test_teachers_are_trained_as_requested_and_the_student_starts_from_the_first():
    *group, student = Consensus(teachers=3).stages(2)
    assert [(stage.technique, stage.model, stage.start) for stage in group] == [
        (Vanilla(), f"teacher-{i}", None) for i in range(3)
    ]
    assert (student.model, student.start, student.seed, student.technique) == ("model", "teacher-0", None, None)
    stable = Consensus(teacher="word-at", teacher_epsilon=0.4, teachers=2).stages(0)
    assert [stage.technique for stage in stable[:-1]] == [WordAT(epsilon=0.4)] * 2


def test_short_teachers_train_a_share_of_the_epochs_at_a_decaying_rate():
    """Of 8 epochs: half for each teacher, a quarter for the student.  A separate run gives the same teacher."""
    technique = Consensus(teachers=2, teacher="word-at", teacher_epochs=0.5, teacher_rate=4.0, student_epochs=0.25)
    run = make_run(technique, seed=3, epochs=8, learning_rate=1e-3)
    run.execute()
    counts = Counter(record["stage"] for record in run.history)
    assert counts["student"] == 2
    assert all(counts[f"teacher {i} of 2"] <= 4 for i in (1, 2))
    alone = make_run(WordAT(), seed=6, epochs=4, learning_rate=4e-3, schedule="linear").execute()
    for name, value in alone.state_dict().items():
        assert torch.equal(value, run.models["teacher-0"].state_dict()[name])


def test_a_share_of_few_epochs_is_at_least_one():
    run = make_run(Consensus(teachers=1, teacher_epochs=0.1, student_epochs=0.1), epochs=2)
    run.execute()
    assert [(record["stage"], record["epoch"]) for record in run.history] == [("teacher 1 of 1", 1), ("student", 1)]


def test_of_one_teacher_it_is_anchored_to_that_reference_bit_for_bit():
    """The teacher of seed 4 is the reference of seed 4, and nothing else is drawn otherwise."""
    ours = outcome(make_run(Consensus(teachers=1), seed=4))
    assert ours[0] == outcome(make_run(Anchored(), seed=4))[0]
    assert ours[0] != outcome(make_run(Anchored(), seed=5))[0]


def test_the_students_first_step_begins_at_the_first_teacher():
    """A step size of next to nothing leaves it there."""
    run = make_run(Consensus(teachers=2), epochs=1)
    run.execute()
    teachers = {name: model for name, model in run.models.items() if name != "model"}
    still = make_run(Consensus(teachers=2), epochs=1, learning_rate=1e-12, models=teachers).execute()
    for name, value in still.state_dict().items():
        torch.testing.assert_close(value, teachers["teacher-0"].state_dict()[name], rtol=0, atol=1e-9)
        assert name.startswith("encoder.embedding") or not torch.equal(value, teachers["teacher-1"].state_dict()[name])


def test_a_teacher_that_has_learned_nothing_stops_the_run(tmp_path):
    """With a learning rate near zero, the teacher keeps its initial bias and predicts one label for every text."""

    def idle(technique, validation=None):
        options = {"epochs": 1, "learning_rate": 1e-12, "data": corpus(), "validation": validation or corpus(seed=5)}
        return make_run(technique, make_biased, teacher_cache=tmp_path / "cache", **options)

    with pytest.raises(UserError, match=r"teacher 1 of 2 has learned nothing.*macro-F1 0\.333.*--vectors"):
        idle(Consensus(teachers=2)).execute()
    assert not (tmp_path / "cache").exists()
    idle(Consensus(teachers=2), corpus(19, seed=5)).execute()  # 19 texts are too few to know


def make_biased():
    model = make_model("average")
    with torch.no_grad():
        model.decoder.output.bias.copy_(torch.tensor([5.0, -5.0]))
    return model
