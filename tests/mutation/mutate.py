#!/usr/bin/env python3
"""Changes the sources in small ways and counts which changes the tests notice. README.md says how it is used."""

import argparse
import hashlib
import json
import sys
import threading
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from operators import mutations_of  # noqa: E402
from scratch import Scratch, say  # noqa: E402
from trials import Cases, verdict_of  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENT = Path(__file__).resolve().parent / "equivalent.json"

HOST = ["src/symmetric/*.*pp", "src/flow/*.*pp", "src/world/*.*pp", "include/untax/flow/*.hpp", "include/untax/rma/*.hpp",
        "include/untax/symmetric/*.hpp", "include/untax/tile/*.hpp", "include/untax/world/*.hpp", "engines/host/*.*pp",
        "engines/schedule/*.*pp", "ops/*/layout.hpp", "ops/*/protocol.hpp", "ops/common/*.*pp",
        "ops/collectives_common/*.*pp", "ops/choice/*.*pp", "ops/broadcast/direct_relay.hpp", "ops/*/operator.cpp",
        "ops/flash_decode/planning.cpp", "ops/flash_decode/host.cpp", "ops/merge_partial_attention/planning.cpp",
        "ops/merge_partial_attention/host.cpp", "ops/merge_partial_attention/packing.cpp", "ops/attention_common/*.*pp"]  # fmt: skip
PLANS = ["engines/gpu/gemm/*.hpp", "engines/gpu/gemm/*.cpp", "engines/gpu/gemm_alone/*.cpp", "engines/gpu/channel/*.hpp", "engines/gpu/copy/*.hpp", "engines/gpu/comm/*.hpp",
         "engines/gpu/collectives/*.hpp", "engines/gpu/packets/*.hpp", "engines/gpu/comm/sources/*.hpp",
         "ops/*/device_plan*", "ops/all_gather_gemm/chunking.cpp", "ops/plan_check/check.cpp",
         "ops/collectives_common/device_choice.cpp"]  # fmt: skip
# Files without behaviour that a test should hold, files that only scripts of the command reach, and code that never
# runs without a GPU: calls of CUDA, and arguments of kernels, whose headers do not compile without CUDA.
LEFT_OUT = ["engines/gpu/comm/dma_sender.hpp", "engines/gpu/gemm/launcher.hpp", "engines/gpu/gemm/io.hpp",
            "engines/gpu/gemm/tensor_map.hpp", "engines/gpu/comm/sinks/owner_sums.hpp", "engines/gpu/comm/sources/gathered.hpp", "engines/gpu/comm/sinks/all_copies.hpp",
            "engines/gpu/comm/*_kernels.hpp", "engines/gpu/comm/*_senders.hpp", "engines/gpu/comm/row_sums.hpp", "engines/gpu/comm/sinks/row_partials.hpp", "engines/gpu/channel/run_arguments.hpp", "engines/gpu/channel/mutant.hpp",
            "ops/common/launched_gemm.hpp", "include/untax/flow/device_control.hpp",
            "engines/gpu/gemm/variant.hpp", "engines/gpu/gemm/kernels.hpp",
            "*test*", "ops/_skeleton/*", "*/no_cuda/*", "*/no_cuda.cpp", "*/cuda/*", "*workload*", "*registry*", "*check_grid*",
            "*random_matrix*", "ops/common/*trial.hpp", "ops/common/operand_set*", "ops/common/device_reference*", "ops/common/timed_operands*", "ops/common/model_check.*",
            "ops/common/device_runner*", "ops/choice/gemm_timer*", "*race_marks*", "ops/common/own_stream*",
            "src/world/local_gpus.cpp", "src/world/interruption.*"]  # fmt: skip
# Programs that see a file, quickest first. Those of other folders are tried, too, where one comes by a mutant.
PROGRAMS = ["core_test", "tile_test", "rma_test", "checks_test", "world_test", "schedule_test", "litmus_test", "plans_test", "sparse_test", "choice_test", "timing_test", "c_abi_test", "cli_test", "trace_test", "locality_test",
            "pretended_test", "linear_test", "rope_append_test", "decoder_test", "lifetime_test", "taxes_test", "select_test", "order_test",
            "_skeleton_test", "all_gather_test", "broadcast_test", "all_to_all_test", "reduce_scatter_test",
            "all_reduce_test", "all_gather_gemm_test", "gemm_all_scatter_test", "gemm_reduce_scatter_test", "gemm_all_reduce_test", "all_reduce_norm_test",
            "flash_decode_test", "merge_partial_attention_test", "flash_attention_test", "faults_test", "multi_test"]  # fmt: skip
