#!/usr/bin/env python3
"""Counts the results of one ctest run: "N passed, N failed, N skipped".

A GoogleTest program counts with its single cases, read from the file that it wrote; any other test counts as one.
A program that failed without a failed case (it crashed, ran out of time, or a sanitizer objected) adds a failure.
"""
import sys
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


if __name__ == "__main__":
    print("{} passed, {} failed, {} skipped".format(*count(Path(sys.argv[1]))))
