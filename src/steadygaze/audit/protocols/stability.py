"""Does it hold still?  The same texts, moved a little: do the highlighted words, and the prediction, move too?

A probe moves a text or its vectors; of what the model shows before and after it is asked

    jensen-shannon/<probe>       how far the saliency moved, as shares of its whole
    top-k-overlap/<probe>        which part of the k heaviest words stayed among them
    kendall/<probe>              whether the words stayed in their order
    …/<probe>-kept               the last two, of texts that kept their label (Yin et al. 2022: stability)
    prediction-change/<probe>    ½ Σ |Δp|: how far the prediction moved
    label-flip/<probe>              whether the label changed

and of the saliency itself, since one that is the same for every text is stable and explains nothing: normalized entropy
and distance to uniform.  NaN where a question makes no sense of a text: a move when it has
fewer than two words, or fewer were exchanged than should have been.  `words-substituted/<probe>` is how many were.

A step against the label follows its slope, which is 0 in the vectors that a generator of its own selects by: what is
selected cannot move then, and is not asked whether it does.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from steadygaze.audit.audit_case import AuditCase, Rows, saliency_divergence, shared_top_k
from steadygaze.audit.audit_config import origin
from steadygaze.audit.finding import Finding, missing_capability_reason, missing_findings
from steadygaze.audit.measure_names import probe_names
from steadygaze.audit.measures import faithfulness_measures, stability_measures
from steadygaze.audit.probes.observation import PerturbedBatch, observe
from steadygaze.audit.probes.text_perturbations import OWN, Probe
from steadygaze.core.maths.masked import normalize
from steadygaze.core.types import Batch
from steadygaze.explainers.explainer import finite_weights
from steadygaze.models.model_protocol import MISSING_CAPABILITY
from steadygaze.models.rationalizer import Rationalizer

OF_WORDS = ("jensen-shannon", "top-k-overlap", "kendall")
YIN = ("top-k-overlap", "kendall")
TABLE = "synonyms= (--synonyms) gives a table of them"
NO_SYNONYMS = f"no table of synonyms was given: {TABLE}"
UNTOUCHED = (f"which have fewer than two words, or too few with a synonym: {TABLE}", "which have fewer than two words")
"""Why a probe of words, or of vectors, left a text as it was."""
BLIND = "reads words, not vectors"
SLOPELESS = "the label has no slope in the vectors that the selection is made by, which this step leaves where they are"


def stability(case: AuditCase) -> Iterator[Finding]:
    for name in case.explainers:
        yield from _itself(case, name)
    for name, probe in case.probes.items():
        if lacking := probe.requires - case.model.capabilities:
            yield from missing_findings(probe_names(name), MISSING_CAPABILITY[max(lacking)])
        else:
            yield from _asked(case, name, probe)


def _itself(case: AuditCase, name: str) -> Iterator[Finding]:
    def work(rows: Rows, batch: Batch) -> dict[str, Tensor]:
        share, few = normalize(case.gather_rows(case.saliency(name), rows, batch), batch.mask), batch.mask.sum(-1) < 2
        found = {
            "normalized-entropy": stability_measures.normalized_entropy,
            "distance-to-uniform": stability_measures.distance_to_uniform,
        }
        return {measure: of(share, batch.mask).masked_fill(few, torch.nan) for measure, of in found.items()}

    for measure, values in case.gather(name, work, case.rows(name)).items():
        yield Finding(measure, values, name)


def _asked(case: AuditCase, name: str, probe: Probe) -> Iterator[Finding]:
    about = [other for other in case.explainers if not probe.of or other in probe.of]
    unable = {other: why for other in about if (why := _unmoved(case, name, probe, other))}
    able = [other for other in about if other not in unable]
    for measure in [f"{measure}/{name}" for measure in OF_WORDS]:
        yield from missing_findings([] if about else [measure], missing_capability_reason(case))
        yield from (Finding(measure, explainer=other, absent=why) for other, why in unable.items())
    settings: dict[str, str | int | float] = {"radius": case.plan.radius}
    if not probe.vectors:
        settings = {"synonyms": origin(case.plan.synonyms[name][0]), "words": probe.words}
    for rows, group in [(case.sample, ["", *able])] if probe.expensive else _groups(case, able):
        found = case.gather(name, lambda r, b, g=group: _measured(case, probe, g, r, b), rows)  # type: ignore[misc]
        missing = {key: int(values[torch.from_numpy(rows)].isnan().sum()) for key, values in found.items()}
        for key, values in found.items():
            measure, explainer, kept = (*key.split("|"), "", "")[:3]
            if measure == "words-substituted" and probe.vectors:
                continue
            # The first number is there of every text that was touched: who lacks as many lacks those.
            left = missing[key] if missing[key] == next(iter(missing.values())) else 0
            note = f"left out: {left:,} of {len(rows):,} texts, {UNTOUCHED[probe.vectors]}" if left else ""
            known = settings | ({"k": case.plan.k} if measure == "top-k-overlap" else {})
            yield Finding(f"{measure}/{name}{kept and '-kept'}", values, explainer or None, known, note)


def _unmoved(case: AuditCase, name: str, probe: Probe, explainer: str) -> str:
    """Why a probe cannot move an explanation; '': it can."""
    if probe.vectors and not case.explainers[explainer].requires:
        return f"{explainer} {BLIND}"
    apart = isinstance(case.model, Rationalizer) and case.model.selection_config.separate_encoders
    return SLOPELESS if apart and explainer in OWN and name == "fgm-label" else ""


def _groups(case: AuditCase, names: Sequence[str]) -> Iterator[tuple[Rows, list[str]]]:
    """Explainers asked about all texts, with the predictions themselves; then those asked about a sample."""
    cheap = [name for name in names if case.rows(name) is case.all_rows]
    yield case.all_rows, ["", *cheap]
    if expensive := [name for name in names if name not in cheap]:
        yield case.sample, expensive


def _measured(case: AuditCase, probe: Probe, names: Sequence[str], rows: Rows, batch: Batch) -> dict[str, Tensor]:
    moved = probe.move(case.model, batch)
    still = (moved.touched < probe.words) | (batch.mask.sum(-1) < 2)  # one word has all the weight, whatever happens
    found = {key: value for name in names if name for key, value in _of_words(case, name, rows, batch, moved).items()}
    if "" in names or not probe.vectors:
        before = case.probs[torch.from_numpy(rows)].to(batch.ids.device)
        after = observe(case.model, moved.batch, moved.embedded).probs
        kept = {} if probe.vectors else _kept(found, stability_measures.label_flip(before, after) > 0)
        found = (_of_text(before, after, moved) if "" in names else {}) | found | kept
    return {
        key: value if key == "words-substituted" else value.masked_fill(still, torch.nan)
        for key, value in found.items()
    }


def _kept(found: dict[str, Tensor], turned: Tensor) -> dict[str, Tensor]:
    """Of texts that kept their label: the stability of Yin et al. 2022."""
    own = {key: value for key, value in found.items() if key.startswith(YIN)}
    return {f"{key}|kept": value.masked_fill(turned, torch.nan) for key, value in own.items()}


def _of_text(before: Tensor, after: Tensor, moved: PerturbedBatch) -> dict[str, Tensor]:
    return {
        "prediction-change": stability_measures.prediction_change(before, after),
        "label-flip": stability_measures.label_flip(before, after),
        "words-substituted": moved.touched,
    }


def _of_words(case: AuditCase, name: str, rows: Rows, batch: Batch, moved: PerturbedBatch) -> dict[str, Tensor]:
    explainer, before = case.explainers[name], case.gather_rows(case.saliency(name), rows, batch)
    label = case.probs[torch.from_numpy(rows)].argmax(-1).to(batch.ids.device) if explainer.class_specific else None
    after = finite_weights(explainer.explain(case.model, moved.batch, label, moved.embedded), moved.batch)
    return {
        f"jensen-shannon|{name}": saliency_divergence(before, after, batch.mask),
        f"top-k-overlap|{name}": shared_top_k(before, after, batch.mask, case.plan.k),
        f"kendall|{name}": faithfulness_measures.kendall(before, after, batch.mask),
    }
