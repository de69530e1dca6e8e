"""Explainers by name."""

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
        "lime": "steadygaze.explainers.lime:Lime",
        "kernel-shap": "steadygaze.explainers.kernel_shap:KernelShap",
        "leave-one-out": "steadygaze.explainers.leave_one_out:LeaveOneOut",
        "random": "steadygaze.explainers.random:Random",
    }
)
