"""The models that the study explains: three loaders, single texts and pairs, on five corpora.

A MiniLM is fine-tuned for two epochs of at most 8,000 texts, as a Hugging Face folder and as a TextClassifier.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.core.types import Example
from steadygaze.data.corpora import load_corpus
from studies.data_folder import data_folder

TEXTS, EPOCHS, BATCH, LEARNING_RATE, MAX_TOKENS = 8000, 2, 32, 5e-5, 96
HELD_OUT = 1000
"""Training texts of a corpus without validation data that take their place."""
LONG = 100
"""Words of an IMDB text."""
HUGGING_FACE, FUNCTION, CLASSIFIER = "Hugging Face encoder", "function", "TextClassifier"


def examples(corpus: str, split: str) -> list[Example]:
    """The examples of a split; texts of IMDB are cut after 100 words."""
    splits = {name: list(items) for name, items in load_corpus(corpus, data_dir=data_folder(corpus)).splits.items()}
    if "validation" not in splits:
        train = [splits["train"][i] for i in np.random.default_rng(0).permutation(len(splits["train"]))]
        splits |= {"train": train[:-HELD_OUT], "validation": train[-HELD_OUT:]}
    if corpus != "imdb":
        return splits[split]
    return [replace(item, text=" ".join(item.text.split()[:LONG]), rationales=None) for item in splits[split]]


def inputs(items: Sequence[Example]) -> list[Any]:
    """The texts, or the pairs (text, question)."""
    return [item.text if item.question is None else (item.text, item.question) for item in items]


@dataclass(frozen=True)
class Subject:
    """A model on a corpus."""

    loader: str
    network: str
    corpus: str
    build: Callable[[str, Path, str], ModelAdapter]

    @property
    def name(self) -> str:
        return f"{self.loader}, {self.network}, {self.corpus}"

    def load(self, folder: Path, device: str) -> ModelAdapter:
        """The model; its network is trained if it is not in the folder."""
        return self.build(self.corpus, folder, device)


def fine_tuned(corpus: str, folder: Path, device: str) -> ModelAdapter:
    target = folder / f"minilm-{corpus}"
    if not (target / "config.json").exists():
        fine_tune(corpus, target, device)
    return as_adapter(target, device=device)


def fine_tune(
    corpus: str, target: Path, device: str, epochs: int = EPOCHS, texts: int = TEXTS, rate: float = LEARNING_RATE
) -> None:
    """AdamW with plain transformers, without a schedule."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from steadygaze.models.encoders.transformer import locate

    torch.manual_seed(0)
    items, source = examples(corpus, "train"), locate("minilm")
    labels = sorted({str(item.label) for item in items})
    names: dict[str, Any] = {"id2label": dict(enumerate(labels)), "label2id": {x: i for i, x in enumerate(labels)}}
    tokenizer = AutoTokenizer.from_pretrained(source)
    model = AutoModelForSequenceClassification.from_pretrained(source, num_labels=len(labels), **names)
    model = model.float().to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), rate)
    for epoch in range(epochs):
        chosen = np.random.default_rng(epoch).permutation(len(items))[:texts]
        for start in range(0, len(chosen), BATCH):
            rows = [items[i] for i in chosen[start : start + BATCH]]
            parts = [[row.text for row in rows]] + ([[row.question for row in rows]] if rows[0].question else [])
            read = tokenizer(*parts, padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt")
            gold = torch.tensor([labels.index(str(row.label)) for row in rows], device=device)
            loss = model(**read.to(device), labels=gold).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval().cpu().save_pretrained(target)
    tokenizer.save_pretrained(target)


def as_function(corpus: str, folder: Path, device: str) -> ModelAdapter:
    """The fine-tuned MiniLM as a function of texts, as a hosted model is; it reads a period for an empty text."""
    model = fine_tuned(corpus, folder, device)

    def predict(texts: list[Any]) -> Any:
        read = [(text or ".") if isinstance(text, str) else tuple(part or "." for part in text) for text in texts]
        return model.predict_proba(read)

    return as_adapter(predict, classes=list(model.classes))


def tfidf(corpus: str, folder: Path, device: str) -> ModelAdapter:
    """Logistic regression on words and pairs of words; for a pair, each part has features of its own."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    items = examples(corpus, "train")
    pipeline = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, lowercase=False), LogisticRegression(C=10, max_iter=1000)
    )
    pipeline.fit([_joined(item) for item in inputs(items)], [str(item.label) for item in items])

    def predict(texts: list[Any]) -> Any:
        return pipeline.predict_proba([_joined(text) for text in texts])

    return as_adapter(predict, classes=list(pipeline.classes_))


def _joined(item: Any) -> str:
    """The words in lower case; those of a question have a prefix."""
    if isinstance(item, str):
        return item.lower()
    return f"{item[0].lower()} " + " ".join(f"q_{word}" for word in item[1].lower().split())


def trained(encoder: str, technique: str) -> Callable[[str, Path, str], ModelAdapter]:
    def build(corpus: str, folder: Path, device: str) -> ModelAdapter:
        from steadygaze.estimator.text_classifier import TextClassifier

        target = folder / f"{encoder.replace(':', '-')}-{technique}-{corpus}"
        if not (target / "config.json").exists():
            items = examples(corpus, "train")[:TEXTS]
            more: dict[str, Any] = (
                {"epochs": EPOCHS, "settings": {"learning_rate": LEARNING_RATE}} if ":" in encoder else {}
            )
            classifier = TextClassifier(encoder=encoder, technique=technique, seed=0, device=device, **more)
            classifier.fit(inputs(items), [str(item.label) for item in items])
            classifier.save(target)
        return as_adapter(target, device=device)

    return build


SUBJECTS = [
    *(Subject(HUGGING_FACE, "MiniLM", name, fine_tuned) for name in ("sst2", "rotten_tomatoes", "tweet_hate", "imdb")),
    Subject(HUGGING_FACE, "MiniLM", "snli", fine_tuned),
    *(Subject(FUNCTION, "TF-IDF", name, tfidf) for name in ("sst2", "tweet_hate", "snli")),
    *(Subject(FUNCTION, "MiniLM", name, as_function) for name in ("sst2", "snli")),
    *(Subject(CLASSIFIER, "BiLSTM", name, trained("bilstm", "vanilla")) for name in ("sst2", "tweet_hate", "snli")),
    Subject(CLASSIFIER, "BiLSTM, consensus", "sst2", trained("bilstm", "consensus")),
    *(Subject(CLASSIFIER, "MiniLM", name, trained("transformer:minilm", "vanilla")) for name in ("sst2", "snli")),
]
