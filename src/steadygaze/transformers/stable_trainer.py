"""StableTrainer: the Trainer of the transformers library with a training technique and synonym groups.

    loss  =  mean over the texts of a step of  Σ terms of the technique

The mean is over all batches that a step accumulates, on all devices, as in the library.  Evaluation uses the
cross-entropy of the network itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Trainer, TrainerCallback

from steadygaze.adapters.huggingface_folder import GROUPS
from steadygaze.core.atomic_files import write_text
from steadygaze.core.errors import UserError
from steadygaze.core.random_key import RandomKey, text_key
from steadygaze.core.types import Batch
from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.data.vocabulary_lexicon import vocabulary_lexicon
from steadygaze.perturbations.word_substitution import Synonyms, without_synonyms
from steadygaze.techniques.technique import LossContext, Technique, check_terms
from steadygaze.transformers.grouped_rows import GroupedRows
from steadygaze.transformers.network_model import NetworkModel
from steadygaze.transformers.single_backward import differentiate_once
from steadygaze.transformers.supported_networks import check_arguments, check_network
from steadygaze.transformers.supported_techniques import resolve_technique
from steadygaze.transformers.trainer_card import add_to_card
from steadygaze.transformers.training_groups import GroupSource, training_groups


class StableTrainer(Trainer):  # type: ignore[misc]
    """A `transformers.Trainer` that trains a sequence classifier, with its own head, by a technique.

    Parameters
    ----------
    *args, **options
        Those of `transformers.Trainer`.
    technique : str or Technique, default="word-at"
        vanilla, word-at, word-iat, or a `Technique` of your own that needs embeddings and logits only.
    technique_settings : dict, default={}
        Settings of the technique, by name: {"epsilon": 0.5}.
    synonym_groups : str, Path, SynonymGroups or dict, default=None
        Groups of synonyms that the model reads as one word: a file of groups (.json), or a synonym table or a mapping
        of words to synonyms, from which groups are built.  The texts of all datasets are rewritten and encoded again.
        `save_model` writes them into the folder, and `sg.load` applies them.
    text_column : str, default="text"
        Column of the texts, for `synonym_groups`.
    max_length : int, default=None
        Most tokens per text that `synonym_groups` encode; None: the limit of the tokenizer.
    """

    train_dataset: Any
    eval_dataset: Any

    def __init__(
        self,
        *args: Any,
        technique: str | Technique = "word-at",
        technique_settings: Mapping[str, Any] | None = None,
        synonym_groups: GroupSource = None,
        text_column: str = "text",
        max_length: int | None = None,
        **options: Any,
    ) -> None:
        self.technique = resolve_technique(technique, technique_settings or {})
        self.synonym_groups: SynonymGroups | None = None
        self._grouped_rows: GroupedRows | None = None
        self._context = LossContext()
        super().__init__(*args, **options)
        check_arguments(self)
        check_network(self)
        if self.args.ddp_broadcast_buffers is None:
            self.args.ddp_broadcast_buffers = False  # a second forward pass would overwrite buffers of the first
        if synonym_groups is not None:
            self._read_groups(synonym_groups, text_column, max_length)
        self.add_callback(_EpochTables(self))

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """The technique's loss in training, and the network's own loss in evaluation."""
        if return_outputs or not model.training:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        batch, further = self._batch(inputs)
        steps = max(self.state.max_steps, 1)
        context = replace(
            self._context,
            key=RandomKey(self.args.seed).child(self.state.global_step),
            progress=min(self.state.global_step / steps, 1.0),
            differentiate=differentiate_once(model, self._layer()),
        )
        network = NetworkModel(model, self._layer(), further)
        terms = check_terms(self.technique.loss(network, batch, context), self.technique, len(batch))
        self.technique = self.technique.after_step(terms)
        values = torch.stack(list(terms.values())).sum(0)
        if num_items_in_batch is None or not self.model_accepts_loss_kwargs:
            return values.mean()  # the library divides by the number of accumulated batches
        loss = values.sum() / num_items_in_batch
        return loss * self.accelerator.num_processes if self.args.average_tokens_across_devices else loss

    def start_epoch(self) -> None:
        """Compute the tables that the technique reads in an epoch."""
        network = NetworkModel(nn.Module(), self._layer(), {})
        synonyms = self._vocabulary() if self.technique.reads_vocabulary else None
        with torch.no_grad():
            tables = self.technique.on_epoch_start(network, synonyms)
        self._context = replace(self._context, epoch_tables=tables, synonyms=synonyms)

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        return super().get_eval_dataloader(self._grouped(eval_dataset))

    def get_test_dataloader(self, test_dataset: Any) -> Any:
        return super().get_test_dataloader(self._grouped(test_dataset))

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Write the files of the library, the synonym groups and a line of the model card."""
        folder = Path(output_dir or self.args.output_dir)
        if self.args.should_save:
            folder.mkdir(parents=True, exist_ok=True)
            if self.synonym_groups is not None:
                write_text(folder / GROUPS, self.synonym_groups.to_json())
            else:
                (folder / GROUPS).unlink(missing_ok=True)  # of an earlier model in this folder
        super().save_model(output_dir, _internal_call)
        if self.args.should_save:
            add_to_card(folder, self.technique, self.synonym_groups)

    def create_model_card(self, *args: Any, **options: Any) -> None:
        super().create_model_card(*args, **options)
        if self.is_world_process_zero():
            add_to_card(Path(self.args.output_dir), self.technique, self.synonym_groups)

    def _layer(self) -> nn.Module:
        """The embedding layer, inside of all wrappers."""
        layer: nn.Module = self.accelerator.unwrap_model(self.model).get_input_embeddings()
        return layer

    def _batch(self, inputs: Mapping[str, Any]) -> tuple[Batch, dict[str, Any]]:
        """The batch of a technique, and the other inputs of the network.  Only words are perturbed."""
        if "labels" not in inputs or "input_ids" not in inputs:
            raise UserError("StableTrainer needs the columns input_ids and labels in every batch of training")
        ids, label = inputs["input_ids"], inputs["labels"]
        mask = inputs.get("attention_mask")
        present = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask.bool()
        words = present & ~torch.isin(ids, ids.new_tensor(self._special_ids()))
        batch = Batch(ids, present, words, torch.zeros_like(ids[:, 0]), label.long())
        further = {name: value for name, value in inputs.items() if name not in ("input_ids", "labels")}
        return replace(batch, index=text_key(batch)), further

    def _special_ids(self) -> list[int]:
        """Ids that are no word of a text."""
        tokenizer: Any = self.processing_class
        if hasattr(tokenizer, "all_special_ids"):
            return [i for i in tokenizer.all_special_ids if i != tokenizer.unk_token_id]
        config = self.accelerator.unwrap_model(self.model).config
        names = ("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")
        return [value for name in names if isinstance(value := getattr(config, name, None), int)]

    def _vocabulary(self) -> Synonyms:
        """Which ids are special tokens; no word has a synonym."""
        tokenizer: Any = self.processing_class
        if not hasattr(tokenizer, "convert_ids_to_tokens"):
            raise UserError(f"{type(self.technique).__name__} reads the vocabulary: pass processing_class=tokenizer")
        tokens: Sequence[Any] = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
        lexicon = vocabulary_lexicon([token or "" for token in tokens], "pieces")
        continues, words, special = map(torch.from_numpy, (lexicon.continues, lexicon.words, lexicon.special))
        return without_synonyms(len(tokens), continues, words, special).to(self.args.device)

    def _read_groups(self, source: GroupSource, column: str, max_length: int | None) -> None:
        if not hasattr(self.processing_class, "all_special_ids"):
            raise UserError("synonym_groups encode the texts again: pass processing_class=tokenizer")
        self.synonym_groups = training_groups(source, self.train_dataset, column)
        self._grouped_rows = GroupedRows(self.synonym_groups, self.processing_class, column, max_length)
        self.train_dataset = self._grouped_rows(self.train_dataset)
        self.eval_dataset = self._grouped_rows(self.eval_dataset)

    def _grouped(self, dataset: Any) -> Any:
        return dataset if isinstance(dataset, str) or self._grouped_rows is None else self._grouped_rows(dataset)


class _EpochTables(TrainerCallback):  # type: ignore[misc]
    """Updates the tables of a technique before every epoch."""

    def __init__(self, trainer: StableTrainer) -> None:
        self._trainer = trainer

    def on_epoch_begin(self, *_: Any, **__: Any) -> None:
        self._trainer.start_epoch()
