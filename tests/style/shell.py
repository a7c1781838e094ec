#!/usr/bin/env python3
"""Every shell script passes shellcheck, and stops at the first command that fails.

The scripts of tests/cli run commands that must fail, and count with helpers.bash what goes wrong instead.
"""
import subprocess

import gate


def check(tree):
    program = gate.tool("shellcheck")
    findings = []
    for name in tree.files({".sh"}) + [n for n in [".ci/run"] if (tree.root / n).is_file()]:
        run = subprocess.run([program, "--format=gcc", "--shell=bash", "--severity=warning", "--external-sources",
                              "--source-path=SCRIPTDIR", name], capture_output=True, text=True, cwd=tree.root)
        findings += run.stdout.splitlines()
        sourced = name.startswith("cmake/")  # by scripts that have said so already
        text = tree.text(name)
        if not sourced and "set -euo pipefail" not in text and "/helpers.bash\"\n" not in text:
            findings.append(f"{name}: does not say `set -euo pipefail`")
    return findings


BAD = [
    ("a.sh", "#!/usr/bin/env bash\nset -euo pipefail\nunused=1\n"),
    ("a.sh", "#!/usr/bin/env bash\necho hello\n"),
]
GOOD = [("a.sh", "#!/usr/bin/env bash\nset -euo pipefail\nrm \"$1\"\n")]

if __name__ == "__main__":
    gate.main(check, BAD, GOOD)
