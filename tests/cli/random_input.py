#!/usr/bin/env python3
"""Damaged files of every kind and random arguments: whatever comes in, the command ends soon with 0, 1 or 2.

random_input.py UNTAX [--files N] [--others N] [--arguments N] [--seed S] [--limit SECONDS]

Each case has a seed of its own, which is printed where it fails; `--seed S --files 1` repeats it. A status
that is not 0 comes with one line on stderr that begins with "untax: "; where the work failed (1) more lines may follow
that list the waits of ranks. Nothing takes longer than the limit, and no sanitizer speaks. """
import argparse
import gzip
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "models"
PATTERNS = ["automatic", "bulk_library", "bulk_synchronous", "producer_consumer", "copy_engine",
            "fused_sequential", "fused_specialized", "fused_warp_specialized", "all", "fused"]
OPERATORS = ["all_gather_gemm", "gemm_all_scatter", "gemm_reduce_scatter", "gemm_all_reduce", "all_reduce_norm",
             "flash_decode", "merge_partial_attention", "linear", "all_gather",
             "reduce_scatter", "all_reduce", "all_to_all", "broadcast", "all_gather_gem", ""]
SUITES = ["rma", "collectives", "gemm", "all-gather-gemm", "gemm-all-scatter", "flash-decode", "tune", "hosts", ""]
# Words that are no numbers, and numbers at the edges of ranges.
STRANGE = ["", "-", "--", "0", "-1", "1.5", "nan", "-inf", "1e999", "0x10", "99999999999999999999", "2147483648",
           "-9223372036854775808", "\u00e9", "a\nb", "\x1b[31m", "%s%n", "' or 1", "x" * 5000, "1,2", ",", "=", "@/dev/null"]


def small(rng):
    return str(rng.choice([1, 2, 3, 5, 8, 17, 33, 64]))


def large(rng):
    return str(rng.choice([1 << 17, (1 << 31) - 1, 1 << 40]))


def one_of(*values):
    return lambda rng: rng.choice(values)


SIZE, FLAG = small, None
# Sizes stay small, and runs few, since a machine that computes says nothing about arguments; what is too
# large is asked for by the option that takes the memory.
RUN = {"--ranks": one_of("1", "2", "3", "4", "65"), "--backend": one_of("auto", "host", "cuda", "gpu"),
       "--pattern": one_of(*PATTERNS), "-m": SIZE, "-n": SIZE, "-k": SIZE, "--gather": one_of("rows", "k", "m"),
       "--dtype": one_of("fp32", "fp16", "bf16", "fp8"), "--partials": one_of("fp32", "bf16", "fp16"),
       "--direction": one_of("push", "pull"), "--launch": one_of("graph", "eager", "lazy"),
       "--workers": one_of("0", "1", "2", "31", "32"), "--senders": one_of("0", "1", "2", "31"),
       "--tile-m": SIZE, "--tile-n": SIZE, "--panel-k": SIZE, "--constant-weights": FLAG,
       "--reduction": one_of("sum", "max", "min", "product"), "--root": one_of("0", "1", "7"),
       "--phases": one_of("0", "1", "2", "3"), "--unequal": FLAG, "--direct": FLAG, "--chunk-bytes": SIZE,
       "--depth": one_of("0", "1", "2", "9"), "--batch": SIZE, "--heads": one_of("4", "8", "6"),
       "--kv-heads": one_of("1", "2", "4"), "--head-dim": SIZE, "--keys": SIZE, "--page-size": SIZE,
       "--scale": one_of("0", "0.5", "1e-30"), "--logit-cap": one_of("0", "30"), "--splits": one_of("0", "1", "3"),
       "--seed": SIZE, "--verify": FLAG, "--tolerance": one_of("0", "1e-3", "1"), "--explain": FLAG,
       "--json": one_of("-", "/dev/full", "/nowhere/x", "."), "--wait-limit": one_of("15000"), "--processes": FLAG}
RUN |= {"--tokens": SIZE, "--hidden": SIZE, "--output": one_of("same", "e4m3", "e4m3_per_token", "x"), "--own-heads": FLAG}
RUN |= {"--rows": SIZE, "--activation": one_of("none", "silu", "swiglu", "relu"), "--invariant": FLAG}
# The options of an operator besides those of all operators, with values that keep its problem small.
ALL_RUNS = ["--ranks", "--backend", "--pattern", "--seed", "--verify", "--tolerance", "--explain", "--json", "--wait-limit",
            "--processes", "--dtype", "--launch", "--workers"]
