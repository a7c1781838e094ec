#!/usr/bin/env python3
"""Kernels have the instructions that carry order: each site of tests/ptx/sites.cu compiles to PTX with the instructions
that docs/memory_model.md lists, in their order, and to machine code without spills or stack; so do the kernels of the
rma suite, those that gather or scatter in one phase, and those of the GEMM and of attention of many queries, whose
multiplications are not serialised. The kernels of attention for heads of 64 and 128, and those that gather by packets,
have the instructions that carry order, and spill nothing; the former also those whose blocks add sums up between them.
No kernel has a multimem instruction. tests/style/ptx_paths.py checks the facts that hold on every path through one
kernel of each kind that moves and multiplies.

Takes nvcc and no GPU; skipped without nvcc. Sources that passed are remembered until they, or their includes, change.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cached
import gate
import ptx_paths

SITES = "tests/ptx/sites.cu"
# Sources of kernels that the build makes, below its directory: of a line of kernels.hpp, and those that only send.
GENERATED = "generated/"
KERNELS = GENERATED + "kernels/"
COMM = GENERATED + "comm/"
PAIRS = KERNELS + "gemm_weights_by_64_pairs.cu"
MEASURED = ("bench/suites/cuda/rma_rates.cu", "bench/suites/cuda/rma_latency.cu", "bench/suites/cuda/rma_atomics.cu",
            KERNELS + "gemm_rows_by_256.cu", KERNELS + "gemm_rows_by_224.cu", KERNELS + "gemm_weights_by_16.cu", PAIRS,
            "engines/gpu/comm/gather_bulk_kernel.cu", COMM + "gather_tma.cu", COMM + "scatter.cu",
            "engines/gpu/flash_attention/variants/width_128.cu")
GATHER = KERNELS + "gather_packets_by_16_pairs.cu"
# Not that of heads of 256 elements, which spills.
ATTENTION = ("engines/gpu/attention/variants/width_64.cu", "engines/gpu/attention/variants/width_128.cu")
ARCHITECTURE = "-gencode=arch=compute_90a,code=sm_90a"

RAISE = r"red\.release\.sys\.global\.max\.u64"
POLL = r"ld\.acquire\.sys\.(b|u)64"
BLOCK = r"(bar|barrier)\.(cta\.)?(sync|red)"
WARP = r"bar\.warp\.sync"
STORE = r"st\.(global\.)?(v\d\.)?(b|u|s)(32|64)\b"

# The instructions that each kernel must have, one after the other. The text follows the blocks of the program, not its
# loops, so what is in different loops is listed on its own.
ORDER = {
    "site_signal": [STORE, BLOCK, RAISE],
    "site_signal_warp": [STORE, r"bar\.warp\.sync", RAISE],
    "site_signal_add": [STORE, BLOCK, r"red\.release\.sys\.global\.add\.u64"],
    "site_wait": [POLL, BLOCK, r"ld\.(global\.)?(b|u|s)32"],
    "site_put_with_signal": [r"st\.(global\.)?v4", BLOCK, RAISE],
    "site_bulk_put": [r"fence\.proxy\.async\.shared::cta", BLOCK, r"fence\.proxy\.async\s*;",
                      r"mbarrier\.arrive\.expect_tx\.release\.cta", r"cp\.async\.bulk\.shared::cluster\.global"],
    "site_bulk_put, on": [r"cp\.async\.bulk\.global\.shared::cta\.bulk_group", r"cp\.async\.bulk\.commit_group",
                          r"cp\.async\.bulk\.wait_group\s+0", BLOCK, RAISE],
    "site_bulk_put, stages": [r"mbarrier\.try_wait\.parity"],
    "site_bulk_put, reuse": [r"cp\.async\.bulk\.wait_group\.read\s+1", r"cp\.async\.bulk\.shared::cluster\.global"],
    "site_send_packets": [r"st\.relaxed\.sys\.global\.b128"],
    "site_receive_packets": [r"ld\.relaxed\.sys\.global\.b128", r"vote\.sync\.ballot"],
    "site_small_put": [STORE, BLOCK, r"st\.release\.sys\.global\.b128"],
    "site_receive_small_put": [r"ld\.acquire\.sys\.global\.b128", r"vote\.sync\.ballot", BLOCK,
                               r"ld\.(global\.)?(b|u|s)32"],
    "site_barrier": [BLOCK, RAISE, POLL, r"vote\.sync\.ballot", BLOCK],
    "site_quiet": [STORE, BLOCK, r"fence\.acq_rel\.sys", BLOCK, STORE],
    "site_channel": [POLL, RAISE, POLL, RAISE],
    "site_warp_channel": [POLL, WARP, RAISE, WARP, POLL, WARP, RAISE],
    "site_block_counter": [POLL, r"bar\.warp\.sync", r"st\.release\.cta\.(b|u)64"],
    "site_block_counter, seen": [r"ld\.acquire\.cta\.(b|u)64", r"ld\.(global\.)?(b|u|s)32"],
    "site_atomics": [r"atom\.add\.acq_rel\.sys", r"st\.release\.sys\.(b|u)64", r"ld\.acquire\.sys\.(b|u)64"],
}
FORBIDDEN = {
    r"\bmultimem\.": "multicast is not used",
    r"\btrap\b": "a trap poisons the context",
    r"fence\.sc": "release and acquire on the flag do",
    r"ld\.relaxed\.sys\.(b|u)64": "whoever looks at a counter acquires",
    r"\bactivemask\b": "kernels note events for traces only in a build with UNTAX_KERNEL_TRACE",
}


def nvcc():
    for path in (shutil.which("nvcc"), os.environ.get("CUDA_HOME", "") + "/bin/nvcc", "/usr/local/cuda/bin/nvcc"):
        if path and Path(path).is_file():
            return path
    print("skipped: nvcc is not installed")
    sys.exit(gate.SKIPPED)


def path_of(tree, name):
    return (tree.build if name.startswith(GENERATED) else tree.root) / name


def compiled(tree, name, *options):
    """The messages of nvcc, and the text that it writes."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        done = subprocess.run(
            [nvcc(), "-std=c++20", ARCHITECTURE, "-DFMT_USE_CONSTEXPR=1", f"-I{tree.root}/include", f"-I{tree.root}",
             f"-I{gate.PROJECT}/include", f"-I{gate.PROJECT}", *options, "-o", str(out), str(path_of(tree, name))],
            capture_output=True, text=True)
        if done.returncode:
            return done.stderr, None
        return done.stdout + done.stderr, out.read_bytes().decode("ascii", errors="replace")


