from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close
from transformers import Trainer, TrainingArguments

from adapters.folders import network, tokenizer
from stable_training.scripts import LABELS, QUIET, STILL, TEXTS, Gradients, rows, trainer
from steadygaze.adapters.transformer_network import ForwardOptions, TransformerModel
from steadygaze.core.errors import UserError
from steadygaze.core.settings import settings
from steadygaze.core.types import Batch
from steadygaze.perturbations.word_substitution import Synonyms, without_synonyms
from steadygaze.techniques.technique import LossContext, Technique, task_loss
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.techniques.word_at import WordAT
from steadygaze.techniques.word_iat import WordIAT

CLOSE = {"rtol": 1e-9, "atol": 1e-11}
"""Double precision."""
KINDS = {"bert": "first", "roberta": "first", "distilbert": "first", "modernbert": "all", "gpt2": "last"}


def one_step(folder: Path, kind: str = "bert", **options: Any) -> dict[str, torch.Tensor]:
    """Gradients of the first step."""
    gradients = Gradients()
    arguments = {"max_grad_norm": 0.0, "max_steps": 1} | options.pop("arguments", {})
    trainer(folder, kind, arguments=arguments, callbacks=[gradients], **options).train()
    return gradients.steps[0]


def adapter_model(kind: str) -> tuple[TransformerModel, Batch]:
    """The adapter's model of the same network, and all texts as a batch."""
    encoded = tokenizer(kind)(TEXTS, padding=True, return_tensors="pt")
    present = encoded["attention_mask"].bool()
    special = [i for i in tokenizer(kind).all_special_ids if i != tokenizer(kind).unk_token_id]
    mask = present & ~torch.isin(encoded["input_ids"], torch.tensor(special))
    batch = Batch(encoded["input_ids"], present, mask, torch.arange(len(LABELS)), torch.tensor(LABELS))
    net = network(kind, **STILL).double().train()
    net.config.pad_token_id = tokenizer(kind).pad_token_id
    options = ForwardOptions(net.config.pad_token_id)
    return TransformerModel(net, options, KINDS[kind], has_attention=False), batch


def mean_loss(
    model: TransformerModel, batch: Batch, technique: Technique, synonyms: Synonyms | None = None
) -> torch.Tensor:
    context = LossContext(epoch_tables=technique.on_epoch_start(model, synonyms))
    return torch.stack(list(technique.loss(model, batch, context).values())).sum(0).mean()


def reference_step(kind: str, technique: Technique) -> dict[str, torch.Tensor]:
    """Gradients of the mean of the technique's loss."""
    model, batch = adapter_model(kind)
    mean_loss(model, batch, technique).backward()
    return {name: value.grad for name, value in model.network.named_parameters() if value.grad is not None}


