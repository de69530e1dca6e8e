"""Encoder–decoder classifiers of the transformers library: T5, BART and relatives.

The decoder reads the text once more, shifted right after a start token.  The classifier reads the decoder's state at
the end-of-text token e:

    r   (B,T)      1 at e
    C   (B,T,T)    attention of the last decoder layer to the encoder's tokens, the mean over its heads

    last      r · C
    rollout   r · C · Â_L · … · Â_1        through the encoder's layers, as in transformer_network.py

The library accepts no word vectors here.  The encoder is called with them, and the decoder with its states.  The ids
only mark e.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from steadygaze.adapters.transformer_network import (
    ForwardOptions,
    TokenRows,
    TransformerModel,
    attention_rollout,
    last_layer_attention,
)

STARTS_WITH_LAST_TOKEN = ("mbart", "plbart")
"""Networks whose decoder starts with the last token of the text, which names its language."""


class EncoderDecoderModel(TransformerModel):
    """`tokens_after`: the number of tokens after the end-of-text token, which the classifier reads."""

    def __init__(self, network: Any, options: ForwardOptions, tokens_after: int) -> None:
        super().__init__(network, options, "first")
        self._tokens_after = tokens_after

    def _run(self, row: TokenRows, with_attention: bool) -> tuple[Tensor, Tensor]:
        mask, last = row.real.long(), row.real.sum(1) - 1
        read = one_hot((last - self._tokens_after).clamp_min(0), mask.shape[1])
        end = int(self.network.config.eos_token_id)
        encoded = self.network.get_encoder()(
            inputs_embeds=row.vectors, attention_mask=mask, output_attentions=with_attention
        )
        output = self.network(
            input_ids=torch.where(read > 0, end, end - 1 if end else 1),
            attention_mask=mask,
            encoder_outputs=encoded,
            decoder_inputs_embeds=self._shifted(row.vectors, last),
            output_attentions=with_attention,
            **self._options,
        )
        weights = read.to(torch.promote_types(row.vectors.dtype, torch.float32))
        if with_attention:
            weights = last_layer_attention(output.cross_attentions, weights)
            weights = attention_rollout(encoded.attentions, weights) if self.attention == "rollout" else weights
        return output.logits, weights

    def _shifted(self, vectors: Tensor, last: Tensor) -> Tensor:
        """Vectors of the decoder's input.  (B,T,E), (B,) -> (B,T,E)"""
        config = self.network.config
        if config.model_type in STARTS_WITH_LAST_TOKEN:
            start = vectors[torch.arange(len(last), device=last.device), last].unsqueeze(1)
        else:
            start = self._embed(last.new_tensor([config.decoder_start_token_id])).expand(len(last), 1, -1)
        return torch.cat([start, vectors[:, :-1]], 1)
