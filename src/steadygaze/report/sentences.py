"""All sentences about findings: one template for each code of a note.  Rendered last; no program reads them.

A template has fields of its note, in these formats beside those of Python:

    {value:number}     three decimals
    {limit:limit}      at most three significant digits
    {share:percent}    a percentage
    {n:texts}          1 text, 2,000 texts; any noun
    {finding:note}     the sentence of another note
    {command:command}  the words of a command, as code
"""

import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from string import Formatter
from typing import Any

from steadygaze.core.capabilities import MISSING_CAPABILITY
from steadygaze.core.errors import one_line
from steadygaze.core.rounding import percent, significant
from steadygaze.results.advice import FEW_TEXTS, Advice, AdviceKind
from steadygaze.results.evaluation import overlap_sentence
from steadygaze.results.formatting import ICONS, count_text, listed, measure_noun, number, short_number
from steadygaze.results.note import Note, NoteCode
from steadygaze.results.policy import Op
from steadygaze.results.recommendation import REQUIRED, Choice
from steadygaze.results.row import Answer, Caveat, Row, Verdict

Fields = Mapping[str, Any]
Template = str | Callable[[Fields], str]
PASS_TABLE = "pass a synonym table as synonyms= (--synonyms)"
PASS_TRAIN = "pass the training texts and labels as train= (--train)"
NO_REASONS = "The choice of words carries the label, not their meaning: do not read them as reasons."
APPROXIMATOR = "the explainer's own approximator"


class _Formatter(Formatter):
    """The formats of the templates."""

    def format_field(self, value: Any, format_spec: str) -> str:
        formats: dict[str, Callable[[Any], str]] = {
            "number": number,
            "limit": short_number,
            "percent": percent,
            "percents": lambda share: percent(share, 1),
            "text": lambda count: count_text(count, "text"),
            "note": lambda finding: sentence(Note(**finding)),
            "command": _code,
        }
        if format_spec in formats:
            return formats[format_spec](value)
        return format(value, format_spec) if isinstance(value, int | float | str) else str(value)


def _fill(template: str, fields: Fields) -> str:
    """The template with its fields; a `UserError` of a report names what is missing."""
    return _Formatter().vformat(template, (), fields)


def sentence(finding: Note | Advice) -> str:
    """A note or an advice in words."""
    if isinstance(finding, Note):
        template, fields = TEMPLATES[NoteCode(finding.code)], finding.fields
    else:
        template = ADVICE_TEMPLATES[AdviceKind(finding.kind)]
        fields = {"goal": finding.goal, "command": finding.command, **finding.numbers}
    text = _fill(template, fields) if isinstance(template, str) else template(fields)
    return f"for a yes, {text}" if fields.get("for_yes") else text


def paragraph(findings: Sequence[Note | Advice]) -> str:
    """Notes or advice as one sentence; empty without any."""
    return f"{_capital(_joined(findings))}." if findings else ""


def _joined(findings: Sequence[Note | Advice]) -> str:
    return "; ".join(map(sentence, findings))


def reason(verdict: Verdict) -> str:
    """The reasons of a verdict, its caveats and its advice."""
    advice = f"Advice: {_joined(verdict.advice)}." if verdict.advice else ""
    return "  ".join(filter(None, (verdict.why, verdict.caveat, advice)))


NOT_APPLICABLE = "not applicable, because {}"


def row_note(row: Row) -> str:
    """Why a score is not applicable, or else its remarks."""
    if row.absent is not None:
        return NOT_APPLICABLE.format(sentence(row.absent))
    return "; ".join(map(sentence, row.notes))


def _capital(text: str) -> str:
    """The text with a capital letter at the start."""
    return f"{text[:1].upper()}{text[1:]}"


def flagged(note: Note) -> str:
    """A note of a report with the icon of its answer, or the sign of a warning.

    >>> flagged(Note(NoteCode.TRAINING_SPLIT))[:17]
    '! These texts are'
    """
    return sentence(note) if "answer" in note.fields else f"! {sentence(note)}"


def _code(words: Sequence[str]) -> str:
    return f"`{shlex.join(words).replace('`', '')}`"