@pytest.mark.parametrize("technique", [Vanilla(), WordAT(), WordAT(epsilon=1.5, relative=False, weight=3.0)], ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_has_the_gradients_of_the_technique_s_own_loss(tmp_path: Path, kind: str, technique: Technique) -> None:
    """The adapter's model reads word vectors, moved to the end for a network that reads the last token."""
    own, reference = one_step(tmp_path, kind, technique=technique), reference_step(kind, technique)
    assert max(float(gradient.norm()) for gradient in own.values()) > 0.01
    assert own.keys() == reference.keys()
    for name in own:
        assert_close(own[name], reference[name], **CLOSE)


@pytest.mark.parametrize("technique", [WordAT(), WordIAT(neighbors=3)], ids=repr)
def test_a_training_has_the_losses_and_weights_of_a_plain_loop(tmp_path: Path, technique: Technique) -> None:
    """Five steps of Adam on the technique's own loss: the same losses, and the same weights at the end."""
    model, batch = adapter_model("bert")
    size = len(tokenizer("bert"))
    special = without_synonyms(
        size, torch.zeros(size).bool(), torch.ones(size).bool(), torch.arange(size) < 4
    )  # [PAD] …
    adam, losses = torch.optim.Adam(model.parameters(), 1e-2, eps=1e-3), []
    for _ in range(5):  # an epoch is one step
        loss = mean_loss(model, batch, technique, special)
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(float(loss.detach()))
    arguments = {"num_train_epochs": 5, "lr_scheduler_type": "constant", "max_grad_norm": 0.0, "adam_epsilon": 1e-3}
    arguments |= {"logging_strategy": "steps", "logging_steps": 1}
    ours = trainer(tmp_path, technique=technique, arguments=arguments)
    ours.train()
    own = [record["loss"] for record in ours.state.log_history if "loss" in record]
    assert own == pytest.approx(losses, abs=1e-5)
    assert losses[-1] < losses[0] - 0.1
    for name, value in ours.model.named_parameters():
        assert_close(value, model.network.get_parameter(name), rtol=1e-7, atol=1e-9)


def test_word_at_differs_from_vanilla_and_vanilla_is_the_library_s_trainer(tmp_path: Path) -> None:
    plain = network("bert", **STILL).double()
    Trainer(
        plain,
        TrainingArguments(tmp_path, num_train_epochs=3, learning_rate=1e-2, per_device_train_batch_size=3, **QUIET),
        train_dataset=rows(),
        processing_class=tokenizer("bert"),
    ).train()
    weights = {}
    for technique in ("vanilla", "word-at", "word-iat"):
        arguments = {"num_train_epochs": 3, "per_device_train_batch_size": 3}
        ours = trainer(tmp_path, technique=technique, arguments=arguments)
        ours.train()
        weights[technique] = ours.model.state_dict()
    for name, value in plain.state_dict().items():
        assert_close(weights["vanilla"][name], value, **CLOSE)
    name = "classifier.weight"
    assert not torch.allclose(weights["word-at"][name], weights["vanilla"][name], atol=1e-4)
    assert not torch.allclose(weights["word-iat"][name], weights["word-at"][name], atol=1e-6)


@settings
class Random(Technique):
    """Word dropout, to see that random numbers depend on the text alone."""

    def loss(self, model: Any, batch: Batch, context: LossContext) -> dict[str, torch.Tensor]:
        kept = context.key.uniform(batch.index, batch.ids.shape[1], dtype=torch.float64) >= 0.5
        return {"task": task_loss(model(batch, model.embed(batch) * kept.unsqueeze(-1)).logits, batch)}


@pytest.mark.parametrize("technique", ["word-at", "vanilla", Random()], ids=str)
def test_two_accumulated_batches_of_four_equal_a_batch_of_eight(tmp_path: Path, technique: Any) -> None:
    whole = one_step(tmp_path, technique=technique)
    arguments = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}
    parts = one_step(tmp_path, technique=technique, arguments=arguments)
    for name in whole:
        assert_close(parts[name], whole[name], **CLOSE)


def test_a_network_that_is_not_told_the_number_of_texts_accumulates_means(tmp_path: Path) -> None:
    whole = one_step(tmp_path)
    net = network("bert", **STILL).double()
    net.accepts_loss_kwargs = False  # the library then divides by the number of batches
    arguments = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}
    parts = one_step(tmp_path, model=net, arguments=arguments)
    for name in whole:
        assert_close(parts[name], whole[name], **CLOSE)


def test_gradient_checkpointing_changes_no_gradient(tmp_path: Path) -> None:
    whole = one_step(tmp_path)
    saved = one_step(tmp_path, arguments={"gradient_checkpointing": True})
    for name in whole:
        assert_close(saved[name], whole[name], **CLOSE)


def test_bf16_autocast_trains_with_word_at(tmp_path: Path) -> None:
    whole = one_step(tmp_path, model=network("bert", **STILL))
    half = one_step(tmp_path, model=network("bert", **STILL), arguments={"bf16": True})
    name = "classifier.weight"
    assert not torch.equal(half[name], whole[name])
    assert_close(half[name], whole[name], rtol=0.1, atol=0.02)


