"""A saved tokenizer read back: the one place that knows both kinds."""

from steadygaze.tokens.pieces import PieceTokenizer
from steadygaze.tokens.tokenizer import Kind, TextTokenizer, read_engine
from steadygaze.tokens.words import WordTokenizer

KINDS: dict[Kind, type[TextTokenizer]] = {kind.kind: kind for kind in (WordTokenizer, PieceTokenizer)}


def read_tokenizer(text: str, *, kind: Kind, max_length: int) -> TextTokenizer:
    """What `TextTokenizer.to_json` wrote, or any document of the `tokenizers` library."""
    return KINDS[kind](read_engine(text, "tokenizer.json"), max_length=max_length)
