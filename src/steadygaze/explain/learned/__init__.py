"""Explainers that learn to explain a black box: one file each, one line each here."""

from steadygaze.explain.learned.ail import Ail
from steadygaze.explain.learned.cxplain import CXPlain
from steadygaze.explain.learned.l2x import L2X
from steadygaze.explain.learned.selecting import Selecting
from steadygaze.explain.learned.vibi import Vibi

METHODS: dict[str, type[Selecting] | type[CXPlain]] = {
    "l2x": L2X,
    "vibi": Vibi,
    "ail": Ail,
    "cxplain": CXPlain,
}
