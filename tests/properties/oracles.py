"""Models of known faithfulness, because they were built, not trained: the expected result of an audit is known too.

A world has good words, bad words and chatter; a text is mostly chatter and is as good as its good words.  All models
read a word's verdict off its vector, so all predict well; they differ in what their attention has to do with it.

    honest       attends to the words it decides by, and decides by what it attends to          (a linear bag of words)
    strict       the same with sparsemax: words it does not attend to cannot reach the decision (its rationale alone)
    aside        attends to words drawn at random, once and for all, and decides by all words alike
    even         attends to all words alike
    first        attends to the first word, whatever it is
    coded        attends to the first word when it means good and to the second when it means bad
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.core.types import Batch, Encoded, Example
from steadygaze.data.word_tokenizer import WordTokenizer, build_word_tokenizer
from steadygaze.models.classifier import Architecture, Classifier, word_encoder

GOOD, BAD, CHATTER = ([f"{kind}{letter}" for letter in "abcdefghijklmnop"] for kind in ("fine", "poor", "thing"))
CLASSES = ["bad", "good"]
SIZE = 16
"""Of a word vector: one direction is the verdict, the others identify the word."""


@dataclass(frozen=True)
class World:
    tokens: WordTokenizer
    vectors: Tensor  # (V,E)
    examples: list[Example]
    synonyms: dict[str, list[str]]


def world(seed: int, texts: int = 150) -> World:
    random = np.random.default_rng(seed)
    examples = [_text(random, CLASSES[i % 2]) for i in range(texts)]
    tokens = build_word_tokenizer([" ".join([*GOOD, *BAD, *CHATTER])] * 2)
    verdict = {**dict.fromkeys(GOOD, 1.0), **dict.fromkeys(BAD, -1.0)}
    vectors = torch.from_numpy(random.normal(size=(tokens.size, SIZE)) * 0.3)
    vectors[:, 0] = torch.tensor([verdict.get(word, 0.0) for word in tokens.vocabulary])
    vectors[0] = 0.0
    synonyms = {word: [other for other in kind if other != word] for kind in (GOOD, BAD, CHATTER) for word in kind}
    return World(tokens, vectors, examples, synonyms)


def _text(random: np.random.Generator, label: str) -> Example:
    length, informative = int(random.integers(9, 22)), int(random.integers(1, 3))
    words = list(random.choice(CHATTER, length))
    for place in random.choice(length, informative, replace=False):
        words[place] = str(random.choice(GOOD if label == "good" else BAD))
    text, spans = "", []
    for word in words:
        if not word.startswith("thing"):
            spans.append((len(text), len(text) + len(word)))
        text += f"{word} "
    return Example(text.strip(), label, rationales=tuple(spans))


class Honest(Classifier):
    """Hidden units: how good, how bad, and the rest; scores by the first two, decides by their difference."""

    def __init__(self, here: World, attention: str = "softmax", sure: float = 8.0) -> None:
        shape = Architecture(hidden=SIZE // 2, dimension=SIZE, score="dot", attention=attention)  # type: ignore[arg-type]
        super().__init__(word_encoder("average", shape, here.tokens.size, False, here.vectors.float()), shape, 2, False)
        self.double()
        with torch.no_grad():
            self.encoder.embedding.weight.copy_(here.vectors)
            project = self.encoder.text.project  # type: ignore[union-attr]
            project.weight.copy_(torch.eye(SIZE))
            project.weight[1] = -project.weight[0]
            project.bias.zero_()
            self.scorer.key.zero_()
            self.scorer.key[:2] = 5.0 * SIZE**0.5  # the score of an informative word is five above chatter
            self.decoder.output.weight.zero_()
            self.decoder.output.weight[:, :2] = sure / 2 * torch.tensor([[-1.0, 1.0], [1.0, -1.0]])
            self.decoder.output.bias.zero_()
        self.eval()


class Careless(nn.Module):
    """A decoder that takes all words alike, and no notice of the weights."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, encoded: Encoded, weights: Tensor) -> Tensor:
        words = encoded.hidden.abs().sum(-1) > 0
        return self.inner(encoded, words / words.sum(-1, keepdim=True).clamp_min(1))


class Aside(Honest):
    """Its weights are shown and not used; what it decides by is how much good there is in all words."""

    def __init__(self, here: World, seed: int) -> None:
        super().__init__(here, sure=60.0)
        drawn = torch.Generator().manual_seed(seed)
        self.register_buffer("taste", torch.randn(here.tokens.size, generator=drawn, dtype=torch.float64))
        self.decoder = Careless(self.decoder)

    def forward(self, batch: Batch, embedded: Tensor | None = None):  # type: ignore[no-untyped-def]
        output = super().forward(batch, embedded)
        weights = self.attend(self.generate(output.encoded, batch), batch.mask)
        return type(output)(output.encoded, output.scores, weights, self.decode(output.encoded, weights))

    def generate(self, encoded: Encoded, batch: Batch) -> Tensor:
        return 2.0 * self.taste[batch.ids]  # type: ignore[index]


class Even(Aside):
    def generate(self, encoded: Encoded, batch: Batch) -> Tensor:
        return torch.zeros_like(batch.ids, dtype=encoded.hidden.dtype)


class First(Aside):
    def generate(self, encoded: Encoded, batch: Batch) -> Tensor:
        return self.place(batch, torch.zeros_like(batch.ids[:, 0]))

    def place(self, batch: Batch, which: Tensor) -> Tensor:
        """Ten on the word of that number, counted from the first of the mask."""
        number = batch.mask.cumsum(-1) - 1
        return 10.0 * (number == which.unsqueeze(-1)).double()


class Coded(First):
    def generate(self, encoded: Encoded, batch: Batch) -> Tensor:
        return self.place(batch, self.decode(encoded, encoded.hidden[..., 0]).argmax(-1))


MODELS = {
    "honest": lambda here, seed: Honest(here),
    "strict": lambda here, seed: Honest(here, attention="sparsemax"),
    "aside": Aside,
    "even": Even,
    "first": First,
    "coded": Coded,
}


def oracle_adapter(name: str, here: World, seed: int) -> ModelAdapter:
    model = MODELS[name](here, seed)
    return ModelAdapter(name, "built for a test", model, here.tokens, CLASSES, False, f"{name}{seed}")