GEMM = (["-m", "-n", "-k", "--senders", "--tile-m", "--tile-n", "--constant-weights"],
        ["-m", "8", "-n", "16", "-k", "24"])
COLLECTIVE = (["-n", "--direct", "--chunk-bytes", "--depth"], ["-n", "16"])
OWN_RUNS = {"all_gather_gemm": (GEMM[0] + ["--gather", "--direction", "--panel-k"], GEMM[1]),
            "gemm_reduce_scatter": (GEMM[0] + ["--partials"], GEMM[1]),
            "gemm_all_reduce": (GEMM[0] + ["--partials", "--phases"], GEMM[1]),
            "all_reduce_norm": (["--tokens", "--hidden", "--output", "--phases"], ["--tokens", "8", "--hidden", "16"]),
            "flash_decode": (["--batch", "--heads", "--kv-heads", "--head-dim", "--keys", "--page-size", "--scale",
                              "--logit-cap", "--splits", "--partials", "--unequal"], ["--keys", "24"]),
            "merge_partial_attention": (["--tokens", "--heads", "--head-dim", "--own-heads"], ["--tokens", "8"]),
            "linear": (["--rows", "-n", "-k", "--activation", "--invariant", "--constant-weights"],
                       ["--rows", "8", "-n", "16", "-k", "24"]),
            "reduce_scatter": (COLLECTIVE[0] + ["--reduction"], COLLECTIVE[1]),
            "all_reduce": (COLLECTIVE[0] + ["--reduction", "--phases"], COLLECTIVE[1]),
            "broadcast": (COLLECTIVE[0] + ["--root", "--phases"], COLLECTIVE[1]),
            "all_to_all": (COLLECTIVE[0] + ["--unequal"], COLLECTIVE[1]),
            "all_gather": COLLECTIVE}
TAXES = {"--operator": one_of(*OPERATORS), "--backend": one_of("auto", "host", "cuda"),
         "--ranks": one_of("1", "2", "3", "17"), "--tensor-parallel": one_of("1", "2"), "--tokens": SIZE,
         "--keys": SIZE, "-m": SIZE, "-n": SIZE, "-k": SIZE, "--gather": one_of("rows", "k"),
         "--heads": one_of("4", "8", "6"), "--kv-heads": one_of("1", "2", "4"), "--head-dim": SIZE,
         "--dtype": one_of("fp32", "bf16", "fp8"), "--workers": one_of("0", "1", "32"),
         "--json": one_of("-", "/dev/full", "/nowhere/x"), "--html": one_of("-", "/dev/full", ".")}
BENCH = {"--ranks": one_of("1", "2", "3"), "--size": SIZE, "--collective": one_of("all_reduce", "x"), "--sweep": FLAG,
         "--suite": one_of("prefill", "decode", "x"), "-m": SIZE, "-n": SIZE, "-k": SIZE,
         "--patterns": one_of(*PATTERNS), "--heads": one_of("70b", "x"), "--batch": SIZE, "--keys": SIZE,
         "--page-size": SIZE, "--bf16-partials": FLAG, "--operator": one_of(*OPERATORS), "--quick": FLAG,
         "--check": FLAG, "--held-out": SIZE, "--json": one_of("-", "/nowhere/x")}
CHECK = {"--json": one_of("-", "/dev/full", "/nowhere/x")}
HUGE = {"run": ["-m", "-n", "-k", "--rows", "--keys", "--batch", "--heads", "--page-size", "--chunk-bytes"],
        "taxes": ["-m", "-n", "-k", "--keys", "--tokens", "--heads"]}
VERBS = ["run", "run", "run", "run", "taxes", "taxes", "bench", "check", "doctor", "help", "version", "strange"]