def kernels(ptx):
    """The instructions of each kernel, by its name."""
    starts = [(match.start(), match.group(1)) for match in re.finditer(r"\.entry\s+(\w+)\s*\(", ptx)]
    ends = [start for start, _ in starts[1:]] + [len(ptx)]
    return {name: re.sub(r"//[^\n]*", "", ptx[start:end]) for (start, name), end in zip(starts, ends)}


def first_missing(body, wanted):
    """The first pattern that does not follow those before it, or None."""
    at = 0
    for pattern in wanted:
        match = re.compile(pattern).search(body, at)
        if not match:
            return pattern
        at = match.end()
    return None


def orders(tree):
    said, ptx = compiled(tree, SITES, "-ptx")
    if ptx is None:
        return [f"{SITES}: does not compile: {said.strip()[-500:]}"]
    findings = []
    entries = kernels(ptx)
    for site, wanted in ORDER.items():
        name = site.split(",")[0]
        if name not in entries:
            findings.append(f"{SITES}: the kernel {name} is missing")
        elif missing := first_missing(entries[name], wanted):
            findings.append(f"{SITES}: {name} has no '{missing}' where it belongs; docs/memory_model.md says why it "
                            "has to be there")
    return findings + [f"{SITES}: {name} has '{pattern}': {why}" for name, body in entries.items()
                       for pattern, why in FORBIDDEN.items() if re.search(pattern, body)]


