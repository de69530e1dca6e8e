"""Perturbation sets of a synonym network, by hand."""

from collections.abc import Mapping, Sequence

from steadygaze.data.substitutions import Substitutions

CHAIN = {"aa": ["bb"], "bb": ["cc"], "cc": ["dd"], "dd": ["ee"]}


def substitutions(
    table: Mapping[str, Sequence[str]], size: int, nodes: Mapping[str, str] | None = None, unknown: str = ""
) -> Substitutions:
    words = [name for word, row in table.items() for name in (word, *row)]
    known = {word: word not in unknown.split() for word in words}
    return Substitutions(table, {word: (nodes or {}).get(word, word) for word in words}, known, size)


def test_a_small_connected_part_is_one_set_in_either_direction() -> None:
    network = substitutions(CHAIN, 5)
    assert {network.perturbation_set(word) for word in ("aa", "bb", "cc", "dd", "ee")} == {
        ("aa", "bb", "cc", "dd", "ee")
    }
    assert network.distance("aa", "bb") == 0


def test_a_large_part_is_cut_to_the_nearest_words() -> None:
    network = substitutions(CHAIN, 3)
    assert network.perturbation_set("aa") == ("aa", "bb", "cc")
    assert network.perturbation_set("cc") == ("bb", "cc", "dd")
    assert network.perturbation_set("bb") == ("aa", "bb", "cc")
    assert network.distance("bb", "cc") == network.distance("cc", "bb") == 1 - 2 / 3
    assert network.distance("aa", "bb") == network.distance("aa", "aa") == 0


def test_words_that_the_model_reads_alike_share_their_set() -> None:
    network = substitutions(CHAIN, 2, nodes={"bb": "one", "cc": "one"})
    assert network.perturbation_set("bb") == network.perturbation_set("cc") == ("bb", "dd")
    assert network.distance("bb", "cc") == 0


def test_unknown_words_are_replaced_by_known_ones() -> None:
    network = substitutions(CHAIN, 9, unknown="bb dd ee")
    assert network.perturbation_set("dd") == network.perturbation_set("aa") == ("aa", "cc")
    assert network.distance("aa", "bb") == 0
    nothing = substitutions(CHAIN, 9, unknown="aa bb cc dd ee")
    assert nothing.perturbation_set("dd") == nothing.perturbation_set("aa") == ("aa",)


def test_a_word_outside_the_table_stays() -> None:
    network = substitutions(CHAIN, 3)
    assert network.perturbation_set("film") == ("film",)