def random_arguments(rng):
    """A command line, most often one that is almost right."""
    verb = rng.choice(VERBS)
    if verb == "strange":
        return [rng.choice(STRANGE + ["run", "--help", "doctor"]) for _ in range(rng.randrange(4))]
    options, positional, fixed = {
        "run": (RUN, [operator := rng.choice(OPERATORS)], ["--repeat", "1", *OWN_RUNS.get(operator, GEMM)[1]]),
        "taxes": (TAXES, [], ["--repeat", "1", "-m", "8", "-n", "16", "-k", "24"]),
        "bench": (BENCH, [rng.choice(SUITES)], ["--repeat", "1"]),
        "check": (CHECK, [rng.choice(OPERATORS)], ["--quick", "--executions", "1", "--ranks", "1"]),
    }.get(verb, ({}, [], []))
    if verb == "run" and rng.random() < 0.9:
        options = {name: options[name] for name in ALL_RUNS + OWN_RUNS.get(operator, GEMM)[0]}
    if verb == "taxes" and rng.random() < 0.8:
        fixed = ["--operator", rng.choice(OPERATORS[:4])] + fixed
    chosen = rng.sample(sorted(options), min(len(options), rng.choice([0, 1, 1, 2, 2, 3, 5, 8])))
    # An option may be there once, so what is chosen takes the place of what is fixed.
    kept = []
    for i, word in enumerate(fixed):
        if word.startswith("-") and word not in chosen:
            kept.append(word)
            if i + 1 < len(fixed) and not fixed[i + 1].startswith("-"):
                kept.append(fixed[i + 1])
    words = []
    huge = rng.random() < 0.05
    for option in chosen:
        words.append(option)
        if options[option] is FLAG:
            continue
        if huge and option in HUGE.get(verb, []):
            words.append(large(rng))
        elif huge and options[option] is SIZE:
            # With little beside it, what is large might fit, and take the memory of the machine.
            words.append("64")
        elif rng.random() < 0.08:
            words.append(rng.choice(STRANGE))
        else:
            words.append(options[option](rng))
    arguments = [verb] + positional + kept + words
    if rng.random() < 0.1:
        arguments.insert(rng.randrange(len(arguments) + 1), rng.choice(STRANGE + ["--help", "--version", "run", "-x"]))
    # Without its limits `check` explores for minutes.
    if verb != "check" and rng.random() < 0.05 and len(arguments) > 1:
        del arguments[rng.randrange(1, len(arguments))]
    return [word.replace("\0", "") for word in arguments]


def mutated_json(rng, document):
    """Another value, of another type perhaps, for some fields of a document."""
    values = [None, True, 0, -1, 1, 2, 3, 7, 64, 1e300, 2.5, 1 << 40, 1 << 63, (1 << 64) - 1, 1 << 70, "", "bfloat16",
              "bert", "a\nb", "\ud800", [], {}, [[]], ["a", 1], {"a": {"b": []}}, "x" * 3000]
    for _ in range(rng.choice([1, 1, 2, 3])):
        key = rng.choice(sorted(document) + ["num_experts", "kv_lora_rank", "text_config", "dtype", "head_dim"])
        edit = rng.randrange(4)
        if edit == 0:
            document.pop(key, None)
        elif edit == 1:
            document[key] = "NESTED"
        else:
            document[key] = rng.choice(values)
    if rng.random() < 0.1:
        document = {"text_config": document, "dtype": rng.choice(values)}
    depth = rng.choice([10, 1000, 100_000])
    nested = rng.choice(["[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth, "[" * depth])
    return json.dumps(document).replace('"NESTED"', nested).encode()


def mutated_bytes(rng, text):
    text = bytearray(text)
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(text) + 1)
        edit = rng.randrange(4)
        if edit == 0:
            del text[at:at + rng.randrange(1, 40)]
        elif edit == 1:
            text[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 8)))
        elif edit == 2:
            text[at:at] = text[rng.randrange(len(text) + 1):][:rng.randrange(60)]
        elif at < len(text):
            text[at] = rng.choice(b'0123456789-.eE"{}[],:\\\x00\xff')
    return bytes(text)


def random_place(rng, document):
    """A list or object somewhere in a document, and a key of it."""
    while True:
        keys = list(document) if isinstance(document, dict) else range(len(document))
        if not keys:
            return document, None
        key = rng.choice(list(keys))
        if not isinstance(document[key], (dict, list)) or not document[key] or rng.random() < 0.2:
            return document, key
        document = document[key]


