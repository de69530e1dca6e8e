"""What is asked of several models at once: how far those of one technique are apart, and which words all exchange."""

from collections.abc import Sequence
from dataclasses import replace

from steadygaze.audit.prepare import prepare
from steadygaze.audit.protocol.retrained import retrained
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
    """`measure|explainer` -> (N,): how far two of them are apart on each text, the mean over all pairs."""
    ways = {order.explainer: EXPLAINERS[order.explainer]()}
    cases = [prepare(as_subject(model), given.examples, ways, plan(order)).case for model in models]
    found = retrained(replace(cases[0], others=tuple(cases[1:])))
    return {
        f"{one.measure}|{one.explainer}" if one.explainer else one.measure: one.values.double().cpu().numpy()
        for one in found
        if one.values is not None
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
