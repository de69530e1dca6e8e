"""How far a model and its highlighted words may be believed: measures, probes, protocols, and the certificate.

`steadygaze.audit` is this room and, as the package's users know it, a function: calling it is calling `audit.audit`.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspect import Signature

    from steadygaze.results.report import Report


class _Room(ModuleType):
    # A module that can be called: `sg.audit(model, texts, labels)` has the name of the room it lives in.  To `help` and
    # `inspect.signature` it shows what the function shows; nothing heavy is imported before somebody asks.

    def __call__(self, *given: Any, **asked: Any) -> "Report":
        from steadygaze.audit.audit import audit

        return audit(*given, **asked)

    @property
    def __signature__(self) -> "Signature":
        from inspect import signature

        from steadygaze.audit.audit import audit

        return signature(audit)

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        from inspect import getdoc

        from steadygaze.audit.audit import audit

        return f"{vars(self)['__doc__']}\naudit{self.__signature__}\n\n{getdoc(audit)}\n"


sys.modules[__name__].__class__ = _Room