def test_lora_trains_only_the_adapter(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(task_type="SEQ_CLS", target_modules=["query", "value"], r=2)
    model = peft.get_peft_model(network("bert", **STILL).double(), config)
    vectors = model.get_input_embeddings().weight.clone()
    gradients = one_step(tmp_path, model=model)
    assert any("lora_B" in name and gradient.norm() > 0 for name, gradient in gradients.items())
    assert all("lora_" in name or "modules_to_save" in name for name in gradients)
    assert torch.equal(model.get_input_embeddings().weight, vectors)


def test_lora_with_gradient_checkpointing_has_the_same_gradients(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(task_type="SEQ_CLS", target_modules=["query", "value"], r=2, init_lora_weights=True)

    def gradients(**arguments: Any) -> dict[str, torch.Tensor]:
        torch.random.default_generator.manual_seed(1)
        model = peft.get_peft_model(network("bert", **STILL).double(), config)
        return one_step(tmp_path, model=model, arguments=arguments)

    plain, checkpointed = gradients(), gradients(gradient_checkpointing=True)
    for name in plain:
        assert_close(checkpointed[name], plain[name], **CLOSE)


def test_evaluation_reports_the_cross_entropy_and_leaves_no_hook(tmp_path: Path) -> None:
    ours = trainer(tmp_path, eval_dataset=rows())
    ours.train()
    metrics = ours.evaluate()
    encoded = tokenizer("bert")(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        logits = ours.model.eval()(**encoded).logits
    expected = torch.nn.functional.cross_entropy(logits, torch.tensor(LABELS))
    assert metrics["eval_loss"] == pytest.approx(float(expected), rel=1e-6)
    assert not ours.model.get_input_embeddings()._forward_hooks
    assert ours.predict(rows()).predictions == pytest.approx(logits.numpy())


def test_tables_of_an_epoch_are_computed_before_each_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    original = WordAT.on_epoch_start

    def counted(self: WordAT, model: Any, synonyms: Any) -> Any:
        tables = original(self, model, synonyms)
        sizes.append(float(tables["unit"]))
        return tables

    monkeypatch.setattr(WordAT, "on_epoch_start", counted)
    trainer(tmp_path, arguments={"num_train_epochs": 3}).train()
    assert len(set(sizes)) == len(sizes) == 3


@settings
class Attentive(Technique):
    def loss(self, model: Any, batch: Batch, context: LossContext) -> dict[str, torch.Tensor]:
        return {"entropy": model(batch).weights.sum(-1)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"technique": "attention-at"}, "'attention-at' cannot train a network with its own head: it needs attention"),
        ({"technique": "consensus"}, "'consensus' cannot .* it trains in stages.*These work: vanilla, word-at"),
        ({"technique": "rnp"}, "'rnp' cannot .* it selects a rationale"),
        ({"technique": "synonym-augmentation"}, "'synonym-augmentation' cannot .* a table of synonyms"),
        ({"technique": "adversary"}, "'adversary' cannot train"),
        ({"technique": "word-att"}, "unknown technique 'word-att'"),
        ({"technique_settings": {"epsilon": -1.0}}, "epsilon"),
        ({"technique": Vanilla(), "technique_settings": {"a": 1}}, "set the fields of your Technique"),
        ({"arguments": {"label_smoothing_factor": 0.1}}, "no label smoothing"),
        ({"compute_loss_func": lambda *_: 0}, "leave out compute_loss_func"),
        (
            {"arguments": {"gradient_checkpointing": True, "gradient_checkpointing_kwargs": {"use_reentrant": True}}},
            "'use_reentrant': False",
        ),
        ({"kind": "bart"}, "reads a text twice"),
    ],
)
def test_what_cannot_work_is_refused_before_training(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        trainer(tmp_path, **options)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"problem_type": "multi_label_classification"}, "one label per text"),
        ({"problem_type": "regression"}, "one label per text"),
    ],
)
def test_other_tasks_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        trainer(tmp_path, model=network("bert", **changes))


def test_a_language_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a classifier of texts"):
        trainer(tmp_path, "gpt2", model=network("gpt2", "AutoModelForCausalLM"))


def test_a_technique_of_the_user_that_reads_attention_is_named_at_the_first_step(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="reads 'weights' of the model"):
        trainer(tmp_path, technique=Attentive()).train()


def test_a_batch_without_labels_is_refused(tmp_path: Path) -> None:
    bare = [{name: value for name, value in row.items() if name != "label"} for row in rows()]
    with pytest.raises(UserError, match="input_ids and labels"):
        trainer(tmp_path, train_dataset=bare).train()


def test_the_perturbation_leaves_special_tokens_alone(tmp_path: Path) -> None:
    ours = trainer(tmp_path)
    encoded = tokenizer("bert")(["a zzz film"], return_tensors="pt")
    batch, further = ours._batch({**encoded, "labels": torch.tensor([1])})
    assert batch.mask.tolist() == [[False, True, True, True, False]]  # an unknown word is a word
    assert further.keys() == {"attention_mask", "token_type_ids"}
    assert batch.gold.tolist() == [1]


class Weighing(WordAT):
    """Weighs the losses of word-at by their label."""

    def loss(self, model: Any, batch: Any, context: Any) -> Any:
        terms = super().loss(model, batch, context)
        return {name: values * (1.0 + batch.gold) for name, values in terms.items()}


def test_a_technique_that_weighs_known_losses_by_text_is_refused(tmp_path: Path) -> None:
    """Their gradients are known as those of a sum: any other weights would be ignored."""
    with pytest.raises(UserError, match="weighs the losses that `differentiate` returned, by text"):
        trainer(tmp_path, technique=Weighing()).train()
