"""The commands `synonyms build`, `synonyms show` and `synonyms check`."""

import dataclasses
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadygaze.cli import app
from steadygaze.cli import shared_options as shared
from steadygaze.cli.command_options import (
    Common,
    command_help,
    common_options,
    data_option,
    file_option,
    model_option,
)
from steadygaze.cli.printing import print_json, print_line, show, stderr_console
from steadygaze.core.rounding import percent
from steadygaze.results.audit_config import SYNONYM_TABLE

if TYPE_CHECKING:
    from steadygaze.data.class_frequencies import ClassFrequencies, SuspiciousPair
    from steadygaze.data.corpus import Corpus
    from steadygaze.data.synonym_grouping import Grouping

synonyms = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help="Build, show and check synonym tables.")
app.add_typer(synonyms, name="synonyms")

SOURCE = f"{SYNONYM_TABLE} wordnet: the installed database. everyday, chat: lists of English words."
Source = Annotated[str, typer.Argument(metavar="SOURCE", help=f"Synonym groups (.json). {SOURCE}")]
VERIFY = "Keep pairs with the same meaning in the training texts, by a local encoder: a folder, or minilm."
KEEP = "Keep pairs with different class frequencies (nominal false discovery rate: 5 %)."


@synonyms.command(
    **command_help(
        "synonyms build wordnet --out synonyms.jsonl",
        "synonyms build wordnet counter_fitted.parquet --data reviews.csv --typos --out groups.json",
        "synonyms build everyday --data sst2 --verify minilm --out verified.jsonl",
    )
)
@common_options("device", "batch_size", "seed", "verbose")
def build(
    out_file: Annotated[
        Path, file_option("--out", "-o", metavar="FILE", help="Table (.jsonl) or groups (.json) to write.")
    ],
    sources: Annotated[list[str] | None, typer.Argument(metavar="[SOURCE]...", help=SOURCE)] = None,
    data: Annotated[str | None, data_option("--data", metavar="DATA", help=f"Training texts. {shared.DATA}")] = None,
    text: shared.TextColumn = None,
    label: shared.LabelColumn = "label",
    drop_empty: shared.DropEmpty = False,
    rule: Annotated[str, model_option("--rule", help="Rule of groups: star, half, clique or linked.")] = "star",
    inflection: Annotated[
        bool, model_option("--inflection", help="Group the inflected forms of each word (needs WordNet and --data).")
    ] = False,
    typos: Annotated[
        bool, model_option("--typos", help="Read unknown words as the word that they are a typo of.")
    ] = False,
    keep_suspicious: Annotated[bool, model_option("--keep-suspicious", help=KEEP)] = False,
    verify: Annotated[str | None, model_option("--verify", metavar="ENCODER", help=VERIFY)] = None,
    replace: shared.Replace = False,
    *,
    common: Common,
) -> None:
    """Merge synonym sources into one table, or into groups."""
    from steadygaze.cli.verified_build import verify_sources
    from steadygaze.core.output_paths import write_output
    from steadygaze.data.class_frequencies import without_pairs
    from steadygaze.data.substitutable_pairs import substitutable_pairs
    from steadygaze.data.synonym_tables import read_tables, table_text

    _check_build(out_file, sources, data, inflection or typos)
    corpus = None if data is None else _corpus(data, text, label, drop_empty, common)
    frequencies = None if corpus is None else _frequencies(corpus)
    console = stderr_console(common)
    verified = None if verify is None else verify_sources(out_file, sources or [], corpus, verify, console)
    words = () if frequencies is None else frequencies.counts.keys()
    table = read_tables(sources or [], words) if verified is None else verified.table
    grouping = _grouping(table.rows, frequencies, rule, inflection, typos, keep_suspicious)
    if verified is not None:
        grouping = dataclasses.replace(grouping, suspicious=verified.suspicious(grouping.suspicious))
    rows = table.rows if keep_suspicious else without_pairs(table.rows, grouping.suspicious)
    text_of = table_text if verified is None else verified.text
    content = grouping.groups.to_json() if out_file.suffix == ".json" else text_of(rows)
    write_output(out_file, content, replace=replace)
    result = {"written": str(out_file), **_counts(rows, grouping), "left_out": table.left_out}
    if frequencies is not None and sources:
        result["coverage"] = _coverage(rows if verified else substitutable_pairs(rows), frequencies)
    if verified is not None:
        result["verified"] = verified.summary(rows)
    if common.json:
        print_json(result)
        return
    show(f"written: {out_file}")
    show(f"table: {result['pairs']:,} pairs of {result['words']:,} words")
    show(f"groups ({rule}): {result['groups']:,} groups of {result['grouped_words']:,} words")
    if typos:
        show(f"typos: {result['spellings']:,} words are recognized by their typos")
    _show_left_out(table.left_out)
    _show_check(result.get("coverage"), grouping.suspicious, frequencies, "kept" if keep_suspicious else "left out")
    for line in () if verified is None else verified.lines(rows):
        show(line)
    _show_next(out_file, verified is not None, common)


