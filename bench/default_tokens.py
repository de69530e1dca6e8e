"""`python -m studies run default_tokens`, under the name in the commands of ledger.toml."""

import sys

from studies.__main__ import application

if __name__ == "__main__":
    application(["run", "default_tokens", *sys.argv[1:]])