def mutated_tree(rng, document):
    """A document in which values at some places are gone, nested deeply, no numbers, or not to be shown."""
    values = [None, True, 0, -1, 1, 2.5, 1e300, 1e-300, 1 << 40, 1 << 70, "", "a\nb", "\x1b[31m", "\0", "\x9b", [], {},
              [[]], float("nan"), float("inf"), float("-inf"), "HUGE", "NESTED", "NESTED", "x" * 5000]
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        at, key = random_place(rng, document)
        if key is None:
            continue
        if rng.random() < 0.2:
            del at[key]
        elif rng.random() < 0.15 and isinstance(at, dict):
            at[rng.choice(["x", "\x1b[31m", "name", "n" * 3000])] = at.pop(key)
        else:
            at[key] = rng.choice(values)
    depth = rng.choice([10, 99, 101, 1000, 100_000])
    nested = rng.choice(["[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth, "[" * depth])
    return json.dumps(document).replace('"NESTED"', nested).replace('"HUGE"', "1e400").encode()


def mutated_table(rng, text):
    """Lines of a text in which words are others."""
    strange = ["", "nan", "inf", "-inf", "1e400", "-1", "+-5", "2147483647", "9" * 30, "1e12", "\x1b[31m", "a b", '"', "%",
               "x" * 3000, "=", ",", "0x1"]
    lines = text.split("\n")
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(lines))
        words = re.split(r"([ ,])", lines[at])
        words[rng.randrange(len(words))] = rng.choice(strange)
        lines[at] = "".join(words)
    return "\n".join(lines).encode()


SCHEMA = {"title": "t", "known": ["n"], "gathered": [{"name": "half", "is": "n / 2"}, "m"], "unit": 1e-6, "gathering": "n * 1e-9",
          "candidates": [{"name": "a", "time": "t_a"}, {"name": "b", "time": "t_b", "setup": "n", "guard": "m <= 8 and n > 1"}]}
TABLE = "n,m,t_a,t_b\n" + "".join(f"{i},{i % 9},{1 + i},{5 + i / 4}\n" for i in range(1, 40))
LEAF = [{"choice": 0, "records": 9, "loss": 0.5}]
SELECTOR = {"untax_selector": 1, "schema": SCHEMA, "fallback": 0,
            "trees": {"known": [{"choice": 0, "records": 9, "loss": 1, "feature": 0, "threshold": 2.5, "low": 1, "high": 2}] +
                      LEAF + [{"choice": 1, "records": 4, "loss": 0}], "gathered": LEAF, "gather": LEAF}}
MATRIX = "%%MatrixMarket matrix coordinate real symmetric\n% c\n5 5 6\n1 1 1.5\n2 1 2\n3 3 -4e1\n4 2 9\n5 5 1\n5 1 +3\n"
REPORT_PART = {"format": "untax-taxes", "format_version": 1, "machine": "m", "cpu": "c", "cores": 1, "backend": "host"}


def other_file(rng, folder):
    """Arguments that name a damaged file of any other kind."""
    def written(name, text):
        path = folder / name
        chance = rng.random()
        if chance < 0.05:
            text = b"\xef\xbb\xbf" + text
        elif chance < 0.1:
            text = gzip.compress(text)
        elif chance < 0.15:
            text = gzip.compress(text)[:rng.randrange(1, 60)]
        elif chance < 0.2:
            text = text.decode(errors="replace").encode("utf-16")
        if rng.random() < 0.02:
            os.mkfifo(path)
        else:
            path.write_bytes(text)
        return str(path)

    def of_document(name, document):
        whole = json.dumps(document, indent=1).encode()
        return written(name, mutated_tree(rng, document) if rng.random() < 0.7 else mutated_bytes(rng, whole))

    def of_text(name, text):
        return written(name, mutated_table(rng, text) if rng.random() < 0.7 else mutated_bytes(rng, text.encode()))

    def whole(name, text):
        (folder / name).write_text(text)
        return str(folder / name)

    def loaded(path):
        return json.loads((ROOT / path).read_text())

    kind = rng.randrange(8)
    machine = rng.choice(["machines/h200-8.json", "machines/pcie-4.json", "machines/h200-2x8.json"])
    if kind == 0:
        return ["machine", of_document("machine.json", loaded(machine))]
    if kind == 1:
        return ["locality", "transpose", "m=256", "n=256", "--device",
                of_document("device.json", loaded(f"devices/{rng.choice(['mi300x', 'h200'])}.json"))]
    if kind == 2:
        kernel = (ROOT / "devices/kernels/transpose.txt").read_text()
        return ["locality", of_text("kernel.txt", kernel), "m=256", "n=256", "--device", "h200"]
    if kind == 3:
        return ["select", "train", "--schema", of_document("schema.json", json.loads(json.dumps(SCHEMA))), "--table",
                whole("table.csv", TABLE), "--json", str(folder / "out.json")]
    if kind == 4:
        return ["select", "train", "--schema", whole("schema.json", json.dumps(SCHEMA)), "--table", of_text("table.csv", TABLE),
                "--json", str(folder / "out.json")]
    if kind == 5:
        return ["select", "explain", "--selector", of_document("selector.json", json.loads(json.dumps(SELECTOR))), "n=3", "m=2"]
    if kind == 6:
        return ["run", "spmv", "--matrix", of_text("m.mtx", MATRIX), "--repeat", "1", "--threads", "1", "--kernel",
                rng.choice(["csr_thread", "coo", "csr_merge_path"])]
    return ["taxes", "--operator", "all_gather_gemm", "--ranks", "2", "-m", "16", "-n", "64", "-k", "64", "--machine",
            str(ROOT / "machines/h200-8.json"), "--compare", of_document("report.json", dict(REPORT_PART))]


def mutated_file(rng, folder):
    """Arguments that name a damaged config.json, of a model that is small where it is whole."""
    source = json.loads(rng.choice(sorted(MODELS.glob("*.json"))).read_text())
    small_sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
                   "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 100, "moe_intermediate_size": 32,
                   "q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8,
                   "v_head_dim": 8, "first_k_dense_replace": 1}
    source.update({key: value for key, value in small_sizes.items() if key in source})
    text = mutated_json(rng, source) if rng.random() < 0.6 else mutated_bytes(rng, json.dumps(source, indent=1).encode())
    path = folder / "config.json"
    path.write_bytes(text)
    return ["taxes", "--backend", "host", "--model", str(path), "--tensor-parallel", rng.choice(["1", "2"]),
            "--tokens", rng.choice(["1", "4"]), "--keys", rng.choice(["0", "16"]), "--repeat", "1"]


def complaint(status, out, err, seconds, limit):
    """The fault of the way in which the command ended, or None."""
    if seconds > limit:
        return f"took {seconds:.1f} s"
    if "Sanitizer" in err or "runtime error:" in err:
        return "a sanitizer found something"
    if status not in (0, 1, 2):
        return f"exit status {status}"
    lines = err.splitlines()
    if status == 0 and lines:
        return "something on stderr, and exit status 0"
    if status == 2 and (len(lines) != 1 or not lines[0].startswith("untax: ")):
        return "an answer to what was asked wrongly has to be one line"
    if status == 2 and out:
        return "something on stdout, though nothing was done"
    if status == 1 and lines and not lines[0].startswith("untax: "):
        return "the first line is not that of untax"
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f]", err):
        return "control characters on stderr"
    return ""


