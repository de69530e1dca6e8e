"""How far a model and its highlighted words may be believed: measures, probes, protocols, and the certificate.

`steadygaze.audit` is this room and, as the package's users know it, a function: calling it is calling `audit.audit`.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steadygaze.report.report import Report


class _Room(ModuleType):
    """A module that can be called: `sg.audit(model, texts, labels)` has the name of the room it lives in."""

    def __call__(self, *given: Any, **asked: Any) -> "Report":
        from steadygaze.audit.audit import audit

        return audit(*given, **asked)


sys.modules[__name__].__class__ = _Room
