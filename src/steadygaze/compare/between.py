"""What is asked of several models at once: how far those of one technique are apart."""

from collections.abc import Iterable
from itertools import combinations

import torch
from torch import Tensor

from steadygaze.audit.case import Case, Rows
from steadygaze.audit.case import apart as distance
from steadygaze.audit.prepare import prepare
from steadygaze.compare.columns import BETWEEN
from steadygaze.compare.folder import Arrays
from steadygaze.compare.identity import plan
from steadygaze.compare.material import Material
from steadygaze.compare.order import Order
from steadygaze.estimator import TextClassifier
from steadygaze.explain import EXPLAINERS
from steadygaze.subject import as_subject
from steadygaze.types import Batch


def apart(order: Order, given: Material, models: Iterable[TextClassifier]) -> Arrays:
    """`measure|explainer|place+place` -> (N,): how far every two of them are apart on each text, as an audit has it.

    Of a model no more is kept than what it says, so that they may be loaded one after the other.
    """
    each = iter(models)
    first = next(each)
    name = order.explains(str(first.technique))

    def case_of(one: TextClassifier) -> Case:
        return prepare(as_subject(one), given.examples, {name: EXPLAINERS[name]()}, plan(order)).case

    def alike(one: TextClassifier) -> Tensor:
        return case_of(one).explained(name, label)

    case = case_of(first)
    label = case.probs.argmax(-1)  # reasons for one class: those for different ones differ
    said = [case.saliency(name), *map(alike, each)]  # no loop, which would hold a model while the next is loaded

    def work(rows: Rows, batch: Batch) -> dict[str, Tensor]:
        here, few = [case.of(one, rows, batch) for one in said], batch.mask.sum(-1) < 2
        pairs = combinations(enumerate(here), 2)
        return {f"{i}+{j}": distance(p, q, batch.mask).masked_fill(few, torch.nan) for (i, p), (j, q) in pairs}

    found = case.gather(f"{name} of all models", work, case.rows(name))
    return {f"{BETWEEN}|{name}|{pair}": values.numpy() for pair, values in found.items()}
