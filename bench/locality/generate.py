#!/usr/bin/env python3
"""Writes the tables and pictures of docs/locality.md: python3 bench/locality/generate.py build/release/untax"""
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs/locality.md"
KERNELS = ["gemm", "attention", "attention_backward", "layernorm", "softmax", "elementwise", "transpose", "spmv",
           "stencil2d", "fdtd2d", "smith_waterman", "black_scholes"]
DEVICES = ["mi300x", "h200"]
PICTURES = {
    "locality-block-first.svg": ["attention", "--order", "naive block-first", "heads=16", "keys=8192"],
    "locality-head-first.svg": ["attention", "--order", "swizzled head-first", "heads=16", "keys=8192"],
}


def searched(untax):
    lines = ["| kernel | device | hits as numbered | best order | hits | no order above | distance | time |",
             "|---|---|---|---|---|---|---|---|"]
    for kernel in KERNELS:
        for device in DEVICES:
            out = subprocess.run([untax, "locality", kernel, "--device", device, "--search", "--json", "-"],
                                 capture_output=True, text=True, check=True).stdout
            found = json.loads(out)
            numbered = next(b for b in found["best"] if b["order"] == "as numbered")
            best = found["best"][0] if found["is_worth_it"] else numbered
            lines.append(
                f"| {kernel} | {device} | {numbered['hit_rate']:.1%} | "
                f"{best['order'] if found['is_worth_it'] else 'nothing to gain'} | {best['hit_rate']:.1%} | "
                f"{found['limit']['hit_rate']:.1%} | {100 * found['distance']:.1f} | "
                f"{best['seconds'] / numbered['seconds']:.2f} |")
            print(lines[-1], flush=True)
    return "\n".join(lines).replace("%", " %")


def replaced(text, name, by):
    pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    if not pattern.search(text):
        sys.exit(f"{DOCUMENT} has no place for {name}")
    return pattern.sub(lambda match: f"{match.group(1)}{by.strip()}\n{match.group(2)}", text)


def main():
    untax = sys.argv[1]
    for name, arguments in PICTURES.items():
        subprocess.run([untax, "locality", *arguments, "--device", "mi300x", "--svg", ROOT / "docs" / name], check=True,
                       stdout=subprocess.DEVNULL)
    published = subprocess.run([untax, "locality", "published"], capture_output=True, text=True, check=True).stdout
    text = replaced(DOCUMENT.read_text(), "published", published)
    DOCUMENT.write_text(replaced(text, "searched", searched(untax)))


if __name__ == "__main__":
    main()