def _few_texts_of_a_class(fields: Fields) -> str:
    """The classes with most texts, and their number of texts: 76 of 'happy', 4 of 'upset'."""
    parts = [f"{count:,} of {one_line(name, 24)!r}" for name, count in fields["classes"]]
    least, listed = fields["least"], ", ".join([*parts, *(["…"] if fields["more"] else [])])
    return f"the position leak needs two classes that are predicted for at least {least} distinct texts, found {listed}"


def _undefined(fields: Fields) -> str:
    notes = "; ".join(sentence(Note(**item)) for item in fields["notes"])
    return f"the measure is not defined for any text{notes and f' ({notes})'}"


INTERLOCKING_ANSWERS: dict[Answer, str] = {
    "yes": "it does not interlock",
    "undecided": "interlocking is undecided",
    "no": "it interlocks",
}
TRAINING_NAMES = {
    "biased": "trained with a token in front that often matches the label",
    "skewed": "trained with a predictor that was first trained on first sentences alone",
}
ELSEWHERE = {
    "rationale": "texts whose rationale is elsewhere",
    "selection": "texts for which the audited model selects another",
}


def _interlocking(fields: Fields) -> str:
    head = f"{TRAINING_NAMES[fields['training']]}, {INTERLOCKING_ANSWERS[fields['answer']]}"
    texts, n = ELSEWHERE[fields["elsewhere"]], fields["texts"]
    guessed = percent(fields["guessed"])
    accuracy = f"its accuracy is {_estimate(fields['accuracy'])}, the share of the most frequent label {guessed}"
    if fields["share"] is None:
        return f"{head}: {n} of {fields['least']} required {texts}; {accuracy}"
    share = f"it selects the first sentence of {_estimate(fields['share'])} of the {n:,} {texts}"
    doubt = f", {'but' if fields['decision'] == 'yes' else 'and'} it may have learned nothing: "
    return f"{head}: {share}{'; ' if fields['learned'] else doubt}{accuracy}"


def _estimate(value_and_interval: tuple[float, float, float]) -> str:
    value, low, high = map(percent, value_and_interval)
    return f"{value} ({low} to {high})"


def _interlocking_answer(fields: Fields) -> str:
    answer: Answer = fields["answer"]
    return f"{ICONS[answer]} {_capital(sentence(Note(**fields['finding'])))}."


def _below_baseline(fields: Fields) -> str:
    """A model that is worse than the most frequent label: the labels may be mapped to wrong classes."""
    share = f"Accuracy {fields['accuracy']:.3f} is below {fields['baseline']:.3f}, the share of the most frequent label"
    option = ""
    if fields["exchanged"] is not None:
        names = ",".join(map(str, fields["exchanged"]))
        option = f"; with --classes {names:.200} it would be {fields['exchanged_accuracy']:.3f}"
    if not (mapping := fields["mapping"]):
        return f"{share}{option}."
    listed = ", ".join(f"label {label:.40} is class {name[:40]!r}" for label, name in mapping)
    ellipsis = " …" if fields["more"] else ""
    return f"{share}: the labels may be mapped to wrong classes; check --classes ({listed}{ellipsis}){option}."


def _substitutes(fields: Fields) -> str:
    counts = _fill(
        "Words with a substitute in {texts:text}: {without:,} have none, {few:,} one or two, {many:,} three or more.",
        fields,
    )
    if fields["verified"]:
        return f"{counts}  The synonym table is verified."
    return (
        f"{counts}  The synonym table is unverified: a substitution may change the meaning, and then an explanation "
        "should change.  `steadygaze synonyms build --verify` writes a verified table."
    )


def _second_text(fields: Fields) -> str:
    first, second = map(repr, fields["columns"] or ("", ""))
    if not fields["columns"]:
        first, second = "the first text of a pair", "the second text"
    return f"The audit erases and perturbs the words of {first} alone; the weights of {second} are not rated."


def _network(fields: Fields) -> str:
    """The network that was trained on the selections: a rationalizer's, or that of an explainer."""
    if fields["network"] == "predictor":
        return "the model's own predictor"
    return f"{fields['explainer']}'s own approximator" if "explainer" in fields else APPROXIMATOR


