"""Attack on certificates of substitutions: it finds the positions of the certificate by other means."""

import pytest

from steadygaze.certificates.rewrites import text_positions
from steadygaze.data.word_tokenizer import build_word_tokenizer
from studies.substitution_certificate.run import target_positions

NAMES = frozenset(["film", "good", "clock", "café"])


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("A GOOD film, a good-film; film's good.", 6),
        ("o'clock 'good' goodn't film_2 good2 2good films", 1),
        ("see www.film.com/good and #film @good café.", 3),
        ("这good片，我喜欢film电影", 2),
        ("filmはgoodです หนังgoodดี", 3),
    ],
)
def test_the_attack_substitutes_the_positions_of_the_certificate(text: str, count: int) -> None:
    result = target_positions(text, NAMES)
    assert len(result.words) == count
    assert result == text_positions(text, build_word_tokenizer([], max_length=99).place([text]).spans[0], NAMES)
