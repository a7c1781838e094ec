#!/usr/bin/env python3
"""The version is the same wherever it is said, and the changelog has a part about it."""
import re

import gate

SAID = {
    "CMakeLists.txt": r"^project\(untax VERSION ([\d.]+)",
    "pyproject.toml": r'^version = "([\d.]+)"',
    "include/untax/core/version.hpp": r'string_view version = "([\d.]+)"',
    "include/untax/c/library.h": r'The version of the library, "([\d.]+)"',
}
RELEASED = re.compile(r"^## \[([\d.]+)\] - \d{4}-\d\d-\d\d$", re.MULTILINE)


def check(tree):
    findings, versions = [], {}
    for name, pattern in SAID.items():
        matches = re.findall(pattern, tree.text(name), re.MULTILINE) if (tree.root / name).is_file() else []
        if len(matches) != 1:
            findings.append(f"{name}: says a version {len(matches)} times; tests/style/versions.py expects it once")
        else:
            versions[name] = matches[0]
    if len(set(versions.values())) > 1:
        findings.append("versions differ: " + ", ".join(f"{name} has {said}" for name, said in versions.items()))
    changelog = tree.text("CHANGELOG.md") if (tree.root / "CHANGELOG.md").is_file() else ""
    if newest := set(versions.values()) - set(RELEASED.findall(changelog)[:1]):
        findings.append(f"CHANGELOG.md: its newest release is not {' or '.join(sorted(newest))}")
    return findings


def sample(header="1.2.0", released="1.2.0"):
    return {"CMakeLists.txt": "project(untax VERSION 1.2.0 LANGUAGES CXX)\n",
            "pyproject.toml": '[project]\nversion = "1.2.0"\n',
            "include/untax/core/version.hpp": f'inline constexpr std::string_view version = "{header}";\n',
            "include/untax/c/library.h": '/* The version of the library, "1.2.0". */\n',
            "CHANGELOG.md": f"## [Unreleased]\n\n## [{released}] - 2026-01-31\n\n## [1.1.0] - 2026-01-01\n"}


BAD = [sample(header="1.1.0"), sample(released="1.3.0"), sample(header=""),
       {name: text for name, text in sample().items() if name != "pyproject.toml"}]
GOOD = [sample()]

if __name__ == "__main__":
    gate.main(check, BAD, GOOD)
