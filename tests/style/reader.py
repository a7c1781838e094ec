#!/usr/bin/env python3
"""JSON and files of others come into the product through src/core alone, which bounds their size and depth.

`parse`, `accept` and `sax_parse` of nlohmann::json know no such bounds, and `dump` of what they have read calls itself for
each level. An ifstream, fopen and gzopen read devices and pipes for ever.
"""
import re

import gate

PARSES = re.compile(r"\bjson::(?:parse|accept|sax_parse)\s*\(|\bgzopen\s*\(|\bgzdopen\s*\(")
READER = ("src/core/json.cpp", "src/core/text_file.cpp")


def check(tree):
    findings = []
    for name in tree.files():
        if name.startswith("tests/") or name in READER:
            continue
        for number, line in enumerate(tree.text(name).splitlines(), 1):
            if PARSES.search(line):
                findings.append(f"{name}:{number}: reads by itself; parse_json and text_of_file of src/core have bounds")
    return findings


BAD = [
    ("src/taxes/a.cpp", "const json in = json::parse(text.begin(), text.end(), nullptr, false);\n"),
    ("cli/a.cpp", "auto in = nlohmann::json::parse (text);\n"),
    ("ops/x/a.cpp", 'gzFile file = gzopen(path, "rb");\n'),
]
GOOD = [
    ("src/core/json.cpp", "return Json::parse(text);\nauto a = json::parse(text);\n"),
    ("tests/x/a.cpp", "auto a = json::parse(text);\n"),
    ("src/taxes/a.cpp", "const json in = parse_json<json>(text, origin);\n"),
]

if __name__ == "__main__":
    gate.main(check, BAD, GOOD)
