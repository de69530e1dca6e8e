"""Tiny sequence classifiers of the transformers library, saved in folders as the hub has them.

Their words are few; "unbelievable" is three pieces to them.  Weights are wild (0.5, not the usual 0.02): in a tame
network a mistake would hide in rounding.
"""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

TEXTS = ["A good, unbelievable film!", "bad", "The film was not good and the cast was bad .", "zzz qqq", "the the the"]
QUESTIONS = ["was the film good?", "bad", "unbelievable film", "the cast", "good good good good"]
LABELS = ["negative", "neutral", "positive"]
WORDS = [
    "a",
    "good",
    "film",
    "bad",
    "the",
    "was",
    "not",
    "and",
    "cast",
    "un",
    "##believ",
    "##able",
    "##s",
    "!",
    "?",
    ",",
    ".",
]
SPECIALS = {"bert": ["[PAD]", "[UNK]", "[CLS]", "[SEP]"], "roberta": ["<s>", "<pad>", "</s>", "<unk>"]}
LAYERS = {"hidden_size": 8, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 12}
LENGTH = 40
KINDS: dict[str, dict[str, Any]] = {
    "bert": LAYERS,
    "roberta": LAYERS | {"type_vocab_size": 1, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2},
    "distilbert": {"dim": 8, "n_layers": 3, "n_heads": 2, "hidden_dim": 12},
    "gpt2": {"n_embd": 8, "n_layer": 3, "n_head": 2, "pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0},
    "modernbert": LAYERS
    | {"classifier_pooling": "mean", "pad_token_id": 0, "cls_token_id": 2, "sep_token_id": 3}
    | {"bos_token_id": 2, "eos_token_id": 3, "local_attention": 4},
}

T5 = {"d_model": 8, "d_kv": 4, "d_ff": 12, "num_layers": 2, "num_heads": 2, "decoder_start_token_id": 0}
BART = {
    **{
        f"{part}_{name}": number for part in ("encoder", "decoder") for name, number in (("layers", 2), ("ffn_dim", 12))
    },
    **{"d_model": 8, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "decoder_start_token_id": 3},
}
ENCODER_DECODERS: dict[str, dict[str, Any]] = {"t5": T5, "bart": BART, "mt5": T5, "mbart": BART, "plbart": BART}
OTHERS: dict[str, dict[str, Any]] = {
    **ENCODER_DECODERS,
    "albert": LAYERS | {"embedding_size": 8},
    "electra": LAYERS | {"embedding_size": 8},
    "deberta-v2": LAYERS | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8},
    "xlm-roberta": LAYERS,
    "camembert": LAYERS,
    "big_bird": LAYERS | {"attention_type": "original_full", "sep_token_id": 3},
    "opt": LAYERS | {"ffn_dim": 12, "word_embed_proj_dim": 8},
    "llama": LAYERS,
    "mistral": LAYERS | {"num_key_value_heads": 1},
    "qwen2": LAYERS | {"num_key_value_heads": 1},
    "gemma": LAYERS | {"num_key_value_heads": 1, "head_dim": 4},
    "gemma2": LAYERS | {"num_key_value_heads": 1, "head_dim": 4, "sliding_window": 4, "query_pre_attn_scalar": 4},
    "gemma3_text": LAYERS | {"num_key_value_heads": 1, "head_dim": 4, "sliding_window": 4, "query_pre_attn_scalar": 4},
    "qwen3": LAYERS | {"num_key_value_heads": 1, "head_dim": 4},
    "mixtral": LAYERS
    | {"num_key_value_heads": 1, "num_local_experts": 2, "num_experts_per_tok": 1, "intermediate_size": 16},
    "phi": LAYERS,
    "phi3": LAYERS | {"num_key_value_heads": 1},
    "gpt_neox": LAYERS | {"rotary_pct": 0.5},
    "falcon": LAYERS | {"num_kv_heads": 2, "new_decoder_architecture": True, "bias": False, "alibi": False},
    "longformer": LAYERS | {"attention_window": [4, 4, 4], "sep_token_id": 3},
}
"""Further architectures, with the tokenizer of BERT; [SEP] is their end of a text."""


def word_pieces() -> Tokenizer:
    """As BERT has them."""
    vocabulary = {word: place for place, word in enumerate([*SPECIALS["bert"], *WORDS])}
    engine = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    engine.normalizer = normalizers.BertNormalizer(lowercase=True)
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    engine.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    engine.decoder = decoders.WordPiece()
    return engine


def byte_pairs(kind: str) -> Tokenizer:
    """As RoBERTa and GPT-2 have them: letters only, and one pair of them."""
    specials = SPECIALS["roberta"] if kind == "roberta" else ["<|endoftext|>"]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {word: place for place, word in enumerate([*specials, *letters, "oo"])}
    engine = Tokenizer(models.BPE(vocabulary, [("o", "o")]))
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = decoders.ByteLevel()
    if kind == "roberta":
        engine.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    else:
        engine.post_processor = processors.ByteLevel(trim_offsets=False)
    return engine


def tokenizer(kind: str) -> Any:
    from transformers import PreTrainedTokenizerFast

    if kind in ("roberta", "gpt2"):
        pad, unknown = ("<pad>", "<unk>") if kind == "roberta" else ("<|endoftext|>", "<|endoftext|>")
        return PreTrainedTokenizerFast(tokenizer_object=byte_pairs(kind), pad_token=pad, unk_token=unknown)
    inputs = ["input_ids", "attention_mask", *(["token_type_ids"] if kind == "bert" else [])]
    return PreTrainedTokenizerFast(
        tokenizer_object=word_pieces(),
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_input_names=inputs,
    )


def network(kind: str, auto: str = "AutoModelForSequenceClassification", **changes: Any) -> Any:
    """With fresh weights, in evaluation mode."""
    import transformers
    from transformers import AutoConfig

    torch.manual_seed(0)
    length = 120 if kind in ("roberta", "gpt2") else LENGTH  # a letter each
    names = {"id2label": dict(enumerate(LABELS)), "label2id": {name: i for i, name in enumerate(LABELS)}}
    values = {"vocab_size": len(tokenizer(kind)), "max_position_embeddings": length, "initializer_range": 0.5}
    if kind in OTHERS:
        names |= {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    config = AutoConfig.for_model(kind, **values, **names, **(KINDS | OTHERS)[kind])
    for name, value in changes.items():
        setattr(config, name, value)
    made = getattr(transformers, auto).from_config(config).eval()
    if kind in OTHERS:  # initializer_range does not reach all of their weights
        for weights in (weights for weights in made.parameters() if weights.dim() > 1):
            torch.nn.init.normal_(weights, std=0.4)
    return made


def language_model(kind: str, **changes: Any) -> Any:
    return network(kind, "AutoModelForCausalLM", **changes)


def save(kind: str, folder: Path, **changes: Any) -> Path:
    network(kind, **changes).save_pretrained(folder)
    tokenizer(kind).save_pretrained(folder)
    return folder
