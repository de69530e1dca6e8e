"""The certificate: sound against every attack, tight where it claims to be, and clear about its limits."""

import copy
import io
import json
import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

import steadygaze
from contract.tiny import assert_close, batch, bert, encoder, split, widened
from estimator.tiny import LABELS, PAIRS, SMALL, TEXTS, fitted, fitted_pair, tiny, transformer_folder
from steadygaze.certificates.certificate import Certificate, Certificates
from steadygaze.certificates.certificate_bounds import Bounds, certify_batch, top_k_holds
from steadygaze.certificates.certify import certify
from steadygaze.core.errors import UserError
from steadygaze.core.maths.distributions import kl_logits
from steadygaze.core.types import Batch, Forward
from steadygaze.models.classifier import Architecture, Classifier
from steadygaze.perturbations.closed_form import corner
from steadygaze.perturbations.gradient_ascent import ascend

NORM = pytest.mark.parametrize("norm", ["l2", "linf"])
SIMPLEX = pytest.mark.parametrize("simplex", [False, True], ids=["free", "simplex"])
CLASSES = pytest.mark.parametrize("classes", [2, 4])
ROUNDING = 1e-12
SCOPE = "changes of the attention weights themselves, not of words, embeddings or seeds"


def model(classes: int, decoder: str = "linear", pair: bool = False, name: str = "bilstm") -> Classifier:
    """Fresh weights, the decoder's made large enough for some texts to be certified and some not."""
    torch.manual_seed(classes)
    made = bert() if name == "transformer" else encoder(name, pair)
    result = Classifier(made, Architecture(decoder=decoder), classes, pair).double().eval()
    result.decoder.output.weight.data *= 20
    return result


def many(seed: int = 0, pair: bool = False) -> Batch:
    """40 texts of 1 to 12 words, and one without."""
    lengths = np.random.default_rng(seed).integers(1, 13, 40)
    return batch(split(["s" + "w" * n + "s" for n in lengths] + ["s"], pair))


def decoded(model: Classifier, batch: Batch, delta: Tensor, forward: Forward | None = None) -> Tensor:
    """Logits at w + δ by the model's own decoder: what the certificate is about."""
    with torch.no_grad():
        forward = forward or model(batch)
        return model.decode(forward.encoded, forward.weights + delta)


def inside(mask: Tensor, radius: float, norm: str, simplex: bool) -> Tensor:
    """Random changes of exactly that size, corners of the cube among them; smaller where the sum is kept."""
    delta = torch.randn(mask.shape, dtype=torch.float64)
    if norm == "linf" and torch.rand(()) < 0.5:
        delta = delta.sign()
    delta = delta.masked_fill(~mask, 0.0)
    if simplex:
        delta = (delta - delta.sum(-1, keepdim=True) / mask.sum(-1, keepdim=True).clamp_min(1)).masked_fill(~mask, 0.0)
    order = torch.inf if norm == "linf" else 2
    return radius * delta / torch.linalg.vector_norm(delta, order, dim=-1, keepdim=True).clamp_min(1e-300)


def fitting_radius(model: Classifier, batch: Batch, norm: str, simplex: bool) -> float:
    """Half of the texts are certified there: with all or none, a test would show nothing."""
    certificates = certify_batch(model, batch, 1.0, norm, 3, simplex)
    return float(certificates.radius[certificates.radius.isfinite()].median())


def assert_sound(bounds: Bounds, clean: Tensor, moved: Tensor) -> None:
    p, q = clean.softmax(-1), moved.softmax(-1)
    assert (moved.argmax(-1) == bounds.predicted)[bounds.certified].all()
    assert (kl_logits(p, moved) <= bounds.alpha + ROUNDING).all()
    assert ((p - q).abs().sum(-1) / 2 <= bounds.tvd + ROUNDING).all()


