"""A model of this house as a Subject."""

import hashlib
import json

from steadygaze.errors import UserError
from steadygaze.estimator import TextClassifier
from steadygaze.order import restored
from steadygaze.store import Stored, fingerprint
from steadygaze.subject.subject import Subject


def _fingerprint(stored: Stored) -> str:
    """SHA-256 of the weights, of the words that the ids stand for and of the labels that the classes do."""
    known = [fingerprint(stored.model), stored.tokenizer.to_json(), list(stored.description.classes)]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()


def ours(clf: TextClassifier, name: str = "model") -> Subject:
    if not hasattr(clf, "stored_"):
        raise UserError("this TextClassifier has not been trained yet: call fit first")
    known = clf.stored_.description
    own = restored(known.architecture, known.training, known.reading, known.technique, known.technique_settings)
    facts = {
        "encoder": known.encoder,
        "technique": known.technique,
        "settings": ", ".join(f"{name} {value}" for name, value in sorted(own.items())) or "as they come",
        "vectors": known.vectors or "none",
        "class weight": str(known.class_weight or "none"),
        "trained on": known.corpus[:12],
        "seed": str(known.seed),
    }
    return Subject(
        name=name,
        kind="a steadygaze classifier",
        model=clf.stored_.model,
        tokens=clf.stored_.tokenizer,
        classes=known.classes,
        pair=known.pair,
        fingerprint=_fingerprint(clf.stored_),
        facts=facts,
    )
