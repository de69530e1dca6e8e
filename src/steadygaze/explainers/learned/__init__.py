"""Explainers that are fitted to a black box, by name."""

from steadygaze.explainers.learned.ail import Ail
from steadygaze.explainers.learned.cxplain import CXPlain
from steadygaze.explainers.learned.l2x import L2X, SelectorConfig
from steadygaze.explainers.learned.vibi import Vibi

METHODS: dict[str, type[SelectorConfig] | type[CXPlain]] = {"l2x": L2X, "vibi": Vibi, "ail": Ail, "cxplain": CXPlain}