@pytest.mark.sweep(keep=1)
@CLASSES
@SIMPLEX
@NORM
def test_no_random_change_breaks_a_certificate(norm, simplex, classes):
    clf, texts = model(classes), many()
    radius = fitting_radius(clf, texts, norm, simplex)
    certificates, clean = certify_batch(clf, texts, radius, norm, 3, simplex), decoded(clf, texts, torch.zeros(()))
    assert 0.2 < certificates.certified.double().mean() < 0.8
    for _ in range(100):
        assert_sound(certificates, clean, decoded(clf, texts, inside(texts.mask, radius, norm, simplex)))


@pytest.mark.sweep
@CLASSES
@NORM
def test_no_gradient_ascent_breaks_a_certificate(norm, classes):
    """On the divergence, and on the margin of every other class."""
    clf, texts = model(classes), many()
    radius = fitting_radius(clf, texts, norm, False)
    certificates, forward = certify_batch(clf, texts, radius, norm, 3, False), clf(texts)
    clean = forward.logits.detach()
    row = torch.arange(len(texts))
    losses = [lambda z: kl_logits(clean.softmax(-1), z)]
    losses += [lambda z, j=j: z[:, j] - z[row, certificates.predicted] for j in range(classes)]
    highest = torch.zeros(len(texts), dtype=torch.float64)
    for loss in losses:
        delta = ascend(
            lambda w, loss=loss: loss(clf.decode(forward.encoded, w)),
            inside(texts.mask, radius, norm, False),
            center=forward.weights,
            radius=radius,
            norm=norm,
            steps=10,
            keep=texts.mask,
            best=True,
        )
        moved = decoded(clf, texts, delta)
        assert_sound(certificates, clean, moved)
        highest = torch.maximum(highest, kl_logits(clean.softmax(-1), moved))
    assert (highest > 0.8 * certificates.alpha_low).double().mean() > 0.8, "otherwise the attack was no attack"


@pytest.mark.sweep
@CLASSES
@SIMPLEX
@NORM
def test_the_certified_radius_is_where_the_label_flips(norm, simplex, classes):
    """The δ that moves z_j − z_i most, j the nearest class: at 0.99 of the radius nothing, at 1.01 another label."""
    clf, texts = model(classes), many()
    certificates, forward = certify_batch(clf, texts, 1.0, norm, 3, simplex), clf(texts)
    reach, row = clf.decoder.reach(forward.encoded).detach(), torch.arange(len(texts))
    own = reach[row, :, certificates.predicted]
    flipped = torch.zeros(len(texts), dtype=torch.bool)
    safe = certificates.radius.nan_to_num(posinf=0.0)
    for j in range(classes):
        delta = corner(reach[..., j] - own, texts.mask, safe, norm, simplex)
        assert (decoded(clf, texts, 0.99 * delta).argmax(-1) == certificates.predicted).all()
        flipped |= decoded(clf, texts, 1.01 * delta).argmax(-1) != certificates.predicted
    assert flipped.tolist() == certificates.radius.isfinite().tolist()
    assert flipped.sum() >= 30


@NORM
def test_at_a_radius_below_the_certified_one_a_text_is_certified_and_above_it_is_not(norm):
    clf, texts = model(3), many()
    radii = certify_batch(clf, texts, 1.0, norm, 3, False).radius
    for i in (0, 5, 9):
        assert certify_batch(clf, texts, 0.999 * float(radii[i]), norm, 3, False).certified[i]
        assert not certify_batch(clf, texts, 1.001 * float(radii[i]), norm, 3, False).certified[i]


@pytest.mark.sweep(keep=1)
@NORM
@pytest.mark.parametrize("pair", [False, True], ids=["single", "pair"])
def test_at_exactly_the_certified_radius_rounding_does_not_decide(norm, pair):
    """Once the last bit of z_i − z_j > R·n_ij was on the wrong side, and a corner of the cube flipped the label."""
    clf, texts = model(2, pair=pair), many(pair=pair)
    for i, radius in enumerate(certify_batch(clf, texts, 1.0, norm, 3, False).radius[:-1].tolist()):
        assert not certify_batch(clf, texts, radius, norm, 3, False).certified[i]


