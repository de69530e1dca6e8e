"""Stability, robustness and seed consistency.

Stability: the shift of the explanation and of the prediction under a probe of the text; robustness: of its embeddings.

    weight-correlation/<probe>   correlation of the weights of the words
    jensen-shannon/<probe>       divergence of the normalized saliencies
    top-k-overlap/<probe>        share of the top-k words that stay in the top k
    kendall/<probe>              rank correlation of the words
    …/<probe>-kept               the last two, for texts that keep their label (Yin et al. 2022: stability)
    prediction-change/<probe>    ½ Σ |Δp|
    label-flip/<probe>           whether the label changes
    words-substituted/<probe>    number of substituted words

Normalized entropy and distance to uniform describe the saliency itself: one that is the same for every text is stable
but explains nothing.  NaN for a text of fewer than two words, or with too few substituted words.

The gradient of the label is 0 in the embeddings of a separate generator: FGM on the label cannot change its selection.

Seed consistency: agreement of models that differ by their seed only, as means over all pairs of models.

    weight-correlation/seeds  correlation of their saliencies
    jensen-shannon/seeds      divergence of their saliencies
    top-k-overlap/seeds       share of the top-k words in common
    prediction-change/seeds   difference of their predictions
    label-flip/seeds          how often they predict different classes
    …/others                  the same for models with different settings: not evidence about seeds

Class-specific explainers explain the class that the first model predicts, for every model.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import torch
from torch import Tensor

from steadygaze.core.maths.distributions import normalize
from steadygaze.core.types import Batch
from steadygaze.explainers.attention import Attention
from steadygaze.explainers.explainer import Saliency, finite_weights
from steadygaze.models.inference import selects
from steadygaze.properties.audit_case import (
    AuditCase,
    Finding,
    Rows,
    lacks,
    missing_capability_reason,
    missing_findings,
)
from steadygaze.properties.measures import stability_measures
from steadygaze.properties.measures.measure import measures_of
from steadygaze.properties.probes.text_perturbations import MODEL_EXPLAINERS, PerturbedBatch, Probe, observe
from steadygaze.results.note import Note, NoteCode, note
from steadygaze.results.row import MeasureKey, ValueKey
from steadygaze.results.seed_intervals import by_model

OF_SHIFT = measures_of("shift", stability_measures.MEASURES)
OF_PREDICTIONS = measures_of("predictions", stability_measures.MEASURES)
OF_WEIGHTS = measures_of("weights", stability_measures.MEASURES)
Scores = dict[ValueKey, Tensor]
NO_SYNONYMS, NO_GRADIENT = Note(NoteCode.NO_SYNONYM_TABLE), Note(NoteCode.NO_EFFECT_OF_GRADIENT)
UNCHANGED = NoteCode.LEFT_OUT_WITHOUT_SYNONYMS, NoteCode.LEFT_OUT_SHORT
"""Why a probe of words, or of embeddings, did not change a text."""


def stability(case: AuditCase) -> Iterator[Finding]:
    for name in case.explainers:
        yield from _concentration(case, name)
    for name, probe in case.probes.items():
        if not probe.vectors:
            yield from _probe_findings(case, name, probe)


def robustness(case: AuditCase) -> Iterator[Finding]:
    fgm_shifts: dict[str | None, Tensor] = {}
    for name, probe in case.probes.items():
        if not probe.vectors:
            continue
        if lacking := probe.requires - case.model.capabilities:
            yield from missing_findings(_rows_under(name), lacks(max(lacking)))
            continue
        for finding in _probe_findings(case, name, probe):
            if finding.measure == "weight-correlation/fgm-label" and finding.values is not None:
                fgm_shifts[finding.explainer] = finding.values
            yield _with_fgm(finding, fgm_shifts.get(finding.explainer))


def _rows_under(probe: str) -> list[str]:
    return [str(key) for measure in stability_measures.MEASURES for key in measure.keys if key.probe == probe]


def _with_fgm(finding: Finding, fgm_shift: Tensor | None) -> Finding:
    """Note the shift by FGM on the same texts, if PGD ran on a sample: the means are of different texts."""
    if finding.measure != "weight-correlation/pgd-attention" or finding.values is None or fgm_shift is None:
        return finding
    sampled, computed = finding.values.isfinite(), fgm_shift.isfinite()
    if not sampled.any() or not (computed & ~sampled).any():
        return finding
    mean = float(fgm_shift[sampled].nanmean())
    remark = note(NoteCode.FGM_ON_SAME_TEXTS, texts=int(sampled.sum()), value=mean)
    return replace(finding, notes=(*finding.notes, remark))


def _concentration(case: AuditCase, name: str) -> Iterator[Finding]:
    def work(rows: Rows, batch: Batch) -> dict[str, Tensor]:
        share = normalize(case.gather_rows(case.saliency(name), rows, batch), batch.mask)
        too_short = batch.mask.sum(-1) < 2
        return {
            measure: of.score({"w": share, "mask": batch.mask}).masked_fill(too_short, torch.nan)
            for measure, of in OF_WEIGHTS.items()
        }

    for measure, values in case.gather(name, work, case.rows(name)).items():
        yield Finding(measure, values, name)


def _probe_findings(case: AuditCase, name: str, probe: Probe) -> Iterator[Finding]:
    explainers = [explainer for explainer in case.explainers if not probe.of or explainer in probe.of]
    reasons = {explainer: reason for explainer in explainers if (reason := _inapplicable(case, name, probe, explainer))}
    applicable = [explainer for explainer in explainers if explainer not in reasons]
    for measure in [str(MeasureKey(measure, name)) for measure in OF_SHIFT]:
        if (missing := missing_capability_reason(case)) and not explainers:
            yield from missing_findings([measure], missing)
        yield from (Finding(measure, explainer=explainer, absent=reason) for explainer, reason in reasons.items())
    settings: dict[str, str | int | float] = {"radius": case.config.radius}
    if not probe.vectors:
        settings = {"synonyms": probe.origin, "words": probe.words}
    for rows, group in [(case.sample, ["", *applicable])] if probe.expensive else _groups(case, applicable):
        scores = case.gather(name, lambda r, b, g=group: _scores(case, name, g, r, b), rows)  # type: ignore[misc]
        undefined = {key: int(values[torch.from_numpy(rows)].isnan().sum()) for key, values in scores.items()}
        for key, values in scores.items():
            if key.measure.measure == "words-substituted" and probe.vectors:
                continue
            # The first measure is defined for every text that the probe changed: an equal count is the unchanged texts.
            left = undefined[key] if undefined[key] == next(iter(undefined.values())) else 0
            notes = (note(UNCHANGED[probe.vectors], left=left, texts=len(rows)),) if left else ()
            row_settings = settings | ({"k": case.config.k} if key.measure.measure == "top-k-overlap" else {})
            yield Finding(str(key.measure), values, key.explainer, row_settings, notes)


def _inapplicable(case: AuditCase, name: str, probe: Probe, explainer: str) -> Note | None:
    """Why a probe cannot change an explanation; None if it can."""
    if probe.vectors and not case.explainers[explainer].requires:
        return note(NoteCode.READS_WORDS, explainer=explainer)
    separate = selects(case.model) and case.model.selection_config.separate_encoders
    return NO_GRADIENT if separate and explainer in MODEL_EXPLAINERS and name == "fgm-label" else None


def _groups(case: AuditCase, names: Sequence[str]) -> Iterator[tuple[Rows, list[str]]]:
    """Explainers that run on all texts, with the predictions; then those that run on a sample."""
    cheap = [name for name in names if case.rows(name) is case.all_rows]
    yield case.all_rows, ["", *cheap]
    if expensive := [name for name in names if name not in cheap]:
        yield case.sample, expensive


def _scores(case: AuditCase, probe_name: str, names: Sequence[str], rows: Rows, batch: Batch) -> Scores:
    """`names`: the explainers; '' for the predictions."""
    probe = case.probes[probe_name]
    perturbed = probe.move(case.model, batch)
    unchanged = (perturbed.touched < probe.words) | (batch.mask.sum(-1) < 2)  # a single word always has all the weight
    scores: Scores = {}
    after: Tensor | None = None
    for name in filter(None, names):
        saliency = _perturbed_saliency(case, name, rows, perturbed)
        if probe.vectors:
            case.keep_perturbed(probe_name, name, rows, batch, saliency)
        if isinstance(case.explainers[name], Attention):  # the same forward pass
            after = saliency.logits.double().softmax(-1)
        for measure, values in _word_scores(case, name, rows, batch, finite_weights(saliency, perturbed.batch)).items():
            scores[ValueKey(MeasureKey(measure, probe_name), name)] = values
    if "" in names or not probe.vectors:
        before = case.probs[torch.from_numpy(rows)].to(batch.ids.device)
        after = observe(case.model, perturbed.batch, perturbed.embedded).probs if after is None else after
        label_kept = {} if probe.vectors else _label_kept(scores, stability_measures.label_flip(before, after) > 0)
        of_texts = _text_scores(before, after, perturbed) if "" in names else {}
        scores = (
            {ValueKey(MeasureKey(name, probe_name)): value for name, value in of_texts.items()} | scores | label_kept
        )
    return {
        key: value if key.measure.measure == "words-substituted" else value.masked_fill(unchanged, torch.nan)
        for key, value in scores.items()
    }


def _label_kept(scores: Scores, flipped: Tensor) -> Scores:
    """The scores of texts that keep their label: the stability of Yin et al. 2022."""
    kept = {key: MeasureKey(key.measure.measure, f"{key.measure.probe}-kept") for key in scores}
    return {
        ValueKey(kept[key], key.explainer): value.masked_fill(flipped, torch.nan)
        for key, value in scores.items()
        if kept[key].probe in OF_SHIFT[key.measure.measure].probes
    }


def _text_scores(before: Tensor, after: Tensor, perturbed: PerturbedBatch) -> dict[str, Tensor]:
    return {
        **{name: measure.score({"p": before, "q": after}) for name, measure in OF_PREDICTIONS.items()},
        "words-substituted": perturbed.touched,
    }


def _perturbed_saliency(case: AuditCase, name: str, rows: Rows, perturbed: PerturbedBatch) -> Saliency:
    explainer, device = case.explainers[name], perturbed.batch.ids.device
    label = case.probs[torch.from_numpy(rows)].argmax(-1).to(device) if explainer.class_specific else None
    return explainer.explain(case.model, perturbed.batch, label, perturbed.embedded)


def _word_scores(case: AuditCase, name: str, rows: Rows, batch: Batch, after: Tensor) -> dict[str, Tensor]:
    before = case.gather_rows(case.saliency(name), rows, batch)
    values = {"x": before, "y": after, "mask": batch.mask, "k": case.config.k}
    return {measure: of.score(values) for measure, of in OF_SHIFT.items()}


ALONE = Note(NoteCode.NO_OTHER_SEEDS)
SEEDS, OTHERS = "seeds", "others"
SEED_PREDICTIONS = measures_of("predictions", stability_measures.MEASURES, SEEDS)
SEED_SHIFT = measures_of("shift", stability_measures.MEASURES, SEEDS)


def seed_consistency(case: AuditCase) -> Iterator[Finding]:
    if not case.others:
        yield from missing_findings(
            (str(MeasureKey(measure, SEEDS)) for measure in (*SEED_PREDICTIONS, *SEED_SHIFT)), ALONE
        )
        return
    models = (case, *case.others)
    count = {"models": len(models)}
    for measure, of in SEED_PREDICTIONS.items():
        pairs = _of_pairs([model.probs for model in models], lambda p, q, of=of: of.score({"p": p, "q": q}))  # type: ignore[misc]
        yield _seed_finding(measure, pairs, len(models), settings=count)
    for name in case.explainers:
        scores = case.gather(seeds_task(name), lambda r, b, n=name: _seed_scores(case, n, r, b), case.rows(name))  # type: ignore[misc]
        for measure, pairs in scores.items():
            settings = count | ({"k": case.config.k} if measure == "top-k-overlap" else {})
            yield _seed_finding(measure, pairs, len(models), name, settings=settings)


def seeds_task(name: str) -> str:
    return f"{name} of all models"


def seed_saliencies(case: AuditCase, name: str, rows: Rows, batch: Batch) -> list[Tensor]:
    """The saliencies of all models, for the class that the first predicts.  (B,T) each"""
    label = case.probs[torch.from_numpy(rows)].argmax(-1).to(batch.ids.device)

    def saliency(seed_case: AuditCase) -> Tensor:
        explainer, device = seed_case.explainers[name], seed_case.model.device
        target = label.to(device) if explainer.class_specific else None
        weights = finite_weights(explainer.explain(seed_case.model, batch.to(device), target), batch.to(device))
        return weights.to(batch.ids.device)

    return [case.gather_rows(case.saliency(name), rows, batch), *map(saliency, case.others)]


def not_comparable(comparisons: Iterable[Finding], reason: Note) -> Iterator[Finding]:
    """For models with different settings: the findings under another name, and the reason for the missing ones."""
    findings = list(comparisons)
    for finding in findings:
        yield replace(finding, measure=str(MeasureKey(finding.key.measure, OTHERS)), notes=(reason,))
    yield from missing_findings(dict.fromkeys(finding.measure for finding in findings), reason)


def _seed_scores(case: AuditCase, name: str, rows: Rows, batch: Batch) -> dict[str, Tensor]:
    saliencies, too_short = seed_saliencies(case, name, rows, batch), batch.mask.sum(-1) < 2
    settings = {"mask": batch.mask, "k": case.config.k}
    scores = {
        measure: _of_pairs(saliencies, lambda x, y, of=of: of.score({"x": x, "y": y, **settings}))  # type: ignore[misc]
        for measure, of in SEED_SHIFT.items()
    }
    return {measure: values.masked_fill(too_short.unsqueeze(-1), torch.nan) for measure, values in scores.items()}


def _of_pairs(outputs: list[Tensor], measure: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """The values of all pairs of models.  (N,P)"""
    return torch.stack([measure(p, q) for p, q in combinations(outputs, 2)], -1)


def _seed_finding(
    measure: str, pairs: Tensor, models: int, name: str | None = None, *, settings: Mapping[str, str | int | float]
) -> Finding:
    """The mean over all pairs of models (N,P), with the contribution of each model."""
    by_pair = dict(zip(combinations(range(models), 2), pairs.T.numpy(), strict=True))
    contributions = torch.from_numpy(by_model(by_pair, models)) if models > 2 else None
    return Finding(str(MeasureKey(measure, SEEDS)), pairs.mean(-1), name, settings, of_models=contributions)
