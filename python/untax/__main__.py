"""`python -m untax` is the command `untax`."""

from __future__ import annotations

import os
import sys

from . import openblas
from .taxes import command


def main() -> None:
    os.execve(command(), ["untax", *sys.argv[1:]], openblas.environment())


if __name__ == "__main__":
    main()
