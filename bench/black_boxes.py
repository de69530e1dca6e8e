"""`python -m studies run black_boxes`, under the name in the commands of ledger.toml."""

import sys

from studies.__main__ import application

if __name__ == "__main__":
    application(["run", "black_boxes", *sys.argv[1:]])
