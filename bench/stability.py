"""`python -m studies run stability`, under the name in the commands of ledger.toml."""

import sys

from studies.__main__ import application

if __name__ == "__main__":
    application(["run", "stability", *sys.argv[1:]])
