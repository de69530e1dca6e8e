"""A model of this house as a Subject."""

from steadygaze.errors import UserError
from steadygaze.estimator import TextClassifier
from steadygaze.store import fingerprint
from steadygaze.subject.subject import Subject


def ours(clf: TextClassifier, name: str = "model") -> Subject:
    if not hasattr(clf, "stored_"):
        raise UserError("this TextClassifier has not been trained yet: call fit first")
    known = clf.stored_.description
    facts = {"encoder": known.encoder, "technique": known.technique, "seed": str(known.seed)}
    return Subject(
        name=name,
        kind="a steadygaze classifier",
        model=clf.stored_.model,
        tokens=clf.stored_.tokenizer,
        classes=known.classes,
        pair=known.pair,
        fingerprint=fingerprint(clf.stored_.model),
        facts=facts,
    )
