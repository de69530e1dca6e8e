"""`python -m studies run rationales`, under the name in the commands of ledger.toml."""

import sys

from studies.__main__ import application

if __name__ == "__main__":
    application(["run", "rationales", *sys.argv[1:]])