def _label_leakage(fields: Fields) -> str:
    target = "the label" if fields["network"] == "predictor" else "the predicted class"
    box = f" and {percent(fields['black_box_gap'])} more often than the black box" if "black_box_gap" in fields else ""
    random = f", {percent(fields['random_words'])} from random words" if "random_words" in fields else ""
    advice = f"  Fit again with --mitigation {fields['mitigation']}." if "mitigation" in fields else ""
    return (
        f"Label leakage: from the selected words {_network(fields)} recovers {target} {percent(fields['gap'])} more "
        f"often than an independent reader{box}, with equal class weights (accuracy of the reader: "
        f"{percent(fields['reader'])}{random}).  {NO_REASONS}{advice}"
    )


def _arbitrary_selections(fields: Fields) -> str:
    named = ", ".join(f"{one_line(label, 40)} ({count:,} of {n:,} texts)" for label, count, n in fields["classes"])
    them = "this class" if len(fields["classes"]) == 1 else "these classes"
    return (
        f"For {named:.300} the selection is arbitrary: {_network(fields)} predicts {them} from nearly any selection of "
        f"these texts, and an independent reader does not recover the class from the selected words.  They are not "
        f"reasons for {them}."
    )


PLACEHOLDER = re.compile(r"\{(value|size|more|better|noun)\}")


def _score(fields: Fields) -> str:
    """A score that decides a verdict.  A user may have written its sentence, so it is not used as a format string."""
    value: float = fields["value"]
    more, better = ("more", "better") if value >= 0 else ("less", "worse")
    texts = ("less than 0.001" if 0 < score < 0.001 else number(score) for score in (value, abs(value)))
    names = ("value", "size", "more", "better", "noun")
    words = dict(zip(names, (*texts, more, better, measure_noun(fields["explainer"])), strict=True))
    text = PLACEHOLDER.sub(lambda match: words[match[1]], fields["sentence"])
    remarks = [sentence(Note(**item)) for item in fields["notes"]]
    return f"{text}{''.join(f' ({remark})' for remark in remarks)}"


def _yes_needs(fields: Fields) -> str:
    label, absent = fields["label"], fields["absent"]
    missing = "missing" if absent is None else NOT_APPLICABLE.format(sentence(Note(**absent)))
    return f"a yes also needs the {label[:1].lower()}{label[1:]} ({fields['measure']}), which is {missing}"


def _compare_with_constant(fields: Fields) -> str:
    """For a model whose prediction hardly depends on the words."""
    compare = f"compare the model with the most frequent label: {_code(fields['command'])}"
    if fields["pairs"]:
        return f"{compare}; if it is better, its prediction depends on the second text, whose words are not erased here"
    if fields["trained"]:
        return f"{compare}; then train it for more epochs, with --balanced or with --vectors"
    return f"{compare}; if it is not better, check the order of --classes and the language of the texts"


def _more_of_a_class(fields: Fields) -> str:
    goal = OF_EACH_CLASS.format(least=fields["least"])
    if fields["texts"] is None:
        return f"audit more texts: {goal}"
    return f"audit {fields['about']} {fields['texts']:,} texts, for {goal}: {_code(fields['command'])}"


def _not_more_texts(fields: Fields) -> str:
    label, good, bad = fields["label"], fields["good"], fields["bad"]
    between = f"lies between the thresholds of yes and no, {short_number(good)} and {{}}, or close to one of them"
    beyond = f"lies beyond the threshold of yes, {short_number(good)}, or close to it"
    place = beyond if bad is None or math.isinf(bad) else between.format(short_number(bad))
    return (
        f"more texts are unlikely to decide it, because one score {place}: {label[:1].lower()}{label[1:]}, "
        f"{number(fields['value'])}"
    )


NEXT = "{second}, the next best explainer,"
CHOICES: dict[Choice, str] = {
    "none-acceptable": "Use none of these explainers: the answer is “no” for {decisive} for each of them.",
    "only-acceptable": "Use {best}: for all other explainers the answer is “no” for {decisive}.",
    "fewer-no": "Use {best}: {best_no} of its answers (without robustness) are “no”; "
    f"{NEXT} has {{second_no}} ({{decisive}}).",
    "more-yes": "Use {best}: {best_yes} of its answers (without robustness) are “yes”; "
    f"{NEXT} has {{second_yes}} (not for {{decisive}}).",
    "order": f"Use {{best}}: {NEXT} has as many answers “yes” and “no”, but a worse one for {{decisive}}.",
    "first-named": "The answers do not tell {best} and {second} apart: use {best}, which was named earlier.",
}


