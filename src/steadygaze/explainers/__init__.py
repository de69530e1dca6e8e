"""Explainers by name."""

from steadygaze.explainers.attention import Attention
from steadygaze.explainers.explainer import Explainer
from steadygaze.explainers.gradient import Gradient, InputXGradient, IntegratedGradients
from steadygaze.explainers.kernel_shap import KernelShap
from steadygaze.explainers.leave_one_out import LeaveOneOut
from steadygaze.explainers.lime import Lime
from steadygaze.explainers.random import Random
from steadygaze.explainers.rationale import RationaleExplainer

EXPLAINERS: dict[str, type[Explainer]] = {
    "attention": Attention,
    "rationale": RationaleExplainer,
    "gradient": Gradient,
    "input-x-gradient": InputXGradient,
    "integrated-gradients": IntegratedGradients,
    "lime": Lime,
    "kernel-shap": KernelShap,
    "leave-one-out": LeaveOneOut,
    "random": Random,
}
