"""`python -m studies run independent_reader`, under the name in the commands of ledger.toml."""

import sys

from studies.__main__ import application

if __name__ == "__main__":
    application(["run", "independent_reader", *sys.argv[1:]])