def _recommendation(fields: Fields) -> str:
    """Which of several explainers to use; then what its answers do not show."""
    best, second = fields["ranking"][:2]
    names = {name: fields["nouns"].get(name, name) for name in (REQUIRED, *fields["decisive"], *best["no"])}
    numbers = {
        f"{key}_{name}": len(of[name]) for key, of in (("best", best), ("second", second)) for name in ("yes", "no")
    }
    explainers = {key: one_line(of["explainer"], 60) for key, of in (("best", best), ("second", second))}
    decisive = listed([names[name] for name in fields["decisive"]]) if fields["decisive"] else ""
    sentences = [CHOICES[fields["choice"]].format(decisive=decisive, **numbers, **explainers)]
    if fields["explainer"] is None:
        return sentences[0]
    if best["no"]:
        sentences.append(f"Do not rely on it for {listed([names[name] for name in best['no']])}.")
    if REQUIRED not in best["yes"]:
        sentences.append(f"These texts do not show its {names[REQUIRED]}.")
    return " ".join(sentences)


OP_NAMES: dict[Op, str] = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than", "==": "exactly"}


def _because(text: str, why: str) -> str:
    return f"{text}: {why}" if why else f"{text}."


def _required_measure(fields: Fields) -> str:
    measure, text = fields["measure"], f"{fields['measure']} was required and was not measured"
    if fields["explainers"]:
        of = fields["explainer"] or "this explanation"
        text = f"{measure} was not measured of {of}, only of {', '.join(fields['explainers'])}"
    elif fields["related"]:
        text += f"; there are {', '.join(fields['related'])}"
    return _because(text, fields["why"])


def _required_score(fields: Fields) -> str:
    name = fields["measure"] + (f" of {fields['explainer']}" if fields["explainer"] is not None else "")
    limit, ends = f"{OP_NAMES[fields['op']]} {short_number(fields['limit'])} was required", fields["interval"]
    if fields["value"] is None:
        absent = fields["absent"]
        state = "not defined" if absent is None else NOT_APPLICABLE.format(sentence(Note(**absent)))
        return _because(f"{name}: {limit}, and it is {state}", fields["why"])
    value = f"{name} is {_exact(fields['value'], fields['limit'])}"
    if not fields["whole"]:
        return _because(f"{value}; {limit}", fields["why"])
    if ends is None:
        return _because(f"{value} and has no interval; {limit} of the whole interval", fields["why"])
    low, high = (_exact(math.nan if end is None else end, fields["limit"]) for end in ends)
    return _because(f"{value}, its 95 % interval {low} to {high}; {limit} of the whole interval", fields["why"])


def _exact(value: float, limit: float) -> str:
    """Use enough digits to show on which side of the limit a value is.

    >>> _exact(0.0500004, 0.05), _exact(0.061234, 0.05)
    ('0.0500004', '0.0612')
    """
    texts = (significant(float(value), digits) for digits in range(3, 18))
    return next((text for text in texts if float(text) != limit or value == limit), repr(value)).replace("-", "−")


def _required_answer(fields: Fields) -> str:
    answers = " or ".join(repr(answer) for answer in fields["answers"])
    reasons = _capital(_joined([Note(**reason) for reason in fields["reasons"]]))
    text = f"{fields['title']}: the answer is {fields['answer']!r}; {answers} was required ({reasons})"
    return _because(text, fields["why"])


