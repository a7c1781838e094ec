"""A generated part of docs/seer.md: rules that could use the times that `automatic` takes when an operator is made. A
check holds each time twice: as it was when the operator was made, in the explanation, and as it was later, beside all
patterns in turn. Rules that use only the first are judged by the second."""
import math
import re
import statistics

from tables import table

WITHIN = 1.03
MIXED = (0.1, 0.3)  # shares of the expected times of tables
DRAWS = 200


def times_in(text):
    return {name: float(us) for name, us in re.findall(r"(\w+) ([\d.]+) us", text)}


def problems_of(check):
    """The times of each problem in microseconds: when its operator was made, as tables expect them, and later."""
    problems = []
    for problem in check["problems"]:
        timed = re.search(r"chosen by timing it here: (.*?);", problem["explanation"])
        expected = re.search(r"expected (.*?); nearest", problem["explanation"])
        if timed and expected:
            later = {name: 1e6 * seconds for name, seconds in problem["seconds"].items()}
            problems.append((times_in(timed[1]), times_in(expected[1]), later))
    return problems


def within(problems, score):
    """The part of the problems at which the pattern of the least score is near the best."""
    good = 0
    for first, expected, later in problems:
        chosen = min(first, key=lambda name: score(name, first, expected))
        good += later[chosen] <= WITHIN * min(later.values())
    return good / len(problems)


def ratios_of(problems):
    """For each pattern the logarithms of its later times over the time when it was made."""
    ratios = {}
    for first, _, later in problems:
        for name in first:
            ratios.setdefault(name, []).append(math.log(later[name] / first[name]))
    return ratios


def drawn(problems):
    """The regret of timing each pattern once, if later times are the truth and a single time has errors like the
    measured ones."""
    off = ratios_of(problems)
    shares = []
    for draw in range(DRAWS):
        good = 0
        for at, (first, _, later) in enumerate(problems):
            # The error of another problem, in a fixed order, so that the figures are the same each time.
            seen = {name: later[name] * math.exp(-off[name][(at * 31 + draw * 17 + len(name) * 7) % len(off[name])])
                    for name in first}
            good += later[min(seen, key=seen.get)] <= WITHIN * min(later.values())
        shares.append(good / len(problems))
    return statistics.mean(shares), statistics.stdev(shares)


def rules(checks):
    """Each rule beside the present rule, for each number of ranks."""
    by_ranks = {max(p["ranks"] for p in check["problems"]): problems_of(check) for _, check in checks}
    rows = []
    for ranks, problems in sorted(by_ranks.items()):
        others = [p for other, some in by_ranks.items() if other != ranks for p in some]
        bias = {name: statistics.median(off) for name, off in ratios_of(others).items()}
        shares = {"quickest when made (automatic)": within(problems, lambda name, first, _: first[name])}
        for share in MIXED:
            shares[f"mixed with {100 * share:.0f} % of what tables expect"] = within(
                problems, lambda name, first, expected, w=share:
                (1 - w) * math.log(first[name]) + w * math.log(expected.get(name, math.inf)))
        shares["corrected by the patterns' bias at the other number of ranks"] = within(
            problems, lambda name, first, _: math.log(first[name]) + bias.get(name, 0))
        shares["as expected by tables, among those that were timed"] = within(
            problems, lambda name, _, expected: expected.get(name, math.inf))
        rows += [[str(ranks), rule, f"{100 * share:.1f} %"] for rule, share in shares.items()]
        mean, spread = drawn(problems)
        rows.append([str(ranks), "each timed once more, errors drawn from those seen",
                     f"{100 * mean:.1f} % (standard deviation {100 * spread:.1f})"])
    return table(["ranks", "rule", "within 3 %"], rows, left=2)


def spreads(checks):
    """The differences between the later time of a pattern and its time at planning."""
    rows = []
    for _, check in sorted(checks, key=lambda file: max(p["ranks"] for p in file[1]["problems"])):
        ranks = max(p["ranks"] for p in check["problems"])
        for name, off in ratios_of(problems_of(check)).items():
            rows.append([str(ranks), name, str(len(off)), f"{math.exp(statistics.median(off)):.3f}",
                         f"{100 * statistics.pstdev(off):.1f} %",
                         f"{math.exp(min(off)):.2f} to {math.exp(max(off)):.2f}"])
    return table(["ranks", "pattern", "times", "later / made, median", "standard deviation", "from, to"], rows, left=2)