MODEL_PROGRAMS = ["all_gather_gemm_model_test", "gemm_all_scatter_model_test", "gemm_reduce_scatter_model_test",
                  "gemm_all_reduce_model_test", "all_reduce_norm_model_test",
                  "flash_decode_model_test", "merge_partial_attention_model_test", "all_gather_model_test", "all_reduce_model_test",
                  "broadcast_model_test", "schedule_model_test", "litmus_model_test"]  # fmt: skip


def matches(name, globs):
    return any(fnmatch(name, g) for g in globs)


def all_mutations(globs, only, sources):
    mutations = []
    for name in sorted(n for n in sources if matches(n, globs)):
        if not name.endswith((".hpp", ".cpp")) or matches(name, LEFT_OUT) or (only and not matches(name, only)):
            continue
        source = sources[name].decode()
        for m in mutations_of(name, source):
            m.first_line = source.count("\n", 0, m.start) + 1
            m.last_line = source.count("\n", 0, m.end) + 1
            mutations.append(m)
    return list({m.key: m for m in mutations}.values())


def read_results(path):
    """By key; a later line replaces an earlier one."""
    if not path.exists():
        return {}
    return {row["key"]: row for row in map(json.loads, path.read_text().splitlines())}


def explained():
    rows = json.loads(EQUIVALENT.read_text()) if EQUIVALENT.exists() else []
    return {(row["file"], row["line"], row["change"]): row["reason"] for row in rows}


def stale_reasons(sources):
    """The explained mutations that these sources no longer have."""
    keys = {(m.file, m.context, m.change) for m in all_mutations(HOST + PLANS, None, sources)}
    return [key for key in explained() if key not in keys]


def report(results):
    reasons = explained()
    table, survivors, excused = defaultdict(Counter), [], []
    for row in results.values():
        if matches(row["file"], LEFT_OUT):
            continue
        folder = "/".join(row["file"].split("/")[:2 if not row["file"].startswith("include") else 3])
        state = row["verdict"]
        if state in ("survived", "unreached"):
            reason = reasons.get((row["file"], row["context"], row["change"]))
            (excused if reason else survivors).append((row, reason))
            state = "equivalent" if reason else state
        table[folder][state] += 1
    columns = ("killed", "timeout", "survived", "unreached", "equivalent")
    print(f"{'folder':32}" + "".join(f"{c:>11}" for c in columns) + f"{'killed %':>10}")
    for folder in [*sorted(table), "all"]:
        row = table[folder] if folder != "all" else sum(table.values(), Counter())
        noticed, counted = row["killed"] + row["timeout"], sum(row.values()) - row["refused"] - row["equivalent"]
        share = f"{100 * noticed / counted:10.1f}" if counted else f"{'-':>10}"
        print(f"{folder:32}" + "".join(f"{row[c]:>11}" for c in columns) + share)
    for title, rows in (("Survivors", survivors), ("Equivalent", excused)):
        print(f"\n{title}: {len(rows)}")
        for row, reason in sorted(rows, key=lambda r: (r[0]["file"], r[0]["line"])):
            print(f"  {row['key']} {row['file']}:{row['line']} {row['verdict']}: {row['change']}")
            print(f"      {row['context']}" + (f"\n      {reason}" if reason else ""))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scratch", type=Path, required=True, help="folder for the copy, its build and the results")
    parser.add_argument("--sample", type=int, default=200, help="how many mutants to try (default 200; 0: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", choices=("host", "plans", "all"), default="all")
    parser.add_argument("--only", action="append", metavar="GLOB", help="only files like this")
    parser.add_argument("--key", action="append", help="only these mutants")
    parser.add_argument("--program", action="append", help="only these test programs")
    parser.add_argument("--models", action="store_true", help="also the programs that run the model checker, which are slow")
    parser.add_argument("--every", action="store_true",
                        help="compile all mutants of both sets in: one build for any number of samples and seeds")
    parser.add_argument("--resume", action="store_true", help="leave out what the results already decide")
    parser.add_argument("--again", action="store_true", help="only what survived so far")
    parser.add_argument("--results", type=Path, help="JSON lines (default: results.jsonl in the scratch folder)")
    parser.add_argument("--report", action="store_true", help="only print the table of the results")
    parser.add_argument("--list", action="store_true", help="only print the chosen mutants")
    parser.add_argument("--check", action="store_true", help="only look whether equivalent.json speaks of today's sources")
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


