"""Accuracy of scores with ties."""

import torch

from steadygaze.core.maths.label_leakage import hits


def test_classes_that_share_the_highest_score_share_the_hit():
    scores = torch.tensor([[0.5, 0.5, 0.0], [0.2, 0.7, 0.1], [1 / 3, 1 / 3, 1 / 3]])
    torch.testing.assert_close(hits(scores, torch.tensor([0, 1, 2])), torch.tensor([0.5, 1.0, 1 / 3]).double())
    assert hits(scores, torch.tensor([2, 0, 0])).tolist()[:2] == [0.0, 0.0]