# The instructions that kernels and functions called by them must have, in any order: kernels that send packets, and
# kernels whose blocks add sums up between them.
OF_PACKETS = (r"st\.relaxed\.sys\.global\.b128", r"ld\.relaxed\.sys\.global\.b128")
OF_PIECES = (r"st\.async\.shared::cluster\.mbarrier::complete_tx::bytes\.v4",
             r"mbarrier\.try_wait\.parity\.acquire\.cluster")


def has_not(tree, name, wanted):
    """Of those, what a file lacks."""
    said, ptx = compiled(tree, name, "-ptx")
    if ptx is None:
        return [f"{name}: does not compile: {said.strip()[-500:]}"]
    return ([f"{name}: has no '{pattern}' any more" for pattern in wanted if not re.search(pattern, ptx)] +
            [f"{name}: has '{pattern}': {why}" for pattern, why in FORBIDDEN.items() if re.search(pattern, ptx)])


def spills(tree, name, stack_too=True):
    """Kernels of a file that use more registers than there are, have a stack, as calls need one, or whose tensor cores
    wait for each other."""
    said, code = compiled(tree, name, "-cubin", "-Xptxas", "-v")
    if code is None:
        return [f"{name}: does not compile: {said.strip()[-500:]}"]
    findings = [f"{name}: {match.group(1)} in {match.group(2)}"
                for match in re.finditer(r"Potential Performance Loss: (.*?) in the function '(\w+)'", said)]
    said_of_kernel = r"Function properties for (\w+)\s+(\d+) bytes stack frame, (\d+) bytes spill stores"
    for match in re.finditer(said_of_kernel, said):
        kernel, stack, spilled = match.group(1), int(match.group(2)), int(match.group(3))
        if spilled or (stack and stack_too):
            findings.append(f"{name}: {kernel} has {stack} bytes of stack and spills {spilled}; kernels of a fast path "
                            "have neither")
    return findings


# Of each kind of kernel one, in which the rules of paths are looked at.
MOVING = (KERNELS + "gather_rows_by_256.cu", KERNELS + "scatter_rows_by_256.cu", COMM + "gather.cu",
          COMM + "gather_tma.cu", COMM + "scatter.cu", "engines/gpu/comm/gather_bulk_kernel.cu")


def paths(tree, name):
    """Of the kernels of a file, what does not hold on every path."""
    said, ptx = compiled(tree, name, "-ptx")
    if ptx is None:
        return [f"{name}: does not compile: {said.strip()[-500:]}"]
    return [f"{name}: {kernel}: {wrong}" for kernel, body in kernels(ptx).items() for wrong in ptx_paths.broken(body)]


def looks():
    """By name: what is looked at, by itself."""
    checks = {f"{SITES} orders": lambda tree: orders(tree)}
    for name in (SITES, *MEASURED):
        checks[f"{name} spills"] = lambda tree, name=name: spills(tree, name)
    # Of attention, one width: the others are the same template.
    for name, wanted in ((ATTENTION[1], OF_PACKETS), (GATHER, OF_PACKETS), (PAIRS, OF_PIECES)):
        checks[f"{name} has"] = lambda tree, name=name, wanted=wanted: has_not(tree, name, wanted)
    for name in (*ATTENTION, GATHER):
        checks[f"{name} spills"] = lambda tree, name=name: spills(tree, name, stack_too=False)
    for name in MOVING:
        checks[f"{name} paths"] = lambda tree, name=name: paths(tree, name)
    return checks


