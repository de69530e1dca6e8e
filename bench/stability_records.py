from studies.stability.records import *  # noqa: F403  # for bench/ledger.py and bench/published_page.py
