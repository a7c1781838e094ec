"""Helpers of the generators: Markdown tables, and the format of figures in them."""


def table(head, rows, left=1):
    """A Markdown table whose first `left` columns are text."""
    rule = ["---" if i < left else "---:" for i in range(len(head))]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in [head, rule, *rows])


def timed(problem, way):
    """Seconds of a figure of a problem, or None."""
    return next((f["seconds"]["median"] for f in problem["figures"] if f["by"] == way and "seconds" in f), None)


def bars(document):
    """The bars as Markdown: value, limit, and whether the value meets it."""
    return "".join(f"* {b['what']}: {b['value']:.2f}, has to be " + (
        f"at most {b['at_most']}" if "at_most" in b else f"at least {b['at_least']}") + (
        ": met\n" if b["met"] else ": missed\n") for b in document.get("bars", []))