@pytest.mark.parametrize("radius", [0.003, 0.1])
def test_for_two_classes_alpha_and_tvd_are_the_highest_of_all_corners(radius):
    """2^T corners, T up to 9, each through the decoder itself."""
    clf, texts = model(2), batch(split(["swwws", "w", "wwwwwwwww", "sws"]))
    certificates, clean = certify_batch(clf, texts, radius, "linf", 3, False), decoded(clf, texts, torch.zeros(()))
    forward = clf(texts)
    kl, tvd = torch.zeros(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)
    for signs in product((-1.0, 1.0), repeat=texts.ids.shape[1]):
        delta = radius * torch.tensor(signs, dtype=torch.float64) * texts.mask
        moved = decoded(clf, texts, delta, forward)
        kl = torch.maximum(kl, kl_logits(clean.softmax(-1), moved))
        tvd = torch.maximum(tvd, (clean.softmax(-1) - moved.softmax(-1)).abs().sum(-1) / 2)
    assert_close(certificates.alpha, kl)
    assert_close(certificates.tvd, tvd)
    assert_close(certificates.alpha_low, certificates.alpha)


@pytest.mark.sweep
@SIMPLEX
@NORM
def test_with_more_classes_alpha_lies_between_its_ends(norm, simplex):
    clf, texts = model(4), many()
    certificates = certify_batch(clf, texts, 0.02, norm, 3, simplex)
    assert (certificates.alpha_low <= certificates.alpha + ROUNDING).all()
    several = texts.mask.sum(-1) > 1  # on the simplex the weight of a single word cannot change
    assert (certificates.alpha_low[several] > 0).all()


@NORM
def test_keeping_to_the_simplex_certifies_more(norm):
    clf, texts = model(3), many()
    free, kept = (certify_batch(clf, texts, 0.01, norm, 3, simplex) for simplex in (False, True))
    assert (kept.radius >= free.radius).all()
    assert (kept.radius > free.radius).sum() > 20
    assert (kept.alpha <= free.alpha + ROUNDING).all()


def test_top_words_by_hand():
    """Weights ½, 0.3, 0.2: the gap after the first is 0.2, so the top word holds for 2R < 0.2 (ℓ∞), √2·R < 0.2 (ℓ2);
    after the second 0.1.  With k = 3 there is no fourth word to come in.  A tie holds never."""
    weights = torch.tensor([[0.5, 0.2, 0.3, 0.0], [0.4, 0.4, 0.2, 0.0]], dtype=torch.float64)
    mask = torch.tensor([[True, True, True, False]] * 2)
    held = {
        (0.09, "linf", 1): [True, False],
        (0.11, "linf", 1): [False, False],
        (0.14, "l2", 1): [True, False],
        (0.142, "l2", 1): [False, False],
        (0.04, "linf", 2): [True, True],
        (0.051, "linf", 2): [False, True],
        (9.0, "linf", 3): [True, True],
        (9.0, "l2", 4): [True, True],
        (9.0, "linf", 50): [True, True],
        (1e-9, "linf", 1): [True, False],
    }
    for (radius, norm, k), expected in held.items():
        assert top_k_holds(weights, mask, radius, norm, k).tolist() == expected, (radius, norm, k)


