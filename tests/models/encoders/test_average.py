"""The tower without context, against a loop over words."""

import torch

from contract.tiny import assert_close
from steadygaze.models.encoders.word_encoders import Average


def test_each_word_is_projected_by_itself_and_the_summary_is_their_mean():
    tower = Average(4, 3).double()
    sizes = [5, 1, 3]
    embedded = torch.randn(3, 5, 4, dtype=torch.float64)
    hidden, summary = tower(embedded, torch.arange(5) < torch.tensor(sizes)[:, None])
    weight, bias = tower.project.weight, tower.project.bias
    for row, size in enumerate(sizes):
        expected = torch.stack([(weight @ word + bias).clamp_min(0) for word in embedded[row, :size]])
        assert_close(hidden[row, :size], expected)
        assert_close(summary[row], expected.sum(0) / size)
        assert not hidden[row, size:].any()


def test_a_hidden_state_depends_on_its_own_word_alone():
    embedded = torch.randn(1, 6, 4, requires_grad=True)
    hidden, _ = Average(4, 8)(embedded, torch.ones(1, 6, dtype=torch.bool))
    (gradient,) = torch.autograd.grad(hidden[0, 2].sum(), embedded)
    assert gradient[0].any(-1).tolist() == [False, False, True, False, False, False]
