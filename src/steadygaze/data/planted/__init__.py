"""Beer reviews whose true reason is known, made from a seed, so that everything runs with no download.

A review has one sentence on each of appearance, aroma and palate, each praised or blamed by a coin of its own, and two
to four neutral sentences.  The label is the sentiment of one aspect: the one asked for, or the one that the question of
a pair names.

    sentence   an opener, a core and a closer (`frames`), filled from word lists (`words`); openers and closers are
               often left out.  No combination of the three is shared between splits, so a core that stands bare in the
               test split never stands bare in the training split; the cores themselves are shared
    truth      a noun that says which aspect, an opinion, and in 15 % of sentences a negator (not, hardly, anything but,
               nobody would call …) that turns it round (`lexicon`); most opinions are said of every aspect, and
               negators stand in neutral clauses too
    rationales   those words and no others, one span a word: they are enough to read the label by the rules of the
               `oracle`, and it can spare none of them

A model may spare the noun where something else tells the aspect: of the test sentences about an aspect, 26 % use an
adjective said of that aspect alone (20 % in train) and 4 % a closer that speaks of it; 29 % have one or the other.

The first sentence is about the appearance in 95 % of reviews, as in real ones: position is a shortcut to that aspect.

Options make reviews like those in which rationalisers are seen to lock (bench/rationales.py).  `agreement`: the aspects
fare alike, two of them in a² + (1 − a)² of reviews; `own`: more words that say which aspect they are said of;
`negation`: fewer opinions that are denied; `noise`: labels that are not what the review says, which no oracle can read.

Pairs ask about the aroma in 55 % of questions, the appearance in 30 %, the palate in 15 %, so that looking at one
aspect pays before the question is understood: to ignore the question and follow the aroma gets 0.55 + 0.45 · 0.5 =
0.775, to count praise and blame over all three 0.75.

Measured at the default sizes, seed 0, test split (a coin would get 0.5; counting praise and blame perfectly 0.75; in
pairs, following the aroma 0.775):

                                                                   appearance   aroma   palate   pairs
    oracle: lexicon and grammar                                         1.000   1.000    1.000   1.000
    TF-IDF of 1- and 2-grams, logistic regression                       0.661   0.654    0.647   0.629
    TextClassifier as it comes (bilstm, vanilla, no vectors)            0.970   0.985    0.995   0.946
    … and the share of its attention that lies on the rationales          0.810   0.748    0.064   0.357

The first two by `bench/planted_difficulty.py`, the others, of one model each, by `bench/accuracy.py`.  Rationales is
0.036 of the words.  The last row is one run's: it differs much from run to run.
"""

from steadygaze.data.planted.lexicon import SYNONYMS as SYNONYMS
from steadygaze.data.planted.reviews import flip_label as flip_label
from steadygaze.data.planted.reviews import planted_pairs as planted_pairs
from steadygaze.data.planted.reviews import planted_reviews as planted_reviews
from steadygaze.data.planted.reviews import question_aspect as question_aspect
from steadygaze.data.planted.reviews import read_planted_review as read_planted_review
from steadygaze.data.planted.reviews import redraw_review as redraw_review
from steadygaze.data.planted.reviews import swap_words as swap_words