@NORM
def test_the_top_words_change_just_above_the_bound_and_not_below(norm):
    """The k-th falls and the next rises by half of the gap each: that is the least that makes them meet."""
    clf, texts = model(2), many()
    weights, k = clf(texts).weights.detach(), 2
    ordered, index = weights.masked_fill(~texts.mask, -torch.inf).sort(descending=True)
    some = texts.mask.sum(-1) > k
    gap = (ordered[:, k - 1] - ordered[:, k])[some]
    least = gap / 2 if norm == "linf" else gap / math.sqrt(2)
    for factor, holds in ((0.999, True), (1.001, False)):
        delta = torch.zeros_like(weights)
        size = factor * gap / 2
        delta[some, index[some, k - 1]], delta[some, index[some, k]] = -size, size
        top = lambda w: w.masked_fill(~texts.mask, -torch.inf).topk(k).indices.sort().values[some]  # noqa: E731
        assert (top(weights + delta) == top(weights)).all(-1).tolist() == [holds] * int(some.sum())
        results = [
            top_k_holds(weights[some][i : i + 1], texts.mask[some][i : i + 1], factor * float(r), norm, k)
            for i, r in enumerate(least)
        ]
        assert torch.cat(results).tolist() == [holds] * int(some.sum())


@pytest.mark.sweep
@CLASSES
@SIMPLEX
@NORM
def test_padding_and_batch_mates_change_nothing(norm, simplex, classes):
    clf, patterns = model(classes), ("swwws", "s", "swwwwwws", "w", "sws")
    data = split(patterns)
    whole, wide, *alone = (
        certify_batch(clf, texts, 0.01, norm, 2, simplex, reference=clf(texts))
        for texts in (batch(data), widened(batch(data), 4), *(batch(data, [i]) for i in range(len(patterns))))
    )
    for name in Bounds.__slots__:
        assert_close(getattr(wide, name), getattr(whole, name))
        assert_close(torch.cat([getattr(bounds, name) for bounds in alone]), getattr(whole, name))


@CLASSES
def test_a_text_of_one_word_or_of_none(classes):
    """One word: with the sum kept it cannot move at all.  No word: nothing to move, so any radius holds."""
    clf, texts = model(classes), batch(split(["w", "s"]))
    free, kept = (certify_batch(clf, texts, 100.0, "linf", 1, simplex) for simplex in (False, True))
    assert free.radius.isfinite().tolist() == [True, False]
    assert free.certified.tolist() == [False, True]
    assert kept.certified.tolist() == [True, True]
    assert free.top_k_holds.tolist() == [True, True]
    assert_close(kept.alpha, torch.zeros(2, dtype=torch.float64))
    assert_close(kept.tvd, torch.zeros(2, dtype=torch.float64))


@CLASSES
def test_a_tie_is_not_certified(classes):
    clf, texts = model(classes), batch(split(["ww", "s"]))
    clf.decoder.output.weight.data.zero_()
    clf.decoder.output.bias.data.zero_()
    certificates = certify_batch(clf, texts, 1e-9, "linf", 1, False)
    assert certificates.certified.tolist() == [False, False]
    assert certificates.radius.tolist() == [0, 0]


@CLASSES
def test_certain_predictions_give_finite_numbers(classes):
    """p of exactly 0 and 1."""
    clf, texts = model(classes), many()
    clf.decoder.output.bias.data = torch.linspace(-2000, 2000, classes, dtype=torch.float64)
    certificates = certify_batch(clf, texts, 0.01, "linf", 3, False, reference=clf(texts))
    assert set(decoded(clf, texts, torch.zeros(())).softmax(-1).unique().tolist()) == {0, 1}
    for name in ("alpha", "alpha_low", "tvd", "gamma"):
        assert_close(getattr(certificates, name), torch.zeros(len(texts), dtype=torch.float64))
    assert certificates.certified.all()


@pytest.mark.parametrize(("name", "pair"), [("bilstm", True), ("transformer", False), ("transformer", True)])
def test_pairs_and_transformers_are_certified_too(name, pair):
    """The question enters by addition; special tokens have no weight to change."""
    clf, texts = model(2, pair=pair, name=name), many(pair=pair)
    radius = fitting_radius(clf, texts, "linf", False)
    certificates, clean = certify_batch(clf, texts, radius, "linf", 3, False), decoded(clf, texts, torch.zeros(()))
    forward = clf(texts)
    for _ in range(50):
        assert_sound(certificates, clean, decoded(clf, texts, inside(texts.mask, radius, "linf", False), forward))


