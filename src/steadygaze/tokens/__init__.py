"""Text -> ids, each with the characters it stands on; word vectors; tokens against rationales."""

from steadygaze.tokens.align import mark as mark
from steadygaze.tokens.align import merge_words as merge_words
from steadygaze.tokens.pieces import load_pieces as load_pieces
from steadygaze.tokens.ragged import Placed as Placed
from steadygaze.tokens.ragged import Ragged as Ragged
from steadygaze.tokens.read import read_tokenizer as read_tokenizer
from steadygaze.tokens.tokenizer import TextTokenizer as TextTokenizer
from steadygaze.tokens.vectors import Vectors as Vectors
from steadygaze.tokens.vectors import read_vectors as read_vectors
from steadygaze.tokens.words import build_words as build_words
