r"""Published texts as they are stored -> as people wrote them.  Each function takes a text and returns one.

    imdb        `<br />` for line breaks
    yelp        `\n`, `\""` and `\u00e9` spelled out; some copies still wear the quotes of a csv cell
    ag_news     entities, most without their ampersand (`#39;`), and a backslash where a line was broken
    newsgroups  headers and the names of the groups, both of which give the label away

HTML tags that were typed or unescaped stay: they are part of the published text.
"""

import html
import json
import re

_TAGGED_BREAKS = re.compile(r"<br\s*/?>(?:\s*<br\s*/?>)*")  # begins with a literal, which is searched for faster

# yelp: inside the quotes of a cell, every other quote is escaped
_CELL = re.compile(r'"((?:[^"\\]|\\ ?""|\\.)*)"', re.DOTALL)
_SPELLED = re.compile(r'\\n|\\ ?""?|(?:\\u[0-9a-fA-F]{4})+|\\')

# ag_news: every "&" had become a space; a bare number must not be a rank, as in "the #1;"
_APART = re.compile(r" (?=&?#0?39;(?:s|t|re|ve|ll|d|m)\b)")
_ENTITY = re.compile(r"&?(#0?3\d|#\d{3,4}|\b(?:quot|amp|lt|gt|apos|nbsp|hellip));")
_BACKSLASHES = re.compile(r"\\+")

# newsgroups: a blank line within a header leaves fields, or the ids of a folded "References:", on top of the body
_MESSAGE_ID = r"<\S+@\S+>(?: +<\S+@\S+>)*"
_FIELD = (
    r"(?:From|Subject|Newsgroups|Lines|Organi[sz]ation|Distribution|Keywords|Summary|Expires|Sender|Originator|"
    r"Reply-To|In-Reply-To|Followup-To|References|Message-ID|Article-I\.D\.|Date|Path|To|Cc|Bcc|Archive-name|"
    r"Disclaimer|News-Software|NNTP-[\w-]+|X-[\w-]+):.*"
)
_HEADER = re.compile(r"^(From|Subject):", re.MULTILINE)
_MORE_HEADER = re.compile(
    rf"\s*(?:{_FIELD}|{_MESSAGE_ID})(?:\n(?:{_FIELD}|{_MESSAGE_ID}|[ \t].*))*(?:\n\n|\s*\Z)", re.I
)
_GROUP = re.compile(r"\b(?:rec\.sports?(?:\.[\w*-]+)*|r\.s(?:\.[\w*-]+)+|rs(?:bb?|h)\b)", re.I)


def imdb(text: str) -> str:
    """A run of `<br />` is a line break; the few other words in angle brackets stay as they were typed."""
    return _TAGGED_BREAKS.sub("\n", text)


def yelp(text: str) -> str:
    """Escapes undone.  Quotes round the whole text go if no other quote in it is bare."""
    cell = _CELL.fullmatch(text)
    return _SPELLED.sub(lambda found: _spelled(found[0]), cell[1] if cell else text)


def _spelled(escape: str) -> str:
    if escape.startswith("\\u"):
        return str(json.loads(f'"{escape}"')).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return {"\\n": "\n", "\\": " "}.get(escape, '"')


def ag_news(text: str) -> str:
    r"""Entities become characters, `country #39;s` becomes one word, `\$` a dollar, any other backslash a space."""
    text = _ENTITY.sub(lambda found: html.unescape(f"&{found[1]};"), _APART.sub("", text))
    return _BACKSLASHES.sub(" ", text.replace("\\$", "$"))


def newsgroups(text: str) -> str:
    """A posting without its header, blank lines in it or not, and without names of groups.  Some copies have none."""
    header, _, body = text.partition("\n\n")
    if not _HEADER.search(header):
        body = text
    while more := _MORE_HEADER.match(body):
        body = body[more.end() :]
    return _GROUP.sub("", body).strip()
