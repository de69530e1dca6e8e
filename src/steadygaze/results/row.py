"""Row: one score with the settings needed to reproduce it, and percentile bootstrap intervals (Efron 1979).

    m* = mean of n values drawn from the n with replacement;   interval = the (1 ± level)/2 quantiles of many m*

`bootstrap_rows` computes scores that are not means, such as macro-F1, from every resample.  Constant values give an
interval of width 0: it describes these examples, not unseen ones.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.errors import UserError


@dataclass(frozen=True, slots=True)
class Row:
    """One score."""

    measure: str
    value: float
    n: int
    """Number of examples."""
    interval: tuple[float, float] | None = None
    """95 % bootstrap interval of the mean; None for a number that is not a mean."""
    settings: Mapping[str, str | int | float] = field(default_factory=dict)
    """Settings of the score: corpus, split, seed, version …"""
    note: str = ""

    @property
    def signature(self) -> str:
        """`measure|key:value|…|n:N`: scores with equal signatures are comparable.

        >>> Row("accuracy", 0.5, 10, settings={"split": "test", "corpus": "sst2"}).signature
        'accuracy|corpus:sst2|split:test|n:10'
        """
        parts = [f"{key}:{value}" for key, value in sorted(self.settings.items())]
        return "|".join([self.measure, *parts, f"n:{self.n}"])

    def __str__(self) -> str:
        bounds = "" if self.interval is None else f" [{self.interval[0]:.3f}, {self.interval[1]:.3f}]"
        return f"{self.signature} = {self.value:.3f}{bounds}"

    def to_dict(self) -> dict[str, Any]:
        values = {**asdict(self), "value": plain(self.value), "signature": self.signature}
        values["interval"] = None if self.interval is None else [plain(end) for end in self.interval]
        values["settings"] = {key: _word(value) for key, value in self.settings.items()}
        return values

    @classmethod
    def from_dict(cls, values: Any) -> "Row":
        """Restore a row from the result of `to_dict`; refuse a wrong signature."""
        if not isinstance(values, Mapping) or not isinstance(values.get("measure"), str):
            raise UserError(f"a row has a measure, a value and n; found {values!r:.80}")
        name = f"row {values['measure']!r:.80}"
        if wrong := {*cls.__slots__, "signature"} ^ values.keys():
            raise UserError(f"{name}: the key {min(wrong)!r} is {'unknown' if min(wrong) in values else 'missing'}")
        if not (isinstance(values["n"], int) and isinstance(values["note"], str)):
            raise UserError(f"{name}: n must be a whole number and note a text")
        if not _settings(values["settings"]):
            raise UserError(f"{name}: settings must be words and numbers by name, found {values['settings']!r:.80}")
        row = cls(
            values["measure"],
            _number(values["value"], name),
            values["n"],
            _interval(values["interval"], name),
            dict(values["settings"]),
            values["note"],
        )
        if values["signature"] != row.signature:
            raise UserError(f"{name}: its signature is {values['signature']!r:.200}, and should be {row.signature!r}")
        return row


def plain(value: Any) -> Any:
    """Convert NaN to null and infinity to a string, for JSON."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else str(value)


def _word(value: Any) -> Any:
    """Convert a setting that is not finite to a string; the signature stays the same."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: Any, name: str) -> float:
    if value in (None, "inf", "-inf"):
        return math.nan if value is None else float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UserError(f"{name}: found {value!r:.80} instead of a number")
    return value


def _interval(value: Any, name: str) -> tuple[float, float] | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise UserError(f"{name}: an interval has two ends, found {value!r:.80}")
    return _number(value[0], name), _number(value[1], name)


def _settings(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(key, str) and isinstance(setting, str | int | float) for key, setting in value.items()
    )


def to_jsonl(rows: Iterable[Row]) -> str:
    return "".join(json.dumps(row.to_dict(), ensure_ascii=False) + "\n" for row in rows)


_DRAWS = 1_000_000  # per chunk: 16 MB for every n


def bootstrap(
    values: Sequence[float], *, seed: int = 0, level: float = 0.95, resamples: int = 2_000
) -> tuple[float, float]:
    """The confidence interval of the mean; the same seed gives the same interval."""
    sample = _finite(values)
    random, step = np.random.default_rng(seed), max(1, _DRAWS // len(sample))
    means = [
        sample[random.integers(len(sample), size=(min(step, resamples - done), len(sample)))].mean(axis=1)
        for done in range(0, resamples, step)
    ]
    return _middle(np.concatenate(means), level)


def bootstrap_rows(
    statistic: Callable[[NDArray[np.int64]], float],
    n: int,
    *,
    seed: int = 0,
    level: float = 0.95,
    resamples: int = 1_000,
) -> tuple[float, float]:
    """The interval of a score of n examples: `statistic` takes the indices of a resample, (n,)."""
    if n < 1:
        raise ValueError(f"n is {n}; there is nothing to draw from")
    random = np.random.default_rng(seed)
    return _middle(_finite([statistic(random.integers(n, size=n)) for _ in range(resamples)]), level)


def mean_row(
    measure: str,
    values: Sequence[float],
    settings: Mapping[str, str | int | float] | None = None,
    *,
    note: str = "",
    seed: int = 0,
) -> Row:
    """The mean over examples with its interval; a single example has no interval."""
    sample = _finite(values)
    interval = bootstrap(values, seed=seed) if len(sample) > 1 else None
    return Row(measure, float(sample.mean()), len(sample), interval, settings or {}, note)


def _middle(draws: NDArray[np.float64], level: float) -> tuple[float, float]:
    """The interval of the middle `level` of the draws."""
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; a confidence lies strictly between 0 and 1")
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _finite(values: Sequence[float]) -> NDArray[np.float64]:
    sample = np.asarray(values, dtype=np.float64).reshape(-1)
    if not len(sample):
        raise ValueError("there are no values to average")
    if wrong := int((~np.isfinite(sample)).sum()):
        raise ValueError(f"{wrong} of {len(sample)} values are not finite: leave them out and mention it in the note")
    return sample
