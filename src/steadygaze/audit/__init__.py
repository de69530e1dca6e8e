"""Audits of explanations: measures, probes, protocols, and the certificate.

`steadygaze.audit` is this package and also a function: calling it calls `audit.audit`.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspect import Signature

    from steadygaze.results.report import Report


class _CallablePackage(ModuleType):
    # `sg.audit(model, texts, labels)` calls the function.  `help` and `inspect.signature` describe the function; the
    # imports are lazy.

    def __call__(self, *args: Any, **kwargs: Any) -> "Report":
        from steadygaze.audit.audit import audit

        return audit(*args, **kwargs)

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


sys.modules[__name__].__class__ = _CallablePackage
