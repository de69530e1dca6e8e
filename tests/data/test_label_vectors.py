"""The weights of a TF-IDF logistic regression as word vectors."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from steadygaze.data.label_vectors import INVERSE_PENALTY, label_vectors
from steadygaze.data.word_tokenizer import SPECIALS, build_word_tokenizer

TEXTS = ["good good film", "good plot", "bad film", "bad bad plot", "so dull", "so dull dull film"]


def vectors(labels, weights=None, min_df=1):
    tokenizer = build_word_tokenizer(TEXTS, min_df=min_df)
    return tokenizer, label_vectors(tokenizer.encode(TEXTS), tokenizer.size, labels, weights)


@pytest.mark.parametrize("labels", [[1, 1, 0, 0, 0, 0], [2, 2, 1, 1, 0, 0]])
@pytest.mark.parametrize("weights", [None, np.array([1, 2, 1, 1, 0.5, 1], np.float32)])
def test_they_are_proportional_to_the_weights_of_scikit_learns_pipeline(labels, weights):
    tokenizer, result = vectors(labels, weights)
    words = tokenizer.vocabulary[len(SPECIALS) :]
    vectorizer = TfidfVectorizer(vocabulary=words).fit(TEXTS)
    regression = LogisticRegression(C=INVERSE_PENALTY, max_iter=1000)
    regression.fit(vectorizer.transform(TEXTS), labels, weights)
    expected = regression.coef_.T * vectorizer.idf_[:, None]
    assert result.shape == (tokenizer.size, 1 if len(set(labels)) == 2 else 3)
    expected /= np.sqrt((expected**2).sum() / result.size)
    np.testing.assert_allclose(result[len(SPECIALS) :], expected, atol=2e-3)
    assert np.mean(result**2) == pytest.approx(1.0, abs=1e-5)


def test_special_tokens_and_unknown_words_have_no_weight():
    tokenizer, result = vectors([1, 1, 0, 0, 0, 0], min_df=3)
    assert tokenizer.size < build_word_tokenizer(TEXTS, min_df=1).size
    assert not result[: len(SPECIALS)].any()


def test_the_sign_is_that_of_the_class():
    tokenizer, result = vectors([1, 1, 0, 0, 0, 0])
    assert result[tokenizer.vocabulary.index("good"), 0] > 0 > result[tokenizer.vocabulary.index("bad"), 0]
