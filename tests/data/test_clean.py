"""Published texts, cleaned: escapes undone, headers off, and nothing else touched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadygaze.data import published_corpora


@pytest.mark.parametrize(
    ("stored", "written"),
    [
        ("one.<br /><br />two <br/> <i>three</i>", "one.\ntwo \n <i>three</i>"),
        ("a <b>bold</b> film", "a <b>bold</b> film"),
    ],
)
def test_imdb_loses_its_line_break_tags_and_nothing_else(stored, written):
    assert published_corpora.imdb(stored) == written


@pytest.mark.parametrize(
    ("stored", "written"),
    [
        (r"First.\n\nSecond.", "First.\n\nSecond."),
        (r"he said \"no\" twice", 'he said "no" twice'),
        (r'a \""thank you\ "" after', 'a "thank you" after'),
        (r'"a \""quoted\ "" cell ."', 'a "quoted" cell .'),
        ('"Great" they said, "never again"', '"Great" they said, "never again"'),
        (r"cr\u00e8me for \u00a35", "crème for £5"),
        (r"fine \ud83d\ude00 \ud83d", "fine 😀 �"),
        (r"price\size", "price size"),
    ],
)
def test_yelp_reads_as_it_was_typed(stored, written):
    assert published_corpora.yelp(stored) == written


@pytest.mark.parametrize(
    ("stored", "written"),
    [
        ("Wednesday #39;s match, it won #39;t, makers #39; efforts", "Wednesday's match, it won't, makers ' efforts"),
        ("a day&#39;s work", "a day's work"),
        ("Dell Inc. &lt;DELL.O&gt;, J amp;J", "Dell Inc. <DELL.O>, J &J"),
        (" quot;fear. quot; #151; #36;10", ' "fear. " — $10'),
        (r"between \$85 and \$95", "between $85 and $95"),
        (r"from both its\northern outlets\\The end", "from both its northern outlets The end"),
        ("AT&T; the #1; &nothing;", "AT&T; the #1; &nothing;"),
    ],
)
def test_ag_news_reads_as_it_was_printed(stored, written):
    assert published_corpora.ag_news(stored) == written


HEADER = "From: a@b (A)\nSubject: hockey!\nLines: 2\n\n"


@pytest.mark.parametrize(
    ("stored", "written"),
    [
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
)
def test_newsgroups_lose_what_gives_the_group_away(stored, written):
    assert published_corpora.newsgroups(stored) == written


@pytest.mark.parametrize(
    "cleaned", [published_corpora.imdb, published_corpora.yelp, published_corpora.ag_news, published_corpora.newsgroups]
)
@given(text=st.text("abc ,.!?'ö\n").map(str.strip))
def test_plain_text_stays_as_it_is(cleaned, text):
    assert cleaned(text) == text