def _counts(rows: Mapping[str, list[str]], grouping: "Grouping") -> dict[str, Any]:
    """Numbers of words, pairs and groups, and the suspicious pairs."""
    return {
        "words": len(rows),
        "pairs": sum(map(len, rows.values())),
        "groups": len(grouping.groups.groups),
        "grouped_words": len(grouping.groups.representatives),
        "spellings": len(grouping.groups.spellings),
        "suspicious": [asdict(pair) for pair in grouping.suspicious],
    }


def _show_next(out_file: Path, verified: bool, common: Common) -> None:
    train, audit = (
        f"train DATA --synonym-groups {out_file} --out model/",
        f"audit MODEL --data DATA --synonyms {out_file}",
    )
    print_line(stderr_console(common), f"next:  steadygaze {audit if verified else train}")


def _check_build(out_file: Path, sources: list[str] | None, data: str | None, forms: bool) -> None:
    from steadygaze.core.errors import UserError

    if out_file.suffix not in (".json", ".jsonl"):
        raise UserError(f"{out_file} must end in .jsonl for a table, or in .json for groups")
    if not sources and not forms:
        raise UserError("pass a synonym source, --inflection or --typos")
    if forms and (data is None or out_file.suffix != ".json"):
        raise UserError("--inflection and --typos need training texts (--data) and write groups (--out FILE.json)")


def _grouping(
    rows: Mapping[str, list[str]],
    frequencies: "ClassFrequencies | None",
    rule: str,
    inflection: bool,
    typos: bool,
    keep_suspicious: bool,
) -> "Grouping":
    """The groups of synonyms, inflected forms and typos."""
    from dataclasses import replace

    from steadygaze.data import synonym_grouping
    from steadygaze.data.synonym_formats import wordnet_folder

    keep: dict[str, Any] = {"keep_suspicious": keep_suspicious}
    if frequencies is None or not inflection:
        grouping = synonym_grouping.group_synonyms(rows, frequencies, rule, **keep)  # type: ignore[arg-type]
    else:
        grouping = synonym_grouping.group_inflections(frequencies, wordnet_folder(), **keep)
        if rows:
            grouping = synonym_grouping.group_inflected_synonyms(rows, grouping, frequencies, rule, **keep)  # type: ignore[arg-type]
    if frequencies is None or not typos:
        return grouping
    spellings = synonym_grouping.words_by_frequency(frequencies)
    return replace(grouping, groups=replace(grouping.groups, spellings=spellings))


@synonyms.command(
    "show",
    **command_help(
        "synonyms show wordnet film", "synonyms show synonyms.jsonl good bad", "synonyms show groups.json film --json"
    ),
)
@common_options("data_dir", "device", "batch_size", "seed", "verbose")
def show_words(
    source: Source,
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="Words to show.")],
    *,
    common: Common,
) -> None:
    """Show the synonyms and the group of words."""
    from steadygaze.data.synonym_grouping import group_synonyms
    from steadygaze.data.synonym_groups import fold_word, read_group_file
    from steadygaze.data.synonym_tables import read_tables

    groups = read_group_file(Path(source))
    rows: Mapping[str, list[str]] = {}
    if groups is None:
        rows = read_tables([source]).rows
        groups = group_synonyms(rows).groups
    result = [
        {"word": word, "synonyms": rows.get(fold_word(word) or "", []), "group": list(groups.members(word))}
        for word in words
    ]
    if common.json:
        print_json(result)
        return
    for name, row in zip(words, result, strict=True):
        if rows:
            named_by = [word for word, synonyms in rows.items() if fold_word(name) in synonyms]
            without = f"no row; a synonym of {', '.join(named_by)}" if named_by else "no synonyms"
            show(f"{row['word']}: {', '.join(row['synonyms']) or without}")
        alone = len(row["group"]) < 2
        show(f"{row['word']}: {'in no group' if alone else 'group of ' + ', '.join(row['group'])}")


