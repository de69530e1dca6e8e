"""Any texts -> probabilities: what is inside cannot be seen, so that it is asked about changed texts, and nothing else.

Equal texts are asked about once, and what was said of the last many thousand is remembered: most erasures of a text
come up again in another measure.  The model is taken to say the same of the same text.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.explain.learned.credible import predicted
from steadygaze.reader import Ability, Reader
from steadygaze.subject.network import Reading
from steadygaze.subject.subject import Subject
from steadygaze.subject.words import TextWords
from steadygaze.types import Batch, Label

CHUNK = 256
"""Texts asked about at once, at most."""
REMEMBERED = 1 << 17
"""Texts whose probabilities are kept: some 30 MB."""
Text = str | tuple[str, str]
"""A text, or a text and a question about it."""


class Box(Reader):
    abilities: ClassVar[frozenset[Ability]] = frozenset()

    def __init__(self, predict: Callable[[list[Any]], Any], tokens: TextWords, classes: int) -> None:
        super().__init__()
        self.predict = predict
        self.tokens = tokens
        self.classes = classes
        self._said: OrderedDict[bytes, NDArray[np.float64]] = OrderedDict()  # whose oldest is found at once

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> Reading:
        if embedded is not None:
            raise ValueError("a black box reads texts, not vectors")
        texts: list[Any] = self.tokens.join(batch.ids, batch.present)
        if batch.question_ids is not None and batch.question_present is not None:
            texts = list(zip(texts, self.tokens.join(batch.question_ids, batch.question_present), strict=True))
        floor = np.finfo(np.float64).tiny  # whose logarithm is finite
        logits = torch.from_numpy(np.log(np.maximum(self._ask(texts), floor)))
        return Reading(None, logits.to(batch.ids.device))

    def forget(self) -> None:
        self._said.clear()

    def _ask(self, texts: Sequence[Text]) -> NDArray[np.float64]:
        """(B,C)"""
        keys = {text: _key(text) for text in texts}
        said = {text: self._said[key] for text, key in keys.items() if key in self._said}
        for chunk in _chunks([text for text in keys if text not in said]):
            said.update(zip(chunk, predicted(self.predict, list(chunk), len(chunk), self.classes), strict=True))
        self._remember({keys[text]: found for text, found in said.items()})
        return np.stack([said[text] for text in texts])

    def _remember(self, said: dict[bytes, NDArray[np.float64]]) -> None:
        """The newest last; the oldest are forgotten."""
        for key, found in said.items():
            self._said[key] = found
            self._said.move_to_end(key)
        while len(self._said) > REMEMBERED:
            self._said.popitem(last=False)


def black_box(predict: Callable[[list[Any]], Any], classes: Sequence[Label], name: str) -> Subject:
    tokens = TextWords()
    return Subject(
        name=name,
        kind="a black box",
        model=Box(predict, tokens, len(classes)).eval(),
        tokens=tokens,
        classes=classes,
        pair=None,
        fingerprint="",
    )


def _chunks(texts: list[Text]) -> Iterator[list[Text]]:
    for start in range(0, len(texts), CHUNK):
        yield texts[start : start + CHUNK]


def _key(text: Text) -> bytes:
    """Sixteen bytes, however long the text; `repr` because a text may hold what UTF-8 cannot."""
    return hashlib.blake2b(repr(text).encode(), digest_size=16).digest()