def test_numbers_are_of_double_precision_whatever_the_model_has():
    clf, texts = model(3), many()
    less = copy.deepcopy(clf).float()
    double = certify_batch(clf, texts, 1e-3, "linf", 3, False, reference=clf(texts))
    single = certify_batch(less, texts, 1e-3, "linf", 3, False, reference=less(texts))
    for name in ("radius", "alpha", "alpha_low", "tvd", "beta", "gamma", "gamma_tvd"):
        assert getattr(single, name).dtype == torch.float64
        torch.testing.assert_close(getattr(single, name), getattr(double, name), rtol=1e-2, atol=1e-6)


def test_closeness_by_the_definition():
    """γ = KL(reference ‖ model), β of the top words: a model is its own closest."""
    clf, other, texts = model(3), model(4), many()
    other = Classifier(other.encoder, Architecture(), 3, False).double().eval()
    other.decoder.output.weight.data *= 30
    certificates = certify_batch(clf, texts, 0.01, "linf", 2, False, reference=other(texts))
    ours, theirs = clf(texts), other(texts)
    p, q = theirs.logits.softmax(-1), ours.logits.softmax(-1)
    assert_close(certificates.gamma, (p * (p / q).log()).sum(-1).detach())
    assert_close(certificates.gamma_tvd, ((p - q).abs().sum(-1) / 2).detach())
    for i, words in enumerate(texts.mask.sum(-1).tolist()):
        best = [
            set(w[i].masked_fill(~texts.mask[i], -1).topk(min(2, words)).indices.tolist())
            for w in (ours.weights, theirs.weights)
        ]
        assert certificates.beta[i] == (len(best[0] & best[1]) / min(2, words) if words else 1)
    assert certificates.beta.unique().numel() > 1
    itself = certify_batch(clf, texts, 0.01, "linf", 2, False, reference=clf(texts))
    assert itself.beta.eq(1).all()
    assert_close(itself.gamma, torch.zeros(len(texts), dtype=torch.float64))


def test_a_decoder_that_is_not_linear_is_refused_with_the_way_out():
    clf, texts = model(2, "mlp"), many()
    with pytest.raises(UserError, match=r"decoder is not linear.*decoder=linear.*lower_bound=True"):
        certify_batch(clf, texts, 0.01, "linf", 3, False)
    with pytest.raises(UserError, match="does not keep to the simplex"):
        certify_batch(clf, texts, 0.01, "linf", 3, True, lower_bound=True)


@pytest.mark.sweep(keep=1)
@CLASSES
@NORM
def test_its_lower_bound_is_as_high_as_any_random_change_and_nothing_is_certified(norm, classes):
    clf, texts = model(classes, "mlp"), many()
    certificates, clean = certify_batch(clf, texts, 0.1, norm, 3, False, lower_bound=True), clf(texts).logits.detach()
    assert not certificates.certified.any()
    assert certificates.radius is certificates.alpha is certificates.tvd is None
    for _ in range(100):
        moved = decoded(clf, texts, inside(texts.mask, 0.1, norm, False))
        assert (kl_logits(clean.softmax(-1), moved) <= certificates.alpha_low * 1.02 + ROUNDING).all()
    assert certificates.alpha_low[-1] == pytest.approx(0, abs=1e-12), "a text without words"  # rounding of a logarithm


@NORM
def test_searching_a_linear_decoder_comes_near_the_exact_value_and_never_above(norm):
    """The search for decoders of any kind, let loose on one that is solved."""
    from steadygaze.certificates.certificate_bounds import search

    clf, texts = model(2), many()
    for radius in (1e-3, 0.05):
        exact = certify_batch(clf, texts, radius, norm, 3, False, lower_bound=True).alpha
        with torch.no_grad():
            low = search(clf, clf(texts), texts.mask, radius, norm)
        assert (low <= exact + ROUNDING).all()
        assert (low >= 0.999 * exact - ROUNDING).all()


