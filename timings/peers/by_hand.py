"""Explanations of a Hugging Face classifier with Captum, shap, lime and scikit-learn, without steadygaze.

Each method explains one text and returns the weights of its words.  Methods that remove words delete them, as
steadygaze does.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

BATCH = 64
Weights = NDArray[np.float64]


class ByHand:
    """A network, its tokenizer, and one text that is split into words."""

    def __init__(self, network: Any, tokenizer: Any) -> None:
        self.network = network.eval()
        self.tokenizer = tokenizer

    def read(self, text: str) -> None:
        """Set the ids, the pieces of each word, and the predicted class."""
        read = self.tokenizer(text, truncation=True, return_offsets_mapping=False)
        groups = read.word_ids()
        self.ids = read["input_ids"]
        self.pieces = [[i for i, word in enumerate(groups) if word == k] for k in range(max(groups[1:-1]) + 1)]
        with torch.no_grad():
            ids = torch.tensor([self.ids], device=self.network.device)
            self.target = int(self.network(input_ids=ids).logits.argmax())

    def probabilities(self, masks: Any) -> Weights:
        """Probability of the predicted class with only these words.  (K,n) -> (K,)"""
        masks, probs = np.asarray(masks) > 0.5, []
        for start in range(0, len(masks), BATCH):
            subsets = [np.flatnonzero(mask) for mask in masks[start : start + BATCH]]
            words = [[self.ids[i] for k in subset for i in self.pieces[k]] for subset in subsets]
            rows = [[self.ids[0], *row, self.ids[-1]] for row in words]
            batch = self.tokenizer.pad({"input_ids": rows}, return_tensors="pt").to(self.network.device)
            with torch.no_grad():
                probs.append(self.network(**batch).logits.double().softmax(-1)[:, self.target].cpu())
        return torch.cat(probs).numpy()

    def _probability(self, vectors: torch.Tensor) -> torch.Tensor:
        probabilities: torch.Tensor = self.network(inputs_embeds=vectors).logits.double().softmax(-1)[:, self.target]
        return probabilities

    def _vectors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Vectors of the text, and of the same text with padding instead of words."""
        table, ids = self.network.get_input_embeddings(), torch.tensor([self.ids])
        blank = torch.full_like(ids, self.tokenizer.pad_token_id)
        blank[0, 0], blank[0, -1] = ids[0, 0], ids[0, -1]
        return table(ids).detach(), table(blank).detach()

    def _word_sums(self, per_token: torch.Tensor) -> Weights:
        values = per_token.detach().double().numpy()
        return np.array([values[word].sum() for word in self.pieces])

    # --- Captum

    def integrated_gradients(self) -> Weights:
        from captum.attr import IntegratedGradients

        vectors, blank = self._vectors()
        return self._word_sums(IntegratedGradients(self._probability).attribute(vectors, blank, n_steps=50)[0].sum(-1))

    def gradient(self) -> Weights:
        from captum.attr import Saliency

        vectors = self._vectors()[0].requires_grad_()
        return self._word_sums(Saliency(self._probability).attribute(vectors, abs=False)[0].norm(dim=-1))

    def input_x_gradient(self) -> Weights:
        from captum.attr import InputXGradient

        return self._word_sums(
            InputXGradient(self._probability).attribute(self._vectors()[0].requires_grad_())[0].sum(-1)
        )

    def _mask_probabilities(self, masks: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(self.probabilities(masks.numpy()))

    def feature_ablation(self) -> Weights:
        from captum.attr import FeatureAblation

        whole = torch.ones(1, len(self.pieces))
        attributions = FeatureAblation(self._mask_probabilities).attribute(whole, perturbations_per_eval=BATCH)
        return np.asarray(attributions[0].double())

    def captum_lime(self, samples: int) -> Weights:
        from captum._utils.models.linear_model import SkLearnRidge
        from captum.attr import Lime

        torch.manual_seed(0)
        whole = torch.ones(1, len(self.pieces))
        method = Lime(self._mask_probabilities, interpretable_model=SkLearnRidge(alpha=1.0))
        return np.asarray(method.attribute(whole, n_samples=samples, perturbations_per_eval=BATCH)[0].double())

    def captum_kernel_shap(self, samples: int) -> Weights:
        from captum.attr import KernelShap

        torch.manual_seed(0)
        whole = torch.ones(1, len(self.pieces))
        attributions = KernelShap(self._mask_probabilities).attribute(
            whole, n_samples=samples, perturbations_per_eval=BATCH
        )
        return np.asarray(attributions[0].double())

    # --- shap, lime

    def shap_kernel(self, samples: int) -> Weights:
        import shap  # type: ignore[import-not-found]

        n = len(self.pieces)
        np.random.seed(0)
        attributions = shap.KernelExplainer(self.probabilities, np.zeros((1, n))).shap_values(
            np.ones((1, n)), nsamples=samples, l1_reg=False, silent=True
        )
        return np.asarray(attributions, float).reshape(-1)

    def lime_text(self, text: str, words: Sequence[str], samples: int) -> Weights:
        from lime.lime_text import LimeTextExplainer  # type: ignore[import-not-found]

        def probabilities(texts: Sequence[str]) -> Weights:
            probs = []
            for start in range(0, len(texts), BATCH):
                read = self.tokenizer(texts[start : start + BATCH], padding=True, truncation=True, return_tensors="pt")
                with torch.no_grad():
                    probs.append(self.network(**read).logits.double().softmax(-1))
            return torch.cat(probs).numpy()

        explainer = LimeTextExplainer(
            split_expression=lambda _: list(words), bow=False, mask_string="", feature_selection="none", random_state=0
        )
        line = explainer.explain_instance(
            text, probabilities, labels=[self.target], num_features=len(words), num_samples=samples
        )
        weights = np.zeros(len(words))
        for word, weight in line.as_map()[self.target]:
            weights[word] = weight
        return weights

    # --- ERASER, by its definition

    def eraser(self, weights: Weights, shares: Sequence[float]) -> tuple[float, float]:
        """Comprehensiveness and sufficiency: means over the shares q, each with the top ⌈q·n⌉ words."""
        n = len(weights)
        order = np.argsort(-weights, kind="stable")
        whole = self.probabilities(np.ones((1, n)))[0]
        without, alone = [], []
        for share in shares:
            top = np.isin(np.arange(n), order[: int(np.ceil(share * n - 1e-9))])
            without.append(whole - self.probabilities(~top[None])[0])
            alone.append(whole - self.probabilities(top[None])[0])
        return float(np.mean(without)), float(np.mean(alone))