OF_EACH_CLASS = "at least {least} texts of each of two predicted classes"
TEXTS_NEEDED = "a verdict needs at least {least}"
TRAIN = "train a classifier with {}: {{command:command}}"
MORE_TEXTS = "audit about {texts:,} texts instead of {read:,}"
ADVICE_TEMPLATES: dict[AdviceKind, Template] = {
    AdviceKind.OTHER_EXPLAINER: lambda fields: (
        (f"the technique {fields['technique']} did not suffice: " if "technique" in fields else "")
        + f"audit another explainer of this model: {_code(fields['command'])}"
    ),
    AdviceKind.TRAIN: TRAIN.format("{goal}"),
    AdviceKind.STABLE_ATTENTION: TRAIN.format("stable attention"),
    AdviceKind.MITIGATION: f"fit the explainer again with a mitigation, {FEW_TEXTS}: {{command:command}}",
    AdviceKind.AUDIT_FEWEST: lambda fields: (
        f"audit more texts: {TEXTS_NEEDED.format(least=fields['least'])}"
        + (f": {_code(fields['command'])}" if fields["command"] else "")
    ),
    AdviceKind.BUILD_SYNONYM_TABLE: "build a synonym table, here of English words: {command:command} (after "
    "`pip install 'steadygaze[wordnet]'`)",
    AdviceKind.COMPARE_EXPLAINERS: "compare the explainers of this audit, and use one with better scores",
    AdviceKind.COMPARE_WITH_CONSTANT: _compare_with_constant,
    AdviceKind.DECIDE_FIRST: lambda fields: f"first decide {fields['title'][:1].lower()}{fields['title'][1:]}",
    AdviceKind.IMPROVE_MODEL: "first train a model that predicts better than a guess: more or fewer --epochs, another "
    "learning rate (--set), --balanced or --vectors",
    AdviceKind.LABEL_MORE_TEXTS: lambda fields: (
        _fill(f"{MORE_TEXTS}; the data have {{available:,}}: label more texts", fields)
        + (", or hold out more with train --test-share" if fields["trained"] else "")
    ),
    AdviceKind.MORE_OF_A_CLASS: _more_of_a_class,
    AdviceKind.MORE_TEXTS: f"{MORE_TEXTS}: {{command:command}}",
    AdviceKind.NOT_MORE_TEXTS: _not_more_texts,
    AdviceKind.OTHER_RATIONALIZER: TRAIN.format("another rationalizer"),
    AdviceKind.PASS_SYNONYM_TABLE: lambda fields: (
        f"then pass it{'' if fields['known'] else ' as synonyms= or'}: {_code(fields['command'])}"
    ),
    AdviceKind.TOO_FEW_OF_A_CLASS: f"these data are too few to decide it: it needs {OF_EACH_CLASS}",
    AdviceKind.TOO_FEW_TEXTS: f"these data are too few: {TEXTS_NEEDED}, and the data have {{available:,}}",
    AdviceKind.TOO_FEW_TO_DECIDE: "these data are too few to decide it: it needs about {texts:,} texts, and the data "
    "have {available:,}",
}
"""One template for each kind of advice."""
CAVEATS: dict[Caveat, str] = {
    "erasure-judged-by-erasure": "Erasure judged by erasure: explainer and measure both delete words, so the score "
    "favors the explainer.",
}
"""Limits of what a score shows."""
ONE_LABEL = "The black box predicts the same label for all {}: the scores are not informative"
TEMPLATES: dict[NoteCode, Template] = {
    NoteCode.TEXT: "{text}",
    # Reasons for a missing score
    NoteCode.ATTENTION_NOT_AUDITED: "the attention is not among the audited explainers",
    NoteCode.EMPTY_SELECTIONS: "the selection is empty in every text",
    NoteCode.EXPLAINER_UNSUPPORTED: "{message}",
    NoteCode.FEW_TEXTS_OF_A_CLASS: _few_texts_of_a_class,
    NoteCode.FEW_TEXTS_TO_READ: "a reader of the explanations needs two classes that are predicted for at "
    "least {least} distinct texts",
    NoteCode.IN_CELL: "{reason:note} ({technique}, seed {seed})",
    NoteCode.LACKS_CAPABILITY: lambda fields: MISSING_CAPABILITY[fields["capability"]],
    NoteCode.NO_BLANK_TOKENS: "the tokens without content are unknown",
    NoteCode.NO_EFFECT_OF_GRADIENT: "the gradient of the label is 0 in the generator's embeddings: this step cannot "
    "change the selection",
    NoteCode.NO_INDEPENDENT_READER: "no independent reader was trained for the selection",
    NoteCode.NO_LABELS: "the texts have no labels",
    NoteCode.NO_OTHER_SEEDS: "only one model was passed: pass models trained with other seeds as other_seeds= "
    "(--other-seed MODEL)",
    NoteCode.NO_OTHER_TEXTS: "only one text was passed: words of other texts cannot replace its words",
    NoteCode.NO_PARAMETERS: "the model is a black box: its parameters cannot be randomized",
    NoteCode.NO_RATIONALES: "these texts have no human rationales: pass them as rationales= (--rationales COLUMN)",
    NoteCode.NO_SHORT_TEXTS: "no text has {fewest} to {most} words: longer ones have too many subsets of words",
    NoteCode.NO_SENTENCE_ENDS: "the sentence boundaries are unknown, and no token of the vocabulary ends a sentence",
    NoteCode.NO_SENTENCES: "the sentence boundaries are unknown",
    NoteCode.NO_SHORTCUT: "{message}",
    NoteCode.NO_SYNONYM_TABLE: f"there is no synonym table: {PASS_TABLE}",
    NoteCode.NO_TEXT_OF_TWO_WORDS: "no text has two words",
    NoteCode.NO_TRAINING_TEXTS: lambda fields: (
        f"it {'retrains the model' if fields['models'] == 1 else 'trains two models'}: {PASS_TRAIN}"
    ),
    NoteCode.NOT_A_RATIONALIZER: "the model is not a rationalizer",
    NoteCode.NOT_A_TEXT_CLASSIFIER: "only a TextClassifier can be retrained",
    NoteCode.NOT_MEASURED: "it was not measured",
    NoteCode.NOT_THOROUGH: "it runs only in a thorough audit: it needs hundreds of forward passes per text",
    NoteCode.NOTHING_MATTERS: "the prediction hardly depends on the words: the best known order scores {best:number}, "
    "shuffled weights {floor:number}",
    NoteCode.NOTHING_SELECTS: "no audited explanation selects words",
    NoteCode.ONLY_RANDOM_EXPLAINER: "the only explainer is the random baseline",
    NoteCode.READS_SELECTION: "the model reads only the selected words: the gradient of the others is 0",
    NoteCode.READS_WORDS: lambda fields: (
        f"{fields['explainer']} reads words, not embeddings"
        if "explainer" in fields
        else "the explainer reads words, not embeddings: perturbed embeddings do not change it"
    ),
    NoteCode.RETRAINING_FAILED: "the retraining failed: {message}",
    NoteCode.SAME_SEED: "{model} has the same seed, {seed}, but other weights: it was trained differently",
    NoteCode.SELECTS_WITHOUT_ATTENTION: "the model selects words and has no attention",
    NoteCode.SELECTS_WORDS: "the model selects words, not sentences",
    NoteCode.TRAINED_DIFFERENTLY: "{model} was trained differently ({name}: {other}, here {here})",
    NoteCode.UNDEFINED: _undefined,
    # Remarks about a score
    NoteCode.CHANCE_LEVEL: "chance level {value:number}, for a random choice or order of words",
    NoteCode.BETWEEN: "{own:number}, between {floor:number} for shuffled weights and {best:number} for the best known",
    NoteCode.COLLAPSED: "{message}",
    NoteCode.CONSTANT_BLACK_BOX: ONE_LABEL.format("texts"),
    NoteCode.CONTEXTUAL_DEFAULT_TOKENS: "the hidden state of a default token depends on the text: mass on it is not a "
    "shortcut in itself",
    NoteCode.EMPTY_WHEN_SHUFFLED: "{texts:,} texts have an empty selection once they are shuffled",
    NoteCode.EXACT_ENDS: "both ends are exact for {exact:,} of {texts:,} texts: all subsets of words were evaluated",
    NoteCode.EXACT_RATES: "exact for {exact:,} of {texts:,} texts: all sets of added words were evaluated",
    NoteCode.EXEMPT_TEXTS: "{value:number} with the texts that count as 0 because nearly any selection gives their "
    "class",
    NoteCode.FGM_ON_SAME_TEXTS: lambda fields: (
        f"of {count_text(fields['texts'], 'sampled text')}, where one step of FGM gives {number(fields['value'])}"
    ),
    NoteCode.GRADED_MARKS: "each word counts by its graded mark",
    NoteCode.INTERLOCKING: _interlocking,
    NoteCode.LEFT_OUT: "left out: {left:,} texts",
    NoteCode.LEFT_OUT_EMPTY: "left out: {left:,} of {texts:,} texts with an empty selection",
    NoteCode.LEFT_OUT_SHORT: "left out: {left:,} of {texts:,} texts, which have fewer than two words",
    NoteCode.LEFT_OUT_WITHOUT_SYNONYMS: "left out: {left:,} of {texts:,} texts, which have fewer than two words, or "
    f"too few with a synonym: {PASS_TABLE}",
    NoteCode.QUERY_NOISE: "the interval reaches {shift:number} further, because the answers of the model are noisy "
    "(see {measure}, of {n:text})",
    NoteCode.NOT_SAMPLED: lambda fields: (
        f"of {count_text(fields['texts'], 'text')}: {count_text(fields['others'], 'other text')} not sampled, or "
        "without a value"
    ),
    NoteCode.NOT_TRAINED_UNDER_MASKS: "of the model itself, not of a copy fine-tuned under random masks: texts "
    "with masked words may be unlike its training texts",
    NoteCode.ONE_LABEL_BLACK_BOX: ONE_LABEL.format("evaluation texts"),
    NoteCode.UNFLIPPED: "the label of {unflipped:,} of {texts:,} texts does not flip within {largest:g} at every size",
    # Reasons of a verdict
    NoteCode.AUDIT_INTERRUPTED: "the audit was interrupted",
    NoteCode.DEPENDS_ON: lambda fields: (
        f"the answer about {fields['title'][:1].lower()}{fields['title'][1:]} is {fields['answer']}"
    ),
    NoteCode.NO_DECIDING_MEASURE: "no deciding measure is available",
    NoteCode.SCORE: _score,
    NoteCode.YES_NEEDS: _yes_needs,
    # Unmet requirements
    NoteCode.REQUIRED_ANSWER: _required_answer,
    NoteCode.REQUIRED_MEASURE: _required_measure,
    NoteCode.REQUIRED_SCORE: _required_score,
    # Notes of a report
    NoteCode.ARBITRARY_SELECTIONS: _arbitrary_selections,
    NoteCode.BELOW_BASELINE: _below_baseline,
    NoteCode.BLACK_BOX_DISAGREES: "The black box does not predict the same from the selected words: it predicts the "
    "same class in {post_hoc:percent} of the texts, the explainer's approximator in {fidelity:percent}.  The words "
    "suffice for the approximator, not the black box.",
    NoteCode.CHOSEN_MEASURES: "This audit has only chosen measures, and no verdicts.",
    NoteCode.COVERAGE: "{message}.",
    NoteCode.EXPLAINER_NOT_AUDITED: "The explainer {explainer} was not audited: {message}.",
    NoteCode.INTERLOCKING_ANSWER: _interlocking_answer,
    NoteCode.INTERLOCKING_NOT_TESTED: "Interlocking was not tested, because {reason:note}: the training texts were not "
    "used.",
    NoteCode.INTERRUPTED: "This audit was interrupted: it has only the measures that were finished, and no verdicts.",
    NoteCode.LABEL_LEAKAGE: _label_leakage,
    NoteCode.LEAKAGE_NOT_TESTED: "Label leakage was not tested: training was too short for an independent reader.  "
    "Train for more epochs.",
    NoteCode.ONE_LABEL: f"{ONE_LABEL.format('evaluation texts')}; any selection scores the same.",
    NoteCode.READER_NOT_TRAINED: "No independent reader was trained with this explainer: fit it again to test for "
    "label leakage.",
    NoteCode.RECOMMENDATION: _recommendation,
    NoteCode.SECOND_TEXT: _second_text,
    NoteCode.SELECTION_LIKE_RANDOM: "The selection is not better than a random one: an independent reader is right in "
    "{reader:percent} of the texts from the selected words, and in {random_words:percent} from random words.",
    NoteCode.SUBSTITUTES: _substitutes,
    NoteCode.TRAINING_SPLIT: "These texts are a training split: if the model was trained on them, the scores are "
    "optimistic.",
    NoteCode.TRAINING_TEXTS: lambda fields: f"{overlap_sentence(fields['training'], fields['texts'])}.",
    NoteCode.UNSELECTED_PREDICTS_BETTER: "The unselected words predict better than the selected ones: the black box "
    "predicts the same class from the unselected words in {unselected:percent} of the texts, and from the selected "
    "words in {selected:percent}.  The selection is not the evidence, or only a part of it: compare a larger k.",
}
"""One template for each code."""
