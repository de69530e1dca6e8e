"""Settings of a user, checked before anything is read."""

import dataclasses

import numpy as np
import pytest

from steadygaze.core.errors import UserError
from steadygaze.core.settings import settings
from steadygaze.estimator.model_config import settings_of_model
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.estimator.train_config import TextConfig, train_config
from steadygaze.models.classifier import Architecture
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training.optimizers import Training


def ordered(**parameters):
    return train_config(TextClassifier(**parameters).get_params())


@settings
class Homemade(Vanilla):
    """A technique that is not registered."""

    strength: float = 1.0


def test_defaults_are_those_of_the_settings_classes():
    plain = ordered()
    assert (plain.encoder, plain.technique_name, plain.seed) == ("bilstm", "vanilla", 0)
    assert (plain.architecture, plain.training, plain.text) == (Architecture(), Training(), TextConfig())
    assert plain.technique == Vanilla()
    assert (plain.vectors, plain.max_length, plain.class_weight, plain.device) == (None, None, None, "auto")


def test_settings_are_dealt_out_to_their_owners():
    result = ordered(epochs=2, batch_size=5, settings={"hidden": 7, "learning_rate": 0.1, "min_df": 3})
    assert result.architecture == Architecture(hidden=7)
    assert result.training == Training(epochs=2, batch_size=5, learning_rate=0.1)
    assert result.text == TextConfig(min_df=3)


def test_a_parameter_and_a_setting_of_one_name_must_agree():
    assert ordered(epochs=2, settings={"epochs": 2}).training.epochs == 2
    assert ordered(settings={"epochs": 2}).training.epochs == 2
    with pytest.raises(UserError, match="batch_size is set twice: 3, and 4"):
        ordered(batch_size=3, settings={"batch_size": 4})


@pytest.mark.parametrize("name", TECHNIQUES)
def test_a_registered_technique_keeps_its_name_however_it_is_given(name):
    technique = TECHNIQUES[name]()
    assert ordered(technique=technique).technique is technique
    assert ordered(technique=technique).technique_name == ordered(technique=name).technique_name == name


def test_a_technique_of_the_users_own_goes_by_its_class():
    result = ordered(technique=Homemade(strength=2.0))
    assert (result.technique_name, result.technique) == ("Homemade", Homemade(strength=2.0))
    with pytest.raises(UserError, match="unknown setting 'strength'"):
        ordered(technique=Homemade(), settings={"strength": 3.0})


def test_numpy_numbers_will_do():
    result = ordered(seed=np.int32(3), max_length=np.int64(9), epochs=np.int64(2), settings={"hidden": np.int64(4)})
    assert (result.seed, result.max_length, result.training.epochs, result.architecture.hidden) == (3, 9, 2, 4)
    assert all(type(value) is int for value in (result.seed, result.max_length, result.training.epochs))


def test_a_hub_id_and_a_folder_are_taken_at_their_word():
    for name in ("transformer:minilm", "transformer:some/model", "transformer:./folder"):
        assert ordered(encoder=name).encoder == name


def test_restored_settings_order_the_same_again():
    first = ordered(settings={"hidden": 7, "dropout": 0.5, "learning_rate": 0.1, "patience": 2, "min_df": 3})
    values = settings_of_model(
        first.architecture,
        dataclasses.asdict(first.training),
        dataclasses.asdict(first.text),
        first.technique_name,
        dataclasses.asdict(first.technique),
    )
    assert values == {"hidden": 7, "dropout": 0.5, "learning_rate": 0.1, "patience": 2, "min_df": 3}
    assert ordered(settings=values) == first


def test_of_an_unregistered_technique_everything_is_restored():
    assert settings_of_model(Architecture(), {}, {}, "Homemade", {"strength": 1.0}) == {"strength": 1.0}
