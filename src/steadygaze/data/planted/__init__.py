"""Generated beer reviews with known rationales: everything runs without a download.

A review has one sentence on each of appearance, aroma and palate, each independently positive or negative, and two to
four neutral sentences.  The label is the sentiment of one aspect: a fixed one, or the one that the question of a pair
names.

    sentence     an opener, a core and a closer, filled from word lists (lexicon.toml); openers and closers are often
                 missing.  Splits share no combination of the three, so a core without opener and closer in the test
                 split has one or both in the training split; the cores themselves are shared
    label        a noun that names the aspect, an opinion, and in 15 % of sentences a negator (not, hardly, anything
                 but, nobody would call …) that reverses it; most opinions occur with every aspect, and negators occur
                 in neutral clauses too
    rationales   exactly these words, one span per word: they are sufficient to read the label by the rules of
                 `read_planted_review`, and each is necessary

A model can do without the noun where another word reveals the aspect: of the test sentences about an aspect, 26 % use
an adjective of that aspect only (20 % in train) and 4 % a closer about it; 29 % have one or the other.

The first sentence is about the appearance in 95 % of reviews, as in real ones: position is a shortcut to that aspect.

Options create reviews on which rationalizers interlock (bench/rationales.py).  `agreement`: aspects are correlated, two
of them are equal in a² + (1 − a)² of reviews; `own`: more words that reveal their aspect; `negation`: fewer negated
opinions; `noise`: wrong labels.

Questions are about the aroma in 55 % of pairs, the appearance in 30 % and the palate in 15 %, so one aspect helps
before the question is understood: a model that ignores the question and uses the aroma has an accuracy of 0.55 +
0.45 · 0.5 = 0.775; the majority of all three opinions has 0.75.

Measured at the default sizes, seed 0, test split (chance is 0.5):

                                                                   appearance   aroma   palate   pairs
    oracle: lexicon and grammar                                         1.000   1.000    1.000   1.000
    TF-IDF of 1- and 2-grams, logistic regression                       0.661   0.654    0.647   0.629
    TextClassifier with defaults (bilstm, vanilla, no vectors)          0.970   0.985    0.995   0.946
    … and the share of its attention on the rationales                  0.810   0.748    0.064   0.357

The first two by `bench/planted_difficulty.py`, the others, of one model each, by `bench/accuracy.py`.  Rationales are
0.036 of the words.  The last row varies much between runs.
"""

from steadygaze.data.planted.lexicon import SYNONYMS as SYNONYMS
from steadygaze.data.planted.reviews import flip_label as flip_label
from steadygaze.data.planted.reviews import planted_pairs as planted_pairs
from steadygaze.data.planted.reviews import planted_reviews as planted_reviews
from steadygaze.data.planted.reviews import question_aspect as question_aspect
from steadygaze.data.planted.reviews import read_planted_review as read_planted_review
from steadygaze.data.planted.reviews import redraw_review as redraw_review
from steadygaze.data.planted.reviews import swap_words as swap_words
