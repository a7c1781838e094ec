"""The table of the symmetric memory that operators of torch.ops.untax take."""
from tables import table

MEGA = 1 << 20
NOTE = ("MiB of each rank's symmetric heap that an operator at its defaults takes, for any number of tokens up to these: its "
        "inboxes, counters, and results that peers write. It may take twice what peers write, and 64 MiB.\n")


def details(name, document, place):
    rows = [[operator["model"], str(operator["tokens"]), operator["operator"],
             *(f"{operator[field] / MEGA:.1f}" for field in ("written", "taken", "bound")),
             "" if operator["taken"] <= operator["bound"] else "over"] for operator in document["operators"]]
    shown = table(["model", "tokens", "operator", "written by peers", "taken", "may take", ""], rows, left=3)
    return f"\n## Symmetric memory, {document['ranks']} GPUs\n\n{NOTE}\n{shown}\n[{name}]({name}), {place}.\n"
