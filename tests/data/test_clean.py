"""Published texts, cleaned: escapes undone, headers off, and nothing else touched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadygaze.data import published_corpora

HEADER = "From: a@b (A)\nSubject: hockey!\nLines: 2\n\n"
CLEANED = {
    published_corpora.imdb: [
        ("one.<br /><br />two <br/> <i>three</i>", "one.\ntwo \n <i>three</i>"),
        ("a <b>bold</b> film", "a <b>bold</b> film"),
    ],
    published_corpora.yelp: [
        (r"First.\n\nSecond.", "First.\n\nSecond."),
        (r"he said \"no\" twice", 'he said "no" twice'),
        (r'a \""thank you\ "" after', 'a "thank you" after'),
        (r'"a \""quoted\ "" cell ."', 'a "quoted" cell .'),
        ('"Great" they said, "never again"', '"Great" they said, "never again"'),
        (r"cr\u00e8me for \u00a35", "crème for £5"),
        (r"fine \ud83d\ude00 \ud83d", "fine 😀 �"),
        (r"price\size", "price size"),
    ],
    published_corpora.ag_news: [
        ("Wednesday #39;s match, it won #39;t, makers #39; efforts", "Wednesday's match, it won't, makers ' efforts"),
        ("a day&#39;s work", "a day's work"),
        ("Dell Inc. &lt;DELL.O&gt;, J amp;J", "Dell Inc. <DELL.O>, J &J"),
        (" quot;fear. quot; #151; #36;10", ' "fear. " — $10'),
        (r"between \$85 and \$95", "between $85 and $95"),
        (r"from both its\northern outlets\\The end", "from both its northern outlets The end"),
        ("AT&T; the #1; &nothing;", "AT&T; the #1; &nothing;"),
    ],
    published_corpora.newsgroups: [
        (f"{HEADER}The body.\n\nSubject: in the body", "The body.\n\nSubject: in the body"),
        (HEADER, ""),
        ("No header here.\n\nTwo paragraphs.", "No header here.\n\nTwo paragraphs."),
        (f"{HEADER}Lines: 28\nNNTP-Posting-Host: x.edu\nKeywords: Cardinals\n\nThe body.", "The body."),
        (f"{HEADER} <a@b>\n\n<c@d> <e@f>\nIn-reply-to: g's message of\n  Sunday\n\nThe body.", "The body."),
        (f"{HEADER}Archive-name: faq\n\nSummary: \n\nThe body.", "The body."),
        (f"{HEADER}NOTE: this stays.\n\nThe body.", "NOTE: this stays.\n\nThe body."),
        (f"{HEADER}To: all of you\nwho love the game", "To: all of you\nwho love the game"),
        (f"{HEADER}<a@b> writes:\n> quoted", "<a@b> writes:\n> quoted"),
        ("Read rec.sport.hockey, Rec.Sport.Baseball.x, rec.sport.* or r.s.bb.", "Read , ,  or ."),
        ("The record of sport.", "The record of sport."),
    ],
}
"""Function -> what is stored, and what was written."""


@pytest.mark.parametrize(
    ("clean", "stored", "written"), [(clean, *row) for clean, rows in CLEANED.items() for row in rows]
)
def test_texts_read_as_they_were_written(clean, stored, written):
    assert clean(stored) == written


@pytest.mark.parametrize("cleaned", CLEANED)
@given(text=st.text("abc ,.!?'ö\n").map(str.strip))
def test_plain_text_stays_as_it_is(cleaned, text):
    assert cleaned(text) == text
