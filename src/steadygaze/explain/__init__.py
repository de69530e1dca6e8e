"""Explainers: one file each, one line each here."""

from steadygaze.explain.attention import Attention
from steadygaze.explain.explainer import Explainer

EXPLAINERS: dict[str, type[Explainer]] = {
    "attention": Attention,
}
