"""TextClassifier: the scikit-learn face of everything.

clf = TextClassifier(encoder="bilstm", technique="vanilla", seed=0)
clf.fit(texts, labels)
clf.predict(texts); clf.predict_proba(texts); clf.score(texts, labels)
clf.explain("A gorgeous, witty, seductive movie.")
clf.save("model/"); clf = steadygaze.load("model/")
"""

from pathlib import Path

from steadygaze import store
from steadygaze.estimator.classifier import Granularity as Granularity
from steadygaze.estimator.classifier import TextClassifier as TextClassifier
from steadygaze.estimator.classifier import references as references
from steadygaze.order import restored
from steadygaze.train.device import check


def load(folder: str | Path, device: str = "auto") -> TextClassifier:
    """A saved model, ready to predict and explain.

    Its parameters are those it was trained with, so that `clone(load(folder)).fit(texts, labels)` trains its like.
    Word vectors, a table of synonyms and a transformer's folder are known by name only: a model folder holds no path
    of another machine.
    """
    check(device)
    stored = store.load(Path(folder))
    known = stored.description
    values = restored(known.architecture, known.training, known.reading, known.technique, known.technique_settings)
    loaded = TextClassifier(
        known.encoder,
        known.technique,
        seed=known.seed,
        epochs=values.pop("epochs", None),
        vectors=known.vectors,
        batch_size=values.pop("batch_size", None),
        settings=values or None,
        max_length=known.max_length,
        class_weight=known.class_weight if isinstance(known.class_weight, str | None) else dict(known.class_weight),
        device=device,
    )
    return loaded._take(stored)
