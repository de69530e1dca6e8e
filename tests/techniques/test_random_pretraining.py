"""Random attention pretraining: what is drawn, and what moves when."""

import dataclasses

import numpy as np
import pytest
import torch
from scipy import stats

from contract.tiny import assert_close, batch, classifier, split, widened
from steadygaze.core.errors import UserError
from steadygaze.core.random_key import RandomKey
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.techniques.random_pretraining import RandomPretraining, RandomWeights, dirichlet
from steadygaze.techniques.technique import LossContext
from techniques.byhand import by_hand, record_calls, texts
from training.toys import Recorder, make_run, weights

DOUBLE = torch.float64


def test_weights_sum_to_one_over_the_words_and_are_zero_elsewhere():
    """A text of specials alone has none at all; one of a single word gives it everything."""
    tiny = batch(split())
    w = dirichlet(RandomKey(4), tiny, DOUBLE)
    assert_close(w.sum(-1), tiny.mask.any(-1).double())
    assert w[~tiny.mask].eq(0).all()
    assert w[tiny.mask].gt(0).all()
    assert w[3, 0] == 1


def test_they_belong_to_the_text_not_to_its_batch_or_padding_and_are_new_in_every_step():
    data = split()
    whole = dirichlet(RandomKey(4), batch(data), DOUBLE)
    alone = dirichlet(RandomKey(4), widened(batch(data, [2]), 5), DOUBLE)
    assert_close(alone[0, : whole.shape[1]], whole[2])
    assert not torch.allclose(dirichlet(RandomKey(5), batch(data), DOUBLE)[2], whole[2])
    assert not torch.allclose(whole[2, :5], whole[6, :5])


def test_they_are_drawn_evenly_from_the_simplex():
    """Of Dirichlet(1) over three words each weight is Beta(1, 2), by Kolmogorov and Smirnov, one in 10,000."""
    many = dataclasses.replace(texts(*[[1, 2, 3]] * 4000), index=torch.arange(4000))
    w = dirichlet(RandomKey(1), many, DOUBLE)
    for column in w.T.numpy():
        assert stats.kstest(column, stats.beta(1, 2).cdf).pvalue > 1e-4
    assert np.corrcoef(w[:, 0], w[:, 1])[0, 1] == pytest.approx(-0.5, abs=0.05)


def test_the_first_stage_decodes_random_weights_and_never_calls_the_scorer():
    model, tiny = classifier("bilstm"), batch(split())
    scored, decoded = record_calls(model, "score"), record_calls(model, "decode")
    RandomWeights().loss(model, tiny, LossContext(key=RandomKey(7)))
    assert not scored
    assert_close(decoded[0][1], dirichlet(RandomKey(7), tiny, DOUBLE))


def test_the_second_stage_is_the_plain_loss_and_a_probe_without_effect_on_the_model():
    model, technique = by_hand([(1.0, 2.0), (0.0, -1.0)]), RandomPretraining()
    tiny = texts([1, 2], [2, 2, 1], label=(1, 0))
    modules = {"probe": technique.modules(model)["probe"].double()}
    terms = technique.loss(model, tiny, LossContext(modules=modules))
    assert_close(terms["task"], torch.nn.functional.cross_entropy(model(tiny).logits, tiny.gold, reduction="none"))
    pulls = torch.autograd.grad(terms["mask"].sum(), list(model.parameters()), allow_unused=True)
    assert all(pull is None for pull in pulls)


def moved(before, after):
    """Parts of a model, by the beginning of their parameters' names."""
    return {name.partition(".")[0] for name in before if before[name] != after[name]}


def test_each_stage_moves_its_own_part_and_leaves_the_other_bit_for_bit():
    fresh = make_run(RandomPretraining(), epochs=1, learning_rate=1e-30).execute()
    watched = Recorder()
    run = make_run(RandomPretraining(), epochs=2, watcher=watched)
    between = {}
    hand_over = run._save_finished

    def listening(number, state):
        between.update(weights(run.models["model"]))
        hand_over(number, state)

    run._save_finished = listening
    after = weights(run.execute())
    assert moved(weights(fresh), between) == {"encoder", "decoder"}
    assert moved(between, after) == {"scorer"}
    assert [record["stage"] for record in watched.epochs] == ["random weights"] * 2 + ["attention"] * 2
    assert [sorted(record["terms"]) for record in watched.epochs] == [["task"]] * 2 + [["mask", "task"]] * 2
    assert run.modules.keys() == {"probe"}


def test_the_first_stage_may_have_epochs_of_its_own():
    run = make_run(RandomPretraining(pretraining_epochs=1), epochs=2)
    run.execute()
    assert [record["stage"] for record in run.history] == ["random weights", "attention", "attention"]


def test_uniform_attention_is_refused():
    clf = TextClassifier(technique="random-pretraining", settings={"attention": "uniform"})
    with pytest.raises(UserError, match="cannot be trained"):
        clf.fit(["good film", "bad film"] * 10, [1, 0] * 10)


def test_a_probe_that_predicts_the_labels_is_reported():
    prior = torch.tensor([0.5, 0.5])
    assert "label can be predicted" in RandomPretraining().warning_after_training({"task": 0.1, "mask": 0.01}, prior)
    assert RandomPretraining().warning_after_training({"task": 0.1, "mask": 0.6}, prior) is None
    assert RandomPretraining().warning_after_training({"task": 0.1}, prior) is None  # a stage without a probe
