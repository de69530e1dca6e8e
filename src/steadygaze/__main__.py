"""python -m steadygaze"""

from steadygaze.cli import main

if __name__ == "__main__":
    main()
