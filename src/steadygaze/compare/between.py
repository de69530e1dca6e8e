"""What is asked of several models at once: how far those of one technique are apart, and which words all exchange."""

from collections.abc import Sequence
from itertools import combinations

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
from steadygaze.subject.synonyms import table_for
from steadygaze.tokens.synonyms import lexicon


def apart(order: Order, given: Material, models: Sequence[TextClassifier]) -> Arrays:
    """`measure|explainer|place+place` -> (N,): how far every two of them are apart on each text, as an audit has it."""
    name = order.explainer
    cases = [prepare(as_subject(one), given.examples, {name: EXPLAINERS[name]()}, plan(order)).case for one in models]
    mask = cases[0].mask
    said = [case.saliency(name) for case in cases]
    unasked = said[0].isnan().any(-1)
    return {
        f"{BETWEEN}|{name}|{i}+{j}": distance(said[i], said[j], mask).masked_fill(unasked, float("nan")).numpy()
        for i, j in combinations(range(len(models)), 2)
    }


def exchanges(clf: TextClassifier) -> dict[str, list[str]]:
    """Words with close vectors in one model, for the audit of all: each model's own would be another test for each."""
    subject = as_subject(clf)
    known = table_for(subject)
    if known is None:
        return {}
    names = lexicon(subject.tokens.vocabulary, subject.tokens.kind).names
    rows = zip(names, known.table.tolist(), known.count.tolist(), strict=True)
    return {name: [names[i] for i in ids[:count]] for name, ids, count in rows if count}
