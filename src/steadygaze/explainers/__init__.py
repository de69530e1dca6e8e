"""Explainers by name.

An explainer of a user is registered in the same way, by its own module: EXPLAINERS["name"] = Class.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from steadygaze.core.types import Registry

if TYPE_CHECKING:
    from steadygaze.explainers.explainer import Explainer

EXPLAINERS: "Registry[type[Explainer]]" = Registry.of(
    {
        "attention": "steadygaze.explainers.attention:Attention",
        "rationale": "steadygaze.explainers.rationale:RationaleExplainer",
        "gradient": "steadygaze.explainers.gradient:Gradient",
        "input-x-gradient": "steadygaze.explainers.gradient:InputXGradient",
        "integrated-gradients": "steadygaze.explainers.gradient:IntegratedGradients",
        "attn-lrp": "steadygaze.explainers.attn_lrp:AttnLrp",
        "lime": "steadygaze.explainers.lime:Lime",
        "kernel-shap": "steadygaze.explainers.kernel_shap:KernelShap",
        "leave-one-out": "steadygaze.explainers.leave_one_out:LeaveOneOut",
        "random": "steadygaze.explainers.random:Random",
    }
)
"""Explainers by name.  `EXPLAINERS["name"] = Class` registers your own."""


def own_explainers(names: Iterable[str]) -> "dict[str, type[Explainer]]":
    """Return the explainers among these that are not part of steadygaze; a worker process has to register them."""
    return {name: EXPLAINERS[name] for name in names if not EXPLAINERS[name].__module__.startswith("steadygaze.")}