@synonyms.command(
    **command_help(
        "synonyms check synonyms.jsonl --data reviews.csv --label stars",
        "synonyms check groups.json --data sst2",
        "synonyms check wordnet --data sst2 --json",
    )
)
@common_options("device", "batch_size", "seed", "verbose")
def check(
    source: Source,
    data: shared.DataOption,
    text: shared.TextColumn = None,
    label: shared.LabelColumn = "label",
    drop_empty: shared.DropEmpty = False,
    *,
    common: Common,
) -> None:
    """Report the coverage of a corpus, and pairs that may be antonyms (nominal false discovery rate: 5 %)."""
    from steadygaze.data.class_frequencies import suspicious_pairs, suspicious_pairs_in_groups
    from steadygaze.data.substitutable_pairs import substitutable_pairs
    from steadygaze.data.synonym_groups import read_group_file
    from steadygaze.data.synonym_tables import clean_table, read_tables

    frequencies = _frequencies(_corpus(data, text, label, drop_empty, common))
    groups = read_group_file(Path(source))
    if groups is None:
        table = read_tables([source], frequencies.counts.keys())
        pairs = substitutable_pairs(table.rows)
        suspicious = suspicious_pairs(pairs, frequencies)
    else:
        table = clean_table({group[0]: group[1:] for group in groups.groups})
        pairs = table.rows
        suspicious = suspicious_pairs_in_groups(groups.groups, frequencies)
    coverage = _coverage(pairs, frequencies)
    if common.json:
        rows = [asdict(pair) for pair in suspicious]
        print_json({"coverage": coverage, "left_out": table.left_out, "suspicious": rows})
        return
    _show_left_out(table.left_out)
    _show_check(coverage, suspicious, frequencies, "training leaves them out" if groups is None else "in the groups")


def _corpus(data: str, text: list[str] | None, label: str, drop_empty: bool, common: Common) -> "Corpus":
    from steadygaze.data.corpora import load_corpus

    columns = tuple(text or ("text",))
    return load_corpus(data, text=columns, label=label, data_dir=common.data_dir, drop_empty=drop_empty)


def _frequencies(corpus: "Corpus") -> "ClassFrequencies":
    """Class frequencies of the training texts of a corpus."""
    from steadygaze.data.class_frequencies import class_frequencies

    rows = [(part, item.label) for item in corpus.training for part in (item.text, item.question) if part is not None]
    return class_frequencies([part for part, _ in rows], [name for _, name in rows])


def _coverage(rows: Mapping[str, list[str]], frequencies: "ClassFrequencies") -> dict[str, Any]:
    from steadygaze.core.errors import UserError
    from steadygaze.data.synonym_tables import SynonymTable

    coverage = SynonymTable(dict(rows)).coverage(frequencies.total)
    if not coverage.words_with_synonym:
        raise UserError("no word of the corpus has a synonym in the table: check the language and the text column")
    return {**asdict(coverage), "share": coverage.share}


def _show_left_out(left_out: Mapping[str, int]) -> None:
    if left_out:
        show("left out: " + ", ".join(f"{number:,} pairs ({reason})" for reason, number in left_out.items()))


def _show_check(
    coverage: Mapping[str, Any] | None,
    suspicious: list["SuspiciousPair"],
    frequencies: "ClassFrequencies | None",
    treatment: str,
) -> None:
    """Coverage, and one line per suspicious pair."""
    if coverage is None or frequencies is None:
        return
    show(
        f"coverage: {percent(coverage['share'], 1)} of the words in the texts, "
        f"{coverage['words_with_synonym']:,} of {coverage['words']:,} different words"
    )
    show(f"suspicious pairs: {len(suspicious):,}" + (f" ({treatment})" if suspicious else ""))
    for pair in suspicious:
        counts = [
            ", ".join(f"{name} {n:,}" for name, n in zip(frequencies.classes, row, strict=True)) for row in pair.counts
        ]
        show(f"  {pair.word} ({counts[0]}) and {pair.synonym} ({counts[1]}): p = {pair.p_value:.2g}")
