"""Faithfulness by erasure, gradient agreement, interventions on the attention, infidelity and max-sensitivity.

    comprehensiveness               drop of the predicted probability without the top-weighted words
    comprehensiveness/above-random  the same minus the drop without as many random words
    sufficiency                     drop with the top-weighted words alone
    largest-drop                    drop in the erasure that lowers it most: of random words or of the explainer's
    post-hoc-accuracy               how often these words alone give the same label: the mean over sizes
    …/5%                            the value at one size
    pearson/gradient, kendall/…     correlation with the gradient, attention detached
    …/gradient-through-attention    the same with the gradient through the attention

For a signed saliency, the top-weighted words are those with the largest positive weight for the predicted class.  The
random baseline is drawn for each text and is the same for all its explanations.

Yeh et al. 2019:

    infidelity        SAMPLES random sets of words are deleted, with sizes uniform from one word to all
    max-sensitivity   DRAWS points within ‖δ‖∞ ≤ ρ of the embeddings, ρ as for the probe `noise`

Both run on a sample of the texts, in a thorough audit only.  Infidelity costs SAMPLES forward passes per text;
max-sensitivity costs DRAWS explanations per text and explainer.

Interventions: permuted, adversarial and randomized attention.

    prediction-change/permuted    change of the prediction when the weights are permuted: the median of 100
                                  permutations.  Near 0: the prediction does not depend on the weights
    jensen-shannon/adversarial    the largest divergence of an attention that changes the prediction by at most 0.05.
                                  Near ln 2: other words would explain the prediction as well
    kendall/randomized            rank correlation with the explanation of a copy with permuted parameters: the mean of
                                  three copies.  Near 1: the explanation does not depend on what the model learned
    jensen-shannon/randomized     divergence from the explanation of the copy

NaN for a text of fewer than two words; a correlation needs three.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from steadygaze.core.maths.distributions import kendall, pearson
from steadygaze.core.random_key import RandomKey, text_key
from steadygaze.core.types import Batch
from steadygaze.explainers.class_probability import predict_without
from steadygaze.explainers.explainer import finite_weights
from steadygaze.models.classifier import Classifier, has_extension_points
from steadygaze.models.inference import Capability, Model
from steadygaze.perturbations.word_removal import Units, units_of
from steadygaze.properties.audit_case import (
    ONLY_RANDOM,
    RANDOM,
    AuditCase,
    Finding,
    Rows,
    explainer_or_none,
    lacks,
    missing_capability_reason,
    missing_findings,
    other_explainers,
    random_weights,
)
from steadygaze.properties.measures import faithfulness_measures, stability_measures
from steadygaze.properties.measures.measure import measures_of
from steadygaze.properties.measures.stability_measures import saliency_divergence
from steadygaze.properties.probes.counterfactual_attention import (
    MAX_CHANGE,
    NUMBER,
    adversarial_attention,
    permuted_predictions,
    randomized_copy,
)
from steadygaze.properties.probes.erasure import SHARES, Erasure, erase_words, rationale_sizes
from steadygaze.properties.probes.text_perturbations import embedding_noise, perturbation_radius
from steadygaze.results.note import Note, NoteCode
from steadygaze.results.row import Caveat, MeasureKey, ValueKey

GRADIENTS: dict[str, frozenset[Capability]] = {
    "gradient": frozenset({"embeddings", "extension_points"}),
    "gradient-through-attention": frozenset({"embeddings"}),
}
"""Kinds of gradient, and the model capabilities they need."""
OF_ERASURE = measures_of("erasure", faithfulness_measures.MEASURES)
ERASURE_ROWS = tuple(str(key) for measure in OF_ERASURE.values() for key in measure.keys)
SIZED = [name for name in ERASURE_ROWS if name.startswith("comprehensiveness/") and name.endswith("%")]
ERASURE_DRAW = 4
"""Draw of the answers of a noisy black box that judge the words; those of other draws choose them."""
UNREAD = Note(NoteCode.READS_SELECTION)


def faithfulness(case: AuditCase) -> Iterator[Finding]:
    yield from erasure(case)
    yield from gradient_agreement(case)


def erasure(case: AuditCase) -> Iterator[Finding]:
    if case.config.removal == "zero" and "embeddings" not in case.model.capabilities:
        yield from missing_findings(ERASURE_ROWS, lacks("embeddings"))
    else:
        yield from _erasure(case)


def _erasure(case: AuditCase) -> Iterator[Finding]:
    sizes = ",".join(f"{100 * share:g}" for share in SHARES)
    settings = {"erase": case.config.removal, "sizes": f"{sizes}%"}
    baseline = case.gather(erasure_task(RANDOM), lambda rows, batch: _erased(case, RANDOM, rows, batch))
    for measure, values in baseline.items():
        yield Finding(measure, values, RANDOM, settings)
    if not other_explainers(case):
        yield from missing_findings(["comprehensiveness/above-random"], ONLY_RANDOM)
    for name in other_explainers(case):
        scores = case.gather(erasure_task(name), lambda r, b, n=name: _erased(case, n, r, b), case.rows(name))  # type: ignore[misc]
        alone = case.probs.amax(-1) - scores["sufficiency"]
        case.erased[name] = torch.stack([scores["comprehensiveness"], alone], -1)
        scores["largest-drop"] = torch.maximum(scores["largest-drop"], baseline["largest-drop"])
        scores["comprehensiveness/above-random"] = _above_random(case, name, scores, baseline)
        for measure, values in scores.items():
            yield Finding(measure, values, name, settings, caveat=erasure_caveat(case, name))


def erasure_caveat(case: AuditCase, name: str) -> Caveat | None:
    return "erasure-judged-by-erasure" if case.explainers[name].deletes_words else None


def erasure_task(name: str) -> str:
    return f"words erased by {name}"


def _above_random(case: AuditCase, name: str, scores: dict[str, Tensor], baseline: dict[str, Tensor]) -> Tensor:
    """The mean over sizes of the drop minus that of random words; NaN for a text of one word.

    Sizes of one word do not count for an explainer that computes its weights by deleting single words.
    """
    words = case.words
    differences = torch.stack([scores[size] - baseline[size] for size in SIZED], -1)  # (N,K)
    if case.explainers[name].deletes_words:
        differences = differences.masked_fill(rationale_sizes(words, SHARES) <= 1, torch.nan)
    return differences.nanmean(-1).masked_fill(words < 2, torch.nan)


def _erased(case: AuditCase, name: str, rows: Rows, batch: Batch) -> dict[str, Tensor]:
    full = case.probs[torch.from_numpy(rows)].to(batch.ids.device)
    erasure = Erasure(removal=case.config.removal, max_tokens=case.runtime.max_tokens)
    noisy, order = case.noise is not None and case.noise.is_noisy, random_weights(case, name, rows, batch)
    with case.model.redrawn(ERASURE_DRAW if noisy else 0):  # not by the answers that chose the words
        without_top, top_only = erase_words(case.model, batch, full, order, erasure)
    scores = {name: measure.score(_outcome(full, without_top, top_only)) for name, measure in OF_ERASURE.items()}
    for name, measure in OF_ERASURE.items():
        for index, size in enumerate(f"{share:.0%}" for share in SHARES):
            if size in measure.probes:
                at_size = _outcome(full, without_top[:, [index]], top_only[:, [index]])
                scores[str(MeasureKey(name, size))] = measure.score(at_size)
    empty = ~batch.mask.any(-1)
    return {name: values.masked_fill(empty, torch.nan) for name, values in scores.items()}


def _outcome(full: Tensor, erased: Tensor, kept: Tensor) -> dict[str, Tensor]:
    return {"full": full, "erased": erased, "kept": kept, "changed": torch.cat([erased, kept], 1)}


def gradient_agreement(case: AuditCase) -> Iterator[Finding]:
    for kind, requirements in GRADIENTS.items():
        lacking = requirements - case.model.capabilities
        selects = UNREAD if "selection" in case.model.capabilities else None
        if reason := missing_capability_reason(case) or selects or (lacks(max(lacking)) if lacking else None):
            yield from missing_findings((f"kendall/{kind}", f"pearson/{kind}"), reason)
            continue
        detach = "extension_points" in requirements
        gradients = case.gradient(detach, case.all_rows)
        scores = case.gather(kind, lambda r, b, g=gradients: _agreement(case, r, b, g))  # type: ignore[misc]
        for measure, values in scores.items():
            yield Finding(str(MeasureKey(measure, kind)), values, explainer_or_none(case))


def _agreement(case: AuditCase, rows: Rows, batch: Batch, gradients: Tensor) -> dict[str, Tensor]:
    weights = case.gather_rows(case.saliency(explainer_or_none(case)), rows, batch)
    slope = case.gather_rows(gradients, rows, batch)
    return {
        "pearson": pearson(weights, slope, batch.mask),
        "kendall": kendall(weights, slope, batch.mask),
    }


SAMPLES = 20
"""Random sets of words deleted from each text."""
DRAWS = 10
"""Perturbed embeddings of each text: Captum's and Quantus's default."""
SETS_TASK = "random words removed"
NO_VECTORS = Note(NoteCode.READS_WORDS)


def infidelity(case: AuditCase) -> Iterator[Finding]:
    random_key = RandomKey(case.config.seed).child(13)

    def work(rows: Rows, batch: Batch) -> dict[str, Tensor]:
        units = units_of(batch, question=False)
        deleted = removed(units, text_key(batch), random_key)  # (B,S,U)
        full = case.probs[torch.from_numpy(rows)].to(batch.ids.device)
        predicted = full.argmax(-1)
        owner = torch.arange(len(batch), device=predicted.device).repeat_interleave(SAMPLES)
        tokens = units.tokens(deleted.flatten(0, 1), owner)
        remaining = predict_without(case.model, batch, owner, tokens, predicted).view(-1, SAMPLES)
        drops = full.gather(-1, predicted.unsqueeze(-1)) - remaining
        scores = {}
        for name in case.explainers:
            weights = units.total(case.gather_rows(case.saliency(name), rows, batch))
            attributed = (deleted * weights.unsqueeze(1)).sum(-1)
            values = faithfulness_measures.infidelity(attributed, drops)
            scores[name] = values.masked_fill(~units.mask.any(-1), torch.nan)
        return scores

    settings: dict[str, str | int | float] = {"sets": SAMPLES, "erase": "delete", "scale": "best"}
    for name, values in case.gather(SETS_TASK, work, case.sample).items():
        yield Finding("infidelity", values, name, settings, caveat=erasure_caveat(case, name))


def removed(units: Units, key: Tensor, random_key: RandomKey) -> Tensor:
    """Random sets of words, of one to all words.  (B,) -> (B,S,U) bool"""
    shape = SAMPLES, units.mask.shape[1]
    sample_keys = random_key.scramble(key.unsqueeze(-1) + torch.arange(SAMPLES, device=key.device)).flatten()
    size = random_key.child(1).uniform(sample_keys, 1, dtype=torch.float64).view(-1, SAMPLES)
    counts = (size * units.mask.sum(-1, keepdim=True)).floor().long() + 1
    sort_key = random_key.uniform(sample_keys, shape[1], dtype=torch.float64).view(-1, *shape)
    sort_key = sort_key.masked_fill(~units.mask.unsqueeze(1), 2.0)
    rank = sort_key.argsort(-1).argsort(-1)
    return (rank < counts.unsqueeze(-1)) & units.mask.unsqueeze(1)


def max_sensitivity(case: AuditCase) -> Iterator[Finding]:
    if "embeddings" not in case.model.capabilities:
        yield from missing_findings(["max-sensitivity"], lacks("embeddings"))
        return
    radius = perturbation_radius(case.model, case.config.radius)
    for name, explainer in case.explainers.items():
        if not explainer.requires:
            yield Finding("max-sensitivity", explainer=name, absent=NO_VECTORS)
            continue
        work = partial(_sensitivity, case, name, radius)
        values = case.gather(noise_task(name), work, case.sample)["sensitivity"]
        yield Finding("max-sensitivity", values, name, {"draws": DRAWS, "radius": case.config.radius})


def noise_task(name: str) -> str:
    return f"{name} under noise"


def _sensitivity(case: AuditCase, name: str, radius: Tensor, rows: Rows, batch: Batch) -> dict[str, Tensor]:
    units, explainer = units_of(batch, question=False), case.explainers[name]
    before = units.total(case.gather_rows(case.saliency(name), rows, batch))
    label = case.probs[torch.from_numpy(rows)].argmax(-1).to(batch.ids.device) if explainer.class_specific else None
    random_key, distances = RandomKey(case.config.seed).child(14), []
    for draw in range(DRAWS):
        perturbed = embedding_noise(case.model, batch, radius, random_key.child(draw)).embedded
        after = units.total(explainer.explain(case.model, batch, label, perturbed).weights.double())
        distances.append((after - before).norm(dim=-1))
    return {"sensitivity": faithfulness_measures.max_sensitivity(torch.stack(distances, -1), before.norm(dim=-1))}


RANDOMIZED = "randomized"
RANDOMIZED_ROWS = ("jensen-shannon/randomized", "kendall/randomized")
RANDOM_COPIES = 3
"""Copies with random parameters."""
NO_PARAMETERS = Note(NoteCode.NO_PARAMETERS)


def attention_interventions(case: AuditCase) -> Iterator[Finding]:
    reason = missing_capability_reason(case)
    if has_extension_points(case.model) and not reason:
        yield from _counterfactual(case, case.model)
    else:
        yield from missing_findings(
            ("jensen-shannon/adversarial", "prediction-change/permuted"),
            reason or lacks("extension_points"),
        )
    explainers = other_explainers(case)
    black_box = next(case.model.parameters(), None) is None
    if black_box or not explainers:
        yield from missing_findings(RANDOMIZED_ROWS, NO_PARAMETERS if black_box else ONLY_RANDOM)
    else:
        yield from _randomized(case, explainers)


def _counterfactual(case: AuditCase, model: Classifier) -> Iterator[Finding]:
    key = RandomKey(case.config.seed)

    def permuted(rows: Rows, batch: Batch) -> dict[str, Tensor]:
        before = case.probs[torch.from_numpy(rows)].to(batch.ids.device).unsqueeze(1)
        change = stability_measures.prediction_change(before, permuted_predictions(model, batch, key.child(8)))
        return {"permuted": _nan_below_two_words(change.quantile(0.5, dim=-1), batch)}

    def adversarial(_: Rows, batch: Batch) -> dict[str, Tensor]:
        distance = adversarial_attention(model, batch, key.child(9)).distance
        return {"adversarial": _nan_below_two_words(distance, batch)}

    values = case.gather("permuted attention", permuted)["permuted"]
    yield Finding("prediction-change/permuted", values, "attention", {"permutations": NUMBER})
    exact = model.has_linear_decoder and case.probs.shape[1] == 2
    rows = case.all_rows if exact else case.sample  # a search takes hundreds of steps
    values = case.gather("adversarial attention", adversarial, rows)["adversarial"]
    settings = {"within": MAX_CHANGE, "solver": "exact" if exact else "search"}
    yield Finding("jensen-shannon/adversarial", values, "attention", settings)


def _nan_below_two_words(values: Tensor, batch: Batch) -> Tensor:
    return values.masked_fill(batch.mask.sum(-1) < 2, torch.nan)


def _randomized(case: AuditCase, names: list[str]) -> Iterator[Finding]:
    draws: list[dict[ValueKey, Tensor]] = []
    for draw in range(RANDOM_COPIES):
        randomized = randomized_copy(case.model, RandomKey(case.config.seed).child(10, draw))
        draws.append({key: value for name in names for key, value in _compare(case, name, randomized, draw).items()})
        del randomized  # one copy at a time
    for key in draws[0]:
        values = torch.stack([scores[key] for scores in draws]).nanmean(0)
        yield Finding(str(key.measure), values, key.explainer, {"draws": RANDOM_COPIES})


def _compare(case: AuditCase, name: str, randomized: Model, draw: int) -> dict[ValueKey, Tensor]:
    explainer, saliency = case.explainers[name], case.saliency(name)

    def work(rows: Rows, batch: Batch) -> dict[ValueKey, Tensor]:
        label = case.probs[torch.from_numpy(rows)].argmax(-1).to(batch.ids.device) if explainer.class_specific else None
        after = finite_weights(explainer.explain(randomized, batch, label), batch)
        before = case.gather_rows(saliency, rows, batch)
        divergence = _nan_below_two_words(saliency_divergence(before, after, batch.mask), batch)
        return {
            ValueKey(MeasureKey("kendall", RANDOMIZED), name): kendall(before, after, batch.mask),
            ValueKey(MeasureKey("jensen-shannon", RANDOMIZED), name): divergence,
        }

    return case.gather(randomized_task(name, draw), work, case.rows(name))


def randomized_task(name: str, draw: int) -> str:
    return f"{name} of a randomized model, {draw + 1} of {RANDOM_COPIES}"
