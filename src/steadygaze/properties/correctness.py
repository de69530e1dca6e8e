"""Correctness: do the predictions match the labels?  No verdict: explanations of a wrong model can be faithful."""

from steadygaze.properties.measures import correctness_measures
from steadygaze.properties.property import Check, Property
from steadygaze.properties.protocols.plausibility import correctness

CORRECTNESS = Property(
    "correctness",
    "Correctness",
    measures=correctness_measures.MEASURES,
    checks=(Check(correctness, tuple(str(key) for m in correctness_measures.MEASURES for key in m.keys), always=True),),
)