def choose(options, known, sources):
    globs = {"host": HOST, "plans": PLANS, "all": HOST + PLANS}[options.set]
    mutations = all_mutations(globs, options.only, sources)
    if options.set == "host":
        mutations = [m for m in mutations if not matches(m.file, PLANS)]
    if options.key:
        return [m for m in mutations if m.key in options.key]
    if options.again:
        lost = {k for k, r in known.items() if r["verdict"] in ("survived", "unreached")}
        excused = explained()
        return [m for m in mutations if m.key in lost and (m.file, m.context, m.change) not in excused]
    # A file that changes does not deal the others anew.
    mutations.sort(key=lambda m: hashlib.sha1(f"{options.seed}|{m.key}".encode()).digest())
    return mutations[: options.sample] if options.sample else mutations


def numbers_of(mutations, path):
    """Pairs. A mutation keeps its number, so that a change of one file leaves the others as they were built."""
    numbers = json.loads(path.read_text()) if path.exists() else {}
    for m in sorted(mutations, key=lambda m: m.key):
        numbers.setdefault(m.key, len(numbers))
    path.write_text(json.dumps(numbers))
    return [(numbers[m.key], m) for m in mutations]


def main():
    options = arguments()
    options.scratch.mkdir(parents=True, exist_ok=True)
    results = options.results or options.scratch / "results.jsonl"
    known = read_results(results)
    if options.report:
        report(known)
        return
    scratch = Scratch(ROOT, options.scratch.resolve() / "copy", options.jobs)
    scratch.copy_tree()
    chosen = choose(options, known, scratch.originals)
    if options.list:
        for m in chosen:
            print(f"{m.key} {m.kind:9} {m.file}:{m.line} {m.change}")
        return
    if options.check:
        stale = stale_reasons(scratch.originals)
        for file, line, change in stale:
            print(f"{EQUIVALENT.name} explains a mutation that there is not: {file}: {change} in: {line}")
        sys.exit(1 if stale else 0)
    refused = {k for k, row in known.items() if row["verdict"] == "refused"}
    tried = {m.key for m in chosen}
    if options.every:
        chosen = all_mutations(HOST + PLANS, None, scratch.originals)
    numbered = {n: m for n, m in numbers_of(chosen, options.scratch / "numbers.json") if m.key not in refused}
    say(f"{len(numbered)} mutants in {len({m.file for m in numbered.values()})} files")

    writing = threading.Lock()

    def note(m, verdict, case, out):
        row = {"key": m.key, "verdict": verdict, "by": case, "kind": m.kind, "file": m.file, "line": m.line,
               "context": m.context, "change": m.change}  # fmt: skip
        with writing:
            out.write(json.dumps(row) + "\n")
            out.flush()

    scratch.put_sources(numbered)
    scratch.configure()
    with results.open("a") as out:

        def refuse(numbers):
            for number in numbers:
                note(numbered.pop(number), "refused", "", out)

        programs = options.program or PROGRAMS + (MODEL_PROGRAMS if options.models else [])
        cases = Cases(scratch, max(numbered, default=0) + 1, options.seed)
        remembered = options.scratch / "cases.json"
        if not cases.load(remembered, scratch.stamp(programs)):
            taken = options.scratch / "taken.json"  # the mutants that a build took before
            before = set(json.loads(taken.read_text())) if taken.exists() else set()
            scratch.drop_what_fails(numbered, {n for n, m in numbered.items() if m.key not in before}, refuse)
            scratch.make(programs, numbered, refuse)
            taken.write_text(json.dumps(sorted(before | {m.key for m in numbered.values()})))
            cases.record(programs, options.jobs, say)
            cases.save(remembered, scratch.stamp(programs))
    with results.open("a") as out:
        decided = {k for k, r in known.items() if r["verdict"] in ("killed", "timeout")} if options.resume else set()
        waiting = [(n, m) for n, m in numbered.items() if m.key in tried and m.key not in decided]

        def trial(pair):
            verdict, case = verdict_of(cases, pair[0])
            note(pair[1], verdict, case, out)
            return verdict

        with ThreadPoolExecutor(options.jobs) as pool:
            counts = Counter()
            for verdict in pool.map(trial, waiting):
                counts[verdict] += 1
                if sum(counts.values()) % 20 == 0:
                    say(", ".join(f"{c} {n}" for n, c in counts.items()))
    report(read_results(results))


if __name__ == "__main__":
    main()
