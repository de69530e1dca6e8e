"""What of each architecture works: probabilities, precision and explainers, against direct calls of transformers.

    python tests/adapters/architectures.py record docs/how-to/architectures.csv      (PYTHONPATH=src:tests)

The networks are built from small configurations, with random weights.
"""

import csv
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

import steadygaze as sg
from adapters.folders import KINDS, LABELS, OTHERS, TEXTS, network, tokenizer

TITLES = {
    "albert": "ALBERT", "bart": "BART", "bert": "BERT", "big_bird": "BigBird (full attention)",
    "camembert": "CamemBERT", "deberta-v2": "DeBERTa v2 and v3", "distilbert": "DistilBERT", "electra": "ELECTRA",
    "falcon": "Falcon", "gemma": "Gemma", "gemma2": "Gemma 2", "gemma3_text": "Gemma 3", "gpt2": "GPT-2",
    "gpt_neox": "GPT-NeoX, Pythia", "llama": "Llama", "longformer": "Longformer", "mbart": "mBART",
    "mistral": "Mistral", "mixtral": "Mixtral", "modernbert": "ModernBERT", "mt5": "mT5",
    "opt": "OPT", "phi": "Phi", "phi3": "Phi 3 and 4", "plbart": "PLBart", "qwen2": "Qwen 2", "qwen3": "Qwen 3",
    "roberta": "RoBERTa", "t5": "T5", "xlm-roberta": "XLM-RoBERTa",
}  # fmt: skip
"""Architectures by their model_type."""
EXPLAINERS = {
    "attention": {},
    "leave-one-out": {},
    "input-x-gradient": {},
    "integrated-gradients": {"steps": 4},
    "attn-lrp": {},
}
PRECISIONS = {torch.float32: 1e-5, torch.bfloat16: 1e-2}
COLUMNS = ("architecture", "model_type", "fp32", "bf16", *EXPLAINERS)


def direct(net: Any, words: Any) -> np.ndarray:
    """Probabilities by the library alone, one text at a time."""
    with torch.no_grad():
        rows = [net(**words(text, return_tensors="pt")).logits[0].float().softmax(-1) for text in TEXTS]
    return torch.stack(rows).numpy()


def row_of(kind: str) -> dict[str, str]:
    """One row of the table."""
    words, row = tokenizer(kind), {"architecture": TITLES[kind], "model_type": kind}
    words.model_input_names = ["input_ids", "attention_mask"]
    for name, (dtype, tolerance) in zip(("fp32", "bf16"), PRECISIONS.items(), strict=True):
        net = network(kind)
        if dtype != torch.float32:  # the weights are wild, and rounding would be larger than in a trained network
            for weight in (weight for weight in net.parameters() if weight.dim() > 1):
                weight.data.mul_(0.5)
        net = net.to(dtype)
        expected = direct(net, words)
        assert np.ptp(expected, axis=0).max() > tolerance  # the text matters
        try:
            model = sg.load((net, words))
        except sg.UserError:
            row[name] = "no"
            continue
        difference = np.abs(model.predict_proba(TEXTS) - expected).max()
        row[name] = "yes" if difference <= tolerance else "no"
    model = sg.load((network(kind), words))
    return row | {name: "yes" if explains(model, name) else "no" for name in EXPLAINERS}


def explains(model: Any, name: str) -> bool:
    """True if the explainer weighs every word; a model that it does not support is refused."""
    target = None if name == "attention" else LABELS[1]
    try:
        explanation = model.explain(TEXTS[0], explainer=name, target=target, settings=EXPLAINERS[name] or None)
    except sg.UserError:
        return False
    weights = np.array(explanation.weights)
    return len(weights) == 6 and bool(np.isfinite(weights).all() and np.abs(weights).max() > 0)


def rows(file: Path) -> dict[str, dict[str, str]]:
    """The recorded rows by model_type."""
    with file.open(encoding="utf-8", newline="") as lines:
        return {row["model_type"]: row for row in csv.DictReader(lines)}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with Path(sys.argv[2]).open("w", encoding="utf-8", newline="") as out:
        table = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        table.writeheader()
        for kind in sorted(KINDS | OTHERS, key=lambda kind: TITLES[kind].lower()):
            table.writerow(row_of(kind))