def fingerprint(tree, look, version):
    """Of what a look depends on; of a source that the build makes, of what that includes."""
    name = look.split()[0]
    rules = [look, version] + [(gate.PROJECT / "tests/style" / own).read_text() for own in ("ptx.py", "ptx_paths.py")]
    if not name.startswith(GENERATED):
        return cached.fingerprint(tree, name, *rules)
    source = path_of(tree, name).read_text()
    headers = re.findall(r'#include "(.*)"', source)
    return cached.fingerprint(tree, headers[-1], source, *rules,
                              *(cached.fingerprint(tree, header) for header in headers[:-1]))


def check(tree):
    all_looks = looks()
    version = cached.version_of(nvcc())
    return cached.check_all(tree, "ptx", list(all_looks), lambda look: fingerprint(tree, look, version),
                            lambda look: all_looks[look](tree))


def with_change(header, old, new):
    """A tree with the sites, and one header in which an instruction was weakened."""
    text = (gate.PROJECT / "include/untax" / header).read_text()
    if old not in text:
        print(f"self-test: {header} has no '{old}' any more")
        sys.exit(1)
    return header, text.replace(old, new)


MUTANTS = [
    ("memory/cuda_memory.cuh", "red.release.sys.global.max", "red.relaxed.sys.global.max"),
    ("memory/cuda_memory.cuh", "red.release.sys.global.add", "red.relaxed.sys.global.add"),
    ("memory/cuda_memory.cuh", "load(cuda::memory_order_acquire)", "load(cuda::memory_order_relaxed)"),
    ("rma/bulk_ring.cuh", "cp_async_bulk_wait_group(cuda::ptx::n32_t<0>())",
     "cp_async_bulk_wait_group_read(cuda::ptx::n32_t<0>())"),
    ("rma/bulk_ring.cuh", "    cuda::ptx::fence_proxy_async();\n", ""),
    ("rma/device_signal.cuh", "  group.sync();\n  if (group.thread_rank() == 0) cuda_memory::raise_release",
     "  if (group.thread_rank() == 0) cuda_memory::raise_release"),
    ("rma/packet.cuh", "st.relaxed.sys.global.b128", "st.weak.global.b128"),
    ("rma/packet.cuh", "st.release.sys.global.b128", "st.relaxed.sys.global.b128"),
    ("rma/packet.cuh", "ld.acquire.sys.global.b128", "ld.relaxed.sys.global.b128"),
    ("flow/device_packet.cuh", "load_packet<order>(first)", "load_packet(first)"),
    ("memory/block_counters.cuh", "memory_order_release", "memory_order_relaxed"),
    ("memory/block_counters.cuh", "memory_order_acquire", "memory_order_relaxed"),
]


def self_test():
    wrong = len(judged := ptx_paths.judged_wrongly())
    for body in judged:
        print(f"a path judged wrongly:\n{body}")

    def findings_of(mutant):
        header, old, new = mutant
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / SITES).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(gate.PROJECT / SITES, root / SITES)
            if header:
                # All headers of a layer lie beside the changed one, so that each finds it first.
                shutil.copytree(gate.PROJECT / "include", root / "include")
                path, text = with_change(header, old, new)
                (root / "include/untax" / path).write_text(text)
            return orders(gate.Tree(folder, folder, folder))

    mutants = [(None, None, None), *MUTANTS]
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for (header, old, new), findings in zip(mutants, pool.map(findings_of, mutants)):
            if bool(findings) != bool(header):
                wrong += 1
                print(f"should be {'rejected' if header else 'accepted'}: {header}: '{old}' -> '{new}'")
                print("\n".join(findings))
    print(f"self-test: {len(MUTANTS)} mutants and the tree itself, {len(ptx_paths.BAD)} bad paths and "
          f"{len(ptx_paths.GOOD)} good ones, {wrong} judged wrongly")
    return wrong


if __name__ == "__main__":
    if "--self-test" in sys.argv:
        sys.exit(1 if self_test() else 0)
    gate.main(check, [])
