"""Explainers: one file each, one line each here."""

from steadygaze.explain.attention import Attention
from steadygaze.explain.explainer import Explainer
from steadygaze.explain.gradient import Gradient
from steadygaze.explain.input_x_gradient import InputXGradient
from steadygaze.explain.integrated_gradients import IntegratedGradients
from steadygaze.explain.kernel_shap import KernelShap
from steadygaze.explain.leave_one_out import LeaveOneOut
from steadygaze.explain.lime import Lime
from steadygaze.explain.random import Random
from steadygaze.explain.rationale import Selection

EXPLAINERS: dict[str, type[Explainer]] = {
    "attention": Attention,
    "rationale": Selection,
    "gradient": Gradient,
    "input-x-gradient": InputXGradient,
    "integrated-gradients": IntegratedGradients,
    "lime": Lime,
    "kernel-shap": KernelShap,
    "leave-one-out": LeaveOneOut,
    "random": Random,
}
