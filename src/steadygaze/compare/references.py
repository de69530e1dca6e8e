"""Models that a technique holds its own against, where they are cells of the comparison already.

A vanilla model trained as somebody's first stage and a vanilla cell of that seed are the same, bit for bit: it need not
be trained twice.  Where some of the models wanted are no cells, all come from the shelf, which trains each once.
"""

from dataclasses import replace

from steadygaze.compare.folder import Folder
from steadygaze.compare.order import Order
from steadygaze.estimator import TextClassifier, load
from steadygaze.objective.technique import Stage
from steadygaze.objective.vanilla import Vanilla
from steadygaze.train.run import RESULT

VANILLA = "vanilla"


def references(order: Order, folder: Folder, technique: str, seed: int, device: str) -> list[TextClassifier]:
    """In the order in which the technique asks for them; none where it asks for none, or for others."""
    stages = {
        stage.model: stage for stage in order.training(technique, seed).technique.stages(seed) if stage.model != RESULT
    }
    if not stages or not _alike(order, technique):
        return []
    seeds = [seed if stage.seed is None else stage.seed for stage in stages.values()]
    if not all(map(_plain, stages.values())) or not set(seeds) <= set(order.numbers):
        return []
    return [load(folder.cell(VANILLA, number) / "model", device) for number in seeds]


def _alike(order: Order, technique: str) -> bool:
    """Whether vanilla is trained before it, and with the same settings."""
    before = order.techniques[: order.techniques.index(technique)]
    if VANILLA not in before:
        return False
    ours, theirs = order.training(technique), order.training(VANILLA)
    return all(getattr(ours, part) == getattr(theirs, part) for part in ("architecture", "training", "reading"))


def _plain(stage: Stage) -> bool:
    """Whether a run of its own would end in just this."""
    return stage == replace(Stage(stage.name, Vanilla()), model=stage.model, seed=stage.seed)
