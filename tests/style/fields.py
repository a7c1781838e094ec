#!/usr/bin/env python3
"""Operators are compared by the fields of their entries, nowhere by their names as text.

A comparison of names misses the next operator. Everything that the library, the command and the benchmarks have to know
about an operator is a field of operator_entry or collective_entry (ops/common/workload.hpp,
ops/collectives_common/workload.hpp). To look an entry up by a name that a user or a file gave is no comparison, nor is
it to write a name out."""
import re

import gate

BELOW = ("src/", "include/", "cli/", "ops/", "decoder/", "bench/", "engines/", "models/", "examples/")


def operator_names(tree):
    """The folders of operators and collectives are called after them; the helpers' folders are not operators."""
    names = {name.split("/")[1] for name in tree.files(below=("ops/",)) if name.endswith("/operator.cpp")}
    return sorted(names) or ["all_gather_gemm", "flash_decode"]


def check(tree):
    name = '"(?:%s)"' % "|".join(operator_names(tree))
    compared = re.compile(rf"[=!]=\s*{name}|{name}\s*[=!]=|[=!]=\s*flash_decode_name\b")
    findings = []
    for file in tree.files(below=BELOW):
        text = tree.text(file)
        for match in compared.finditer(text):
            findings.append(f"{file}:{gate.line_of(text, match.start())}: '{match.group(0)}' compares an operator's "
                            "name; ask a field of its entry, and add one where none says it")
    return findings


BAD = [
    ("cli/a.cpp", 'bool f(const report& r) { return r.operator_name == "all_gather_gemm"; }\n'),
    ("ops/timing/a.cpp", 'if (c.op != "flash_decode") return 0;\n'),
    ("src/taxes/a.cpp", "bool f(const operation& op) { return op.operator_name == flash_decode_name; }\n"),
    ("bench/a.cpp", 'bool f(std::string_view n) { return "all_gather_gemm" == n; }\n'),
]
GOOD = [
    ("cli/a.cpp", 'const operator_entry& f() { return operator_named("all_gather_gemm"); }\n'),
    ("src/a.cpp", "bool f(const entry& e, std::string_view name) { return e.name == name; }\n"),
    ("tests/taxes/a.cpp", 'EXPECT_TRUE(op.name == "all_gather_gemm");\n'),
]

if __name__ == "__main__":
    gate.main(check, BAD, GOOD)
