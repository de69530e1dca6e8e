"""What a network looks at that is no word: the share of it that its reading reports."""

import numpy as np
import pytest
import torch

from adapters.folders import QUESTIONS, TEXTS, network, tokenizer
from contract.tiny import littered, widened
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.data.batches import collate
from steadygaze.models.inference import inference


def read(kind, pair, rows=None):
    """In double precision, and the batch."""
    adapter = as_adapter((network(kind).double(), tokenizer(kind))).for_pairs(pair)
    data = adapter.data(adapter.tokens.place(TEXTS), QUESTIONS if pair else None)
    return adapter.model, collate(data, np.arange(len(TEXTS)) if rows is None else np.asarray(rows))


def elsewhere(model, batch):
    with inference(model):
        return model(batch).special_token_share


def test_it_is_the_librarys_own_attention_from_cls_to_special_tokens():
    model, batch = read("bert", False)
    result = elsewhere(model, batch)
    for row in range(len(TEXTS)):
        real = batch.present[row]
        with torch.no_grad():
            heads = model.network(input_ids=batch.ids[row : row + 1, real], output_attentions=True).attentions[-1]
        special = heads[0, :, 0].mean(0)[~batch.mask[row, real]].sum()
        torch.testing.assert_close(result[row], special, rtol=0, atol=1e-9)
    assert ((result > 0) & (result < 1)).any()


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("kind", ["bert", "gpt2"])
@pytest.mark.parametrize("pair", [False, True])
def test_neither_padding_nor_the_batch_changes_it(kind, pair):
    model, batch = read(kind, pair)
    result = elsewhere(model, batch)
    assert result.shape == (len(TEXTS),)
    assert ((result >= 0) & (result <= 1)).all()
    for other in (widened(batch, 3), littered(batch)):
        torch.testing.assert_close(elsewhere(model, other), result, rtol=0, atol=1e-9)
    for row in range(len(TEXTS)):
        alone = elsewhere(model, read(kind, pair, [row])[1])
        torch.testing.assert_close(alone, result[row : row + 1], rtol=0, atol=1e-9)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "gpt2", "modernbert"])
def test_logits_alone_are_those_of_the_whole_reading_and_leave_the_network_as_it_was(folder, kind):
    """By fused attention, in a batch that is padded: the kernel is found out by a trial, and put back."""
    adapter = as_adapter(folder(kind))
    model = adapter.model
    data = adapter.data(adapter.tokens.place(TEXTS), None)
    batch = collate(data, np.arange(len(TEXTS)))
    with inference(model):
        torch.testing.assert_close(model.logits(batch), model(batch).logits, rtol=0, atol=1e-4)
    assert model.fused
    assert model.network.config._attn_implementation == "eager"
