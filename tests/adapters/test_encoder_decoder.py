"""Encoder–decoder classifiers: T5 and BART, whose decoder reads the text once more."""

import numpy as np
import pytest
import torch

import steadygaze as sg
from adapters.folders import QUESTIONS, TEXTS, network, tokenizer
from contract.tiny import littered, widened
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.core.errors import UserError
from steadygaze.data.batches import collate
from steadygaze.models.inference import inference

KIND = pytest.mark.parametrize("kind", ["t5", "bart"])
EXACT = {"rtol": 0, "atol": 1e-9}


def adapter_and_batch(kind, pair=False, attention="last", rows=(0, 1, 2, 3, 4)):
    adapter = as_adapter((network(kind).double(), tokenizer(kind)), attention=attention).for_pairs(pair)
    data = adapter.data(adapter.tokens.place(TEXTS), QUESTIONS if pair else None)
    return adapter, collate(data, np.asarray(rows))


@pytest.mark.sweep(keep=1)
@KIND
def test_neither_padding_nor_the_batch_changes_predictions_and_attention(kind):
    adapter, batch = adapter_and_batch(kind, pair=True)
    with inference(adapter.model):
        output = adapter.model(batch)
        for other in (widened(batch, 3), littered(batch)):
            again = adapter.model(other)
            torch.testing.assert_close(again.logits, output.logits, **EXACT)
            torch.testing.assert_close(again.weights[:, : batch.ids.shape[1]], output.weights, **EXACT)
        alone = adapter.model(adapter_and_batch(kind, pair=True, rows=[1])[1])
    torch.testing.assert_close(alone.logits, output.logits[1:2], **EXACT)


@pytest.mark.sweep(keep=1)
@KIND
@pytest.mark.parametrize("attention", ["last", "rollout"])
def test_weights_are_the_cross_attention_of_the_last_token(kind, attention):
    adapter, batch = adapter_and_batch(kind, attention=attention)
    words = tokenizer(kind)
    net = network(kind).double()
    net.set_attn_implementation("eager")
    with torch.no_grad():
        output = net(**words(TEXTS[0], return_tensors="pt", return_token_type_ids=False), output_attentions=True)
        result = adapter.model(batch).weights[0]
    by_hand = output.cross_attentions[-1][0].mean(0)[-1]
    for layer in reversed(output.encoder_attentions if attention == "rollout" else ()):
        by_hand = (by_hand @ layer[0].mean(0) + by_hand) / 2
    by_hand = by_hand[1:-1] / by_hand[1:-1].sum()
    torch.testing.assert_close(result[batch.mask[0]], by_hand, **EXACT)


def test_gradients_by_word_vectors_agree_with_finite_differences():
    """Not of T5, whose softmax is in single precision."""
    adapter, batch = adapter_and_batch("bart", rows=[1, 3])
    vectors = adapter.model.embed(batch).detach().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda inputs: adapter.model(batch, inputs).logits, vectors, atol=1e-4, rtol=1e-3, fast_mode=True
    )


def test_a_folder_and_a_pair_predict_as_the_library_does(tmp_path):
    net, words = network("t5"), tokenizer("t5")
    net.save_pretrained(tmp_path)
    words.save_pretrained(tmp_path)
    with torch.no_grad():
        inputs = words(TEXTS, QUESTIONS, return_tensors="pt", padding=True, return_token_type_ids=False)
        expected = net(**inputs).logits.softmax(-1).numpy()
    model = sg.load(tmp_path)
    np.testing.assert_allclose(model.predict_proba(list(zip(TEXTS, QUESTIONS, strict=True))), expected, atol=1e-5)
    assert model.facts == {"architecture": "T5ForSequenceClassification", "attention": "last"}


def test_a_tokenizer_without_an_end_of_text_token_is_refused():
    with pytest.raises(UserError, match="its tokenizer adds no end-of-text token"):
        as_adapter((network("t5", eos_token_id=5), tokenizer("t5")))