def run_case(command, arguments, folder, limit):
    begin = time.monotonic()
    # Children of the command may hold its pipes open, so what it says goes to files.
    with open(folder / "out", "w+b") as out, open(folder / "err", "w+b") as err:
        try:
            status = subprocess.run([command] + arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder,
                                    timeout=limit, check=False).returncode
        except subprocess.TimeoutExpired:
            return f"took more than {limit} s", "", "none"
        err.seek(0)
        text = err.read().decode(errors="replace")
        printed = os.fstat(out.fileno()).st_size > 0
        return complaint(status, printed, text, time.monotonic() - begin, limit), text, status


CASES = {"files": mutated_file, "others": other_file, "arguments": lambda rng, folder: random_arguments(rng)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command")
    parser.add_argument("--files", type=int, default=0, help="damaged config files to try")
    parser.add_argument("--others", type=int, default=0, help="damaged files of other kinds to try")
    parser.add_argument("--arguments", type=int, default=0, help="random argument lists to try")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30), help="of the first case")
    parser.add_argument("--limit", type=float, default=20, help="seconds that a case may take")
    options = parser.parse_args()
    command = os.path.abspath(options.command)
    for name in list(os.environ):
        if re.match(r"(UNTAX_|RANK$|WORLD_SIZE$|LOCAL_|OMPI_|MV2_|PMI_|PMIX_|PALS_|FLUX_|SLURM_)", name):
            del os.environ[name]
    failures = 0
    statuses = {}
    slowest = 0.0
    for kind, count in (("files", options.files), ("others", options.others), ("arguments", options.arguments)):
        for case in range(count):
            seed = options.seed + case
            rng = random.Random(f"{kind} {seed}")
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                arguments = CASES[kind](rng, folder)
                begin = time.monotonic()
                wrong, text, status = run_case(command, arguments, folder, options.limit)
                slowest = max(slowest, time.monotonic() - begin)
            statuses[str(status)] = statuses.get(str(status), 0) + 1
            if wrong:
                failures += 1
                shown = " ".join(repr(word[:60]) for word in arguments)
                print(f"WRONG: {wrong}: --{kind} 1 --seed {seed}: untax {shown}\n  {text[:1500]}", flush=True)
    counts = ", ".join(f"{n} times {s}" for s, n in sorted(statuses.items()))
    print(f"{options.files + options.others} files and {options.arguments} argument lists from seed {options.seed}: {failures} wrong; "
          f"exit status {counts}; the slowest took {slowest:.1f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
