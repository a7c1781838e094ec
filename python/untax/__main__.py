"""`python -m untax` is the command `untax`."""

from __future__ import annotations

import os
import sys

from .taxes import command


def main() -> None:
    path = command()
    os.execv(path, ["untax", *sys.argv[1:]])


if __name__ == "__main__":
    main()
