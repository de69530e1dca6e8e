"""Generated beer reviews with known rationales, available without a download.

A review has one sentence about each aspect: appearance, aroma and palate.  Each is independently positive or negative.
Two to four further sentences are neutral.  The label is the sentiment of one aspect: a fixed aspect, or the aspect in
the question of a pair.

    sentence     an optional opener, a core and an optional closer, filled from word lists (lexicon.toml).  Splits
                 share cores, but no combination of opener, core and closer
    label        determined by a noun of the aspect and an opinion.  In 15 % of sentences a negator reverses the
                 opinion (not, hardly, anything but …).  Most opinions occur with every aspect.  Negators also occur
                 in neutral clauses
    rationales   exactly these words, one span per word.  `read_planted_review` reads the label from them; each is
                 necessary

Other words can reveal the aspect without the noun.  Among the test sentences about an aspect, 26 % have an
adjective of that aspect only (20 % in train).  A closer about it is in 4 %, and at least one of the two in 29 %.

The first sentence is about the appearance in 95 % of reviews, as in real reviews: position is a shortcut.

Options create reviews on which rationalizers interlock (studies/rationales):

    agreement    correlation of the aspects: two of them are equal in a² + (1 − a)² of reviews
    own          frequency of words that reveal their aspect
    negation     frequency of negated opinions
    noise        frequency of wrong labels

Questions are about the aroma in 55 % of pairs, the appearance in 30 % and the palate in 15 %.  A model that ignores the
question and uses the aroma has an accuracy of 0.55 + 0.45 · 0.5 = 0.775.  The majority of all three opinions has 0.75.

Measured at the default sizes, seed 0, test split (chance is 0.5):

                                                                   appearance   aroma   palate   pairs
    oracle: lexicon and grammar                                         1.000   1.000    1.000   1.000
    TF-IDF of 1- and 2-grams, logistic regression                       0.661   0.654    0.647   0.629
    TextClassifier with defaults (bilstm, vanilla, no vectors)          0.970   0.985    0.995   0.946
    … and the share of its attention on the rationales                  0.810   0.748    0.064   0.357

`studies/planted_difficulty` computes the rows, those of TextClassifier from one model each.  Rationales have 3.6 %
of all words.  The last row varies much between runs.
"""

from steadygaze.data.planted.lexicon import SYNONYMS as SYNONYMS