@pytest.mark.parametrize("decoder", ["linear", "mlp"])
def test_certifying_leaves_the_model_as_it_was(decoder):
    clf = model(3, decoder).train()
    before = copy.deepcopy(clf.state_dict())
    certify_batch(clf, many(), 0.01, "linf", 3, False, lower_bound=True)
    assert all(module.training for module in clf.modules())
    assert all(parameter.grad is None for parameter in clf.parameters())
    assert all(torch.equal(value, before[name]) for name, value in clf.state_dict().items())


# ---- texts: the estimator's side


def test_each_text_gets_its_own_certificate_in_order():
    clf = fitted()
    texts = ["good film", "a bad and very dull plot i thought of the story", "bad", "the music was good and fine"]
    certificates = steadygaze.certify(clf, texts, radius=0.01)
    assert [certificate.text for certificate in certificates] == texts
    assert [certificate.label for certificate in certificates] == clf.predict(texts).tolist()
    alone = [certify(clf, text)[0] for text in texts]
    for certificate, other in zip(certificates, alone, strict=True):
        assert certificate.certified == other.certified
        assert certificate.radius == pytest.approx(other.radius, rel=1e-4)
        assert certificate.alpha == pytest.approx(other.alpha, rel=1e-3)
    assert all(certificate.exact and certificate.alpha == certificate.alpha_low for certificate in certificates)
    assert certificates.share_certified == sum(certificate.certified for certificate in certificates) / 4
    again = certify(clf, texts, batch_size=1)
    assert [certificate.certified for certificate in again] == [certificate.certified for certificate in certificates]


def test_pairs_keep_their_question():
    certificates = certify(fitted_pair(), PAIRS[:3])
    assert [(certificate.text, certificate.question) for certificate in certificates] == PAIRS[:3]
    with pytest.raises(UserError, match="trained on single texts, found pairs"):
        certify(fitted(), PAIRS[:3])


def test_a_bound_for_more_than_two_classes_is_reported_as_not_exact():
    labels = [f"{label}{i % 2}" for i, label in enumerate(LABELS)]
    certificates = certify(tiny().fit(TEXTS, labels), TEXTS[:3])
    assert not any(certificate.exact for certificate in certificates)
    assert all(certificate.alpha_low <= certificate.alpha for certificate in certificates)
    assert "upper bound" in str(certificates)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"radius": 0}, "radius must be a finite number above 0, found 0"),
        ({"radius": -1.0}, "radius must be a finite number above 0, found -1.0"),
        ({"radius": math.inf}, "radius must be a finite number above 0, found inf"),
        ({"radius": math.nan}, "radius must be a finite number above 0, found nan"),
        ({"radius": "0.1"}, "radius must be a finite number above 0, found '0.1'"),
        ({"radius": True}, "radius must be a finite number above 0, found True"),
        ({"k": 0}, "k must be a whole number from 1 up, found 0"),
        ({"k": 2.5}, "k must be a whole number from 1 up, found 2.5"),
        ({"norm": "l1"}, "unknown norm 'l1'"),
        ({"norm": None}, "unknown norm None"),
        ({"reference": "model/"}, "reference must be a TextClassifier, found 'model/'"),
        ({"reference": tiny()}, "the reference is not a fitted TextClassifier"),
    ],
)
def test_wrong_settings_are_refused_in_a_sentence(wrong, message):
    with pytest.raises(UserError, match=message.replace("(", r"\(")):
        certify(fitted(), TEXTS[:2], **wrong)


def test_numbers_of_numpy_are_numbers():
    certificates = certify(fitted(), TEXTS[:2], radius=np.float32(0.5), k=np.int64(2))
    assert (certificates[0].R, certificates[0].k) == (0.5, 2)
    json.dumps(certificates.to_dict())


