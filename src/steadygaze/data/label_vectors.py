"""Label vectors: the weights of a TF-IDF logistic regression as word vectors, a warm start for small datasets.

    x_w = tf_w · idf_w / ‖tf · idf‖          TF-IDF of a text
    p(y | x) = softmax(β x + b)              logistic regression with an L2 penalty
    v_w = idf_w · β_w / RMS                  C numbers for each word, one for two classes; root mean square 1

A few hundred texts are too few to learn from random vectors which words carry the label.  The regression learns it
well: it is convex and penalized.  Its weights depend on the training texts only.  Special tokens have zero weights.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression

from steadygaze.core.ragged import TokenArray
from steadygaze.core.types import Label
from steadygaze.data.word_tokenizer import SPECIALS

INVERSE_PENALTY = 10.0
"""C of scikit-learn.  At 1, its default, rare classes have almost no weight."""


def label_vectors(
    texts: TokenArray, size: int, labels: Sequence[Label], weights: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Return one vector for each of the `size` words; `weights`: of the texts.  (V,C), or (V,1) for two classes"""
    counts = word_counts(texts, size)
    scaler = TfidfTransformer().fit(counts)
    regression = LogisticRegression(C=INVERSE_PENALTY, max_iter=1000)
    regression.fit(scaler.transform(counts), np.asarray(labels), weights)
    vectors: NDArray[np.float64] = regression.coef_.T * scaler.idf_[:, None]
    return (vectors / (np.sqrt(np.mean(vectors**2)) or 1.0)).astype(np.float32)


def word_counts(texts: TokenArray, size: int) -> csr_matrix:
    """Number of each of the `size` words in each text, without special tokens.  (N,V)"""
    known = texts.ids >= len(SPECIALS)
    rows, words = np.repeat(np.arange(len(texts)), texts.lengths)[known], texts.ids[known]
    return csr_matrix((np.ones(len(words)), (rows, words)), (len(texts), size))
