"""`synonyms build --verify`: the pairs of the sources that keep the meaning of words in the training texts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadygaze.cli.progress_bars import progress_bar
from steadygaze.core.errors import UserError
from steadygaze.core.rounding import percent
from steadygaze.data.class_frequencies import SuspiciousPair
from steadygaze.data.corpus import Corpus
from steadygaze.data.synonym_tables import SynonymTable
from steadygaze.data.verified_tables import (
    THRESHOLD,
    Verification,
    VerifiedRows,
    texts_with_substitutes,
    verified_rows,
    verified_text,
)
from steadygaze.data.word_tokenizer import document_frequency

if TYPE_CHECKING:
    from steadygaze.core.errors import Console


@dataclass(frozen=True)
class VerifiedBuild:
    """A verified table, and the texts that it was verified on."""

    table: SynonymTable
    verification: Verification
    verified: VerifiedRows
    texts: Sequence[str]

    def suspicious(self, pairs: Sequence[SuspiciousPair]) -> list[SuspiciousPair]:
        """The pairs that are not of the lists, which were chosen by their meaning."""
        listed = self.verified.listed
        names = {pair for word, row in listed.items() for synonym in row for pair in ((word, synonym), (synonym, word))}
        return [pair for pair in pairs if (pair.word, pair.synonym) not in names]

    def text(self, rows: Mapping[str, Sequence[str]]) -> str:
        """The content of the file."""
        return verified_text(rows, self.verification)

    def summary(self, rows: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        return {
            "listed": sum(map(len, self.verified.listed.values())),
            "others": sum(map(len, self.verified.others.values())),
            "candidates": self.verified.candidates,
            "threshold": self.verification.threshold,
            "texts": texts_with_substitutes(rows, self.texts),
        }

    def lines(self, rows: Mapping[str, Sequence[str]]) -> Iterator[str]:
        summary = self.summary(rows)
        others = f"{summary['others']:,} of {summary['candidates']:,} others"
        yield f"verified: {summary['listed']:,} pairs of lists; {others}, mean cosine {summary['threshold']:g} or more"
        counts = summary["texts"]
        shares = [f"{percent(number / max(1, sum(counts.values())), 0)} {words}" for words, number in counts.items()]
        yield f"words with a verified substitute: {', '.join(shares)} or more (of {len(self.texts):,} texts)"


def verify_sources(
    out_file: Path, sources: Sequence[str], corpus: Corpus | None, encoder: str, console: "Console"
) -> VerifiedBuild:
    """`encoder`: a local folder, or the name of an installed encoder."""
    if corpus is None or not sources or out_file.suffix != ".jsonl":
        raise UserError(
            "--verify needs a synonym source and training texts (--data) and writes a table (--out FILE.jsonl)"
        )
    from steadygaze.models.encoders.transformer import PACKAGES, locate
    from steadygaze.models.encoders.word_states import WordStates

    if encoder not in PACKAGES and not Path(encoder).is_dir():
        raise UserError(
            f"--verify {encoder!r:.80}: no such folder; pass a local folder with config.json, tokenizer.json and "
            f"model.safetensors, or {', '.join(PACKAGES)}"
        )
    folder = locate(encoder)
    texts = [part for item in corpus.training for part in (item.text, item.question) if part is not None]
    with progress_bar(console) as on_progress:
        states = WordStates(folder, on_progress=on_progress)
        verified = verified_rows(sources, texts, document_frequency(texts), states.similarity)
    rows = verified.listed | verified.others
    if not rows:
        raise UserError(
            f"none of {verified.candidates:,} pairs was verified: pass more texts, another source or another encoder"
        )
    names = tuple(Path(source).name for source in sources)
    verification = Verification(states.digest, THRESHOLD, corpus.fingerprint, names)
    return VerifiedBuild(SynonymTable(rows), verification, verified, texts)
