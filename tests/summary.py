#!/usr/bin/env python3
"""Counts the results of one ctest run: "N passed, N failed, N skipped", and says why tests were skipped.

A GoogleTest program counts with its single cases, read from the file that it wrote; any other test counts as one.
With --pytest the file is one that pytest wrote. A program that failed without a failed case (it crashed, ran out of time, or a sanitizer objected) adds a failure.
"""
import sys
from collections import Counter
import xml.etree.ElementTree as xml
from pathlib import Path


def cases(path):
    """(passed, failed, skipped) of a GoogleTest result file, or zeros if there is none."""
    try:
        root = xml.parse(path).getroot()
    except (OSError, xml.ParseError):
        return 0, 0, 0
    passed = failed = skipped = 0
    for case in root.iter("testcase"):
        if case.find("failure") is not None:
            failed += 1
        elif case.find("skipped") is not None or case.get("status") == "notrun":
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def count(results):
    passed = failed = skipped = 0
    for test in xml.parse(results / "ctest.xml").getroot().iter("testcase"):
        p, f, s = cases(results / f"{test.get('name')}.xml")
        status = test.get("status")
        if status == "run":
            p = p if p + f + s else 1
        elif status == "notrun" or test.find("skipped") is not None:
            s = s + 1
        else:
            f = max(f, 1)
        passed, failed, skipped = passed + p, failed + f, skipped + s
    return passed, failed, skipped


def reasons(results):
    """Why cases were skipped, and how many for each reason."""
    found = Counter()
    for path in sorted(results.glob("*.xml")):
        try:
            root = xml.parse(path).getroot()
        except xml.ParseError:
            continue
        for case in root.iter("testcase"):
            for skipped in case.findall("skipped"):
                lines = (skipped.get("message") or "").strip().splitlines()
                # A GoogleTest program says why, ctest only that it did; the program's own words count.
                if path.name != "ctest.xml" or not (results / f"{case.get('name')}.xml").exists():
                    found[(path.stem, lines[-1] if lines else "no reason given")] += 1
    return [f"  skipped: {number} of {program}: {why}" for (program, why), number in found.items()]


def count_pytest(path):
    """(passed, failed, skipped) of a file of pytest; without one, something failed before it was written."""
    try:
        suites = list(xml.parse(path).getroot().iter("testsuite"))
    except (OSError, xml.ParseError):
        return 0, 1, 0
    total, failures, errors, skipped = (sum(int(suite.get(what, 0)) for suite in suites)
                                        for what in ("tests", "failures", "errors", "skipped"))
    return total - failures - errors - skipped, failures + errors, skipped


if __name__ == "__main__":
    if sys.argv[1] == "--pytest":
        print("{} passed, {} failed, {} skipped".format(*count_pytest(sys.argv[2])))
        sys.exit()
    folder = Path(sys.argv[1])
    print("{} passed, {} failed, {} skipped".format(*count(folder)))
    for line in reasons(folder):
        print(line)
