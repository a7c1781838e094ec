"""The symmetric memory that operators of torch.ops.untax take."""
from tables import table

MEGA = 1 << 20
NOTE = ("MiB of each rank's symmetric heap that an operator at its defaults takes, for any number of tokens up to these: its "
        "inboxes, counters, and results that peers write. It may take twice what peers write, and 64 MiB.\n")


def details(name, document, place):
    rows = [[one["model"], str(one["tokens"]), one["operator"],
             *(f"{one[what] / MEGA:.1f}" for what in ("written", "taken", "bound")),
             "" if one["taken"] <= one["bound"] else "over"] for one in document["operators"]]
    shown = table(["model", "tokens", "operator", "written by peers", "taken", "may take", ""], rows, left=3)
    return f"\n## Symmetric memory, {document['ranks']} GPUs\n\n{NOTE}\n{shown}\n[{name}]({name}), {place}.\n"