def test_a_reference_must_read_the_same_tokens_and_know_the_same_labels(tmp_path):
    other = tiny().fit(TEXTS, [label.upper() for label in LABELS])
    with pytest.raises(UserError, match="must have the same labels, found"):
        certify(fitted(), TEXTS[:2], reference=other)
    with pytest.warns(UserWarning, match="reads only their first 3 tokens"):
        other = tiny(max_length=3).fit(TEXTS, LABELS)
    with pytest.raises(UserError, match="splits texts into other tokens"):
        certify(fitted(), TEXTS[:2], reference=other)
    pieces = tiny(f"transformer:{transformer_folder(tmp_path)}", settings=None).fit(TEXTS, LABELS)
    with pytest.raises(UserError, match="splits texts into other tokens"):
        certify(fitted(), TEXTS[:2], reference=pieces)
    assert certify(pieces, TEXTS[:2], reference=pieces)[0].beta == 1


def test_a_reference_gives_overlap_and_closeness():
    """Of another seed, and so of another vocabulary: the tokens are the same words all the same."""
    other = tiny(seed=5).fit([text.replace("and", "or") for text in TEXTS], LABELS)
    assert other.stored_.tokenizer.to_json() != fitted().stored_.tokenizer.to_json()
    certificates = certify(fitted(), TEXTS[:4], k=2, reference=other)
    p, q = other.predict_proba(TEXTS[:4]), fitted().predict_proba(TEXTS[:4])
    for certificate, theirs, ours in zip(certificates, p, q, strict=True):
        assert certificate.gamma == pytest.approx((theirs * np.log(theirs / ours)).sum(), rel=1e-4)
        assert certificate.gamma_tvd == pytest.approx(np.abs(theirs - ours).sum() / 2, rel=1e-4)
        assert certificate.beta in (0, 0.5, 1)
    assert certify(fitted(), TEXTS[:4])[0].beta is None


def test_an_mlp_is_refused_and_searched_on_request():
    clf = tiny(settings={**SMALL, "decoder": "mlp"}).fit(TEXTS, LABELS)
    with pytest.raises(UserError, match="lower_bound=True"):
        certify(clf, TEXTS[:2])
    certificates = certify(clf, TEXTS[:2], lower_bound=True)
    assert not any(certificate.certified or certificate.exact for certificate in certificates)
    assert all(
        certificate.radius is None and certificate.alpha is None and certificate.alpha_low > 0
        for certificate in certificates
    )
    assert "none: the decoder is not linear" in str(certificates)


def test_every_printed_form_names_its_property(tmp_path):
    from rich.console import Console

    certificates = certify(fitted(), TEXTS[:3])
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(certificates)
    certificates.to_json(tmp_path / "certificates.json")
    written = (tmp_path / "certificates.json").read_text(encoding="utf-8")
    for shown in (str(certificates), repr(certificates), str(certificates[0]), console.export_text(), written):
        assert SCOPE in shown
    assert json.loads(written) == certificates.to_dict()


def test_an_infinite_radius_is_json_all_the_same():
    certificate = replace(certify(fitted(), "good")[0], radius=math.inf)
    assert certificate.to_dict()["radius"] == "inf"
    certificates = Certificates((certificate, certificate))
    assert certificates.summary()["median_radius"] == math.inf
    json.dumps(certificates.to_dict(), allow_nan=False)


def test_a_list_like_thing():
    certificates = certify(fitted(), TEXTS[:3])
    assert isinstance(certificates[0], Certificate)
    assert isinstance(certificates[:2], Certificates)
    assert len(certificates[:2]) == 2
    assert list(certificates)[2] is certificates[-1]
    assert certificates[:0].summary()["share_certified"] is None
    assert SCOPE in str(certificates[:0])
