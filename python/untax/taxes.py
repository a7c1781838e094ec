"""The taxes of a layer of a model, or of an operator: launches, bulk synchronisation and lost locality, measured on
this machine."""

from __future__ import annotations

import html
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from . import openblas
from .errors import InvalidArgument, Unsupported


def command() -> str:
    """The path of the command `untax` that the package contains."""
    path = Path(__file__).with_name("bin") / "untax"
    if not path.is_file():
        raise Unsupported(f"the command is not at {path}; install the package again, with `pip install .`")
    return str(path)


class Taxes:
    """A report: shown as the table in a terminal and the waterfall in a notebook; `data` is for programs."""

    def __init__(self, text: str, data: dict[str, Any], page: str) -> None:
        self.text, self.data, self.page = text, data, page

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self.page)}" style="width: 100%; height: 60em; border: 0"></iframe>'


def taxes(model: str | Path | None = None, *, operator: str | None = None, ranks: int = 4, **options: Any) -> Taxes:
    """Measures the layers of a model or, with `operator`, one operator on `ranks` ranks.

    `model` is the path of a config.json, as Hugging Face has it, or the name of one that the package has, such as
    "llama-3.2-1b". `options` are those of `untax taxes`, with _ instead of -: tokens=64, repeat=5, m=512,
    machine="h200-8". It takes seconds to minutes. Raises InvalidArgument with the command's error text.
    """
    call = [command(), "taxes", "--ranks", str(ranks)]
    if model is not None:
        call += ["--model", str(model)]
    if operator is not None:
        call += ["--operator", operator]
    for name, value in options.items():
        call += [f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}", str(value)]
    with tempfile.TemporaryDirectory() as folder:
        data, page = Path(folder, "taxes.json"), Path(folder, "taxes.html")
        done = subprocess.run([*call, "--json", str(data), "--html", str(page)], capture_output=True, text=True,
                              env=openblas.environment(), check=False)
        if done.returncode != 0:
            raise InvalidArgument(done.stderr.strip() or f"untax taxes ended with status {done.returncode}")
        # The command names the files that it wrote; these are deleted when this function returns.
        written = (f"JSON: {data}", f"HTML: {page}")
        text = "".join(line for line in done.stdout.splitlines(keepends=True) if line.rstrip() not in written)
        return Taxes(text, json.loads(data.read_text()), page.read_text())
