#!/usr/bin/env python3
"""Every instruction of a kernel that carries order is known, with its reason: tests/ptx/order.txt names each function that
has one, and its steps in order. Places are found by the instruction, in all kernels of engines, ops and the library:
a new one without a line, a line without its place, and one in which a step was dropped, weakened or exchanged are
errors. tests/style/ptx.py checks the instructions that a place compiles to.

Three rules hold in every function, whatever the list says: a function that signals TMA tiles stored by TMA has waited
until they are written, not only read; ordinary stores that TMA or the tensor cores read are followed by a proxy fence
before their signal; and a release is never weaker than its scope.
"""
import re

import gate

LIST = "tests/ptx/order.txt"
BELOW = ("engines/", "ops/", "include/untax/rma/", "include/untax/flow/", "include/untax/memory/")
KERNELS = {".cu", ".cuh"}

# Instructions that carry order: a function that has one of them is a place.
CARRIES = {
    "fence_proxy": r"\bfence_proxy_async\s*\(([^()]*)\)",
    "fence_init": r"\bfence_mbarrier_init\s*\(([^()]*)\)",
    "wait_group_read": r"\bcp_async_bulk_wait_group_read\s*\(([^()]*)(?:\(\))?\)",
    "wait_group": r"\bcp_async_bulk_wait_group\s*\(([^()]*)(?:\(\))?\)",
    "commit": r"\bcp_async_bulk_commit_group\s*\(",
    "tma_store_wait": r"\btma_store_wait\s*(<[^;()]*>)?\s*\(",
    "tma_store_wait_read": r"\btma_store_wait_read\s*(<[^;()]*>)?\s*\(",
    "tma_store_commit": r"\btma_store_commit\s*\(",
    "raise": r"\braise_release\s*\(",
    "release": r"\b(?:warp_)?channel_?(?:\([^;()]*\))?\.(publish|retire)\s*\(",
    "of_output": r"\boutput\(\w*\)\.(acquire)\s*\(",
    "order": r"\bmemory_order(?:_|::)(relaxed|acquire|release|acq_rel|seq_cst)\b",
    "scope": r"\bthread_scope_(thread|block|device|system)\b",
    "barrier": r"\bmbarrier_((?:arrive|try_wait|test_wait)\w*)\s*\(([^()&]*)",
    # Words that are their own signal: their reader resets them to the value that means "not arrived".
    "reset_words": r"\.reset_words\s*\(",
    "reset_sums": r"\bstore_shared_floats\s*\([^;]*?\bno_sum\s*\(",
    "asm": r"\basm\s+volatile\s*\(",
}
# Of inline instructions, those that carry order.
ORDERS = re.compile(r"\b((?:fence|red|atom|mbarrier|st\.(?:async|release|relaxed)|ld\.(?:acquire|relaxed)|"
                    r"(?:cp\.async|wgmma)[\w.:]*(?:wait_group|commit_group|fence))[\w.:]*)")
# Steps beside such an instruction: accesses that are ordered, and signals.
BESIDE = {
    "sync_warp": r"\b__syncwarp\s*\(",
    "sync_block": r"\b__syncthreads\w*\s*\(|\b(?:group|block|block_)\.sync\s*\(",
    "sync_group": r"\bmeet_warpgroup\s*\(",
    "sync_cluster": r"\bmeet_cluster\s*\(",
    "wait": r"\.(wait|wait_for_cluster|has_ended)\s*\(",
    "arrive": r"\.(arrive|arrive_and_expect|arrive_at)\s*\(",
    "tma_store": r"\b(?:tma_store|tma_store_layer)\s*\(",
    "tma_load": r"\b(?:tma_load|tma_load_once|tma_load_layer)\s*\(",
    "bulk": r"\bcp_async_bulk(?:_tensor)?\s*\(",
    "matrices": r"\b(?:write_sixteen|write_eight|store_matrices|settle)\s*(?:<[^;()]*>)?\s*\(",
    "acquire": r"\b(load_acquire|first_missing|\w*await|look)\s*\(|\bchannel_?\.(acquire|reserve\w*)\s*\(",
    "tell": r"(?<![.>])\b(publish|stored|count|count_block)\s*\(|"
            r"(?<!channel\.)(?<!channel_\.)(?<!\)\.)\b(publish|complete)\s*\(",
}
TOKENS = [(kind, re.compile(pattern)) for kind, pattern in {**CARRIES, **BESIDE}.items()]
CONTROL = {"if", "for", "while", "switch", "catch", "return", "sizeof", "asm", "requires", "static_assert", "constexpr"}
HEADER = re.compile(r"(~?\w+|operator\s*\(\))\s*\([^{};]*\)\s*(?:const|noexcept|override|final|mutable|requires[^{};]*|"
                    r":[^{};]*(?:\{[^{};]*\}[^{};]*)*)*\s*$")


def without_comments(text):
    """Comments blanked; what instructions say is kept."""
    return re.sub(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/',
                  lambda m: m.group(0) if m.group(0)[0] == '"' else re.sub(r"[^\n]", " ", m.group(0)), text,
                  flags=re.DOTALL)


def functions(text):
    """(name, begin, end) of the outermost blocks that are bodies of functions."""
    blank = gate.without_comments(text)
    # Default arguments may have braces of their own.
    blank = re.sub(r"=\s*\{(?:[^{};]|\{[^{};]*\})*\}(?=\s*[,)])", lambda m: " " * len(m.group(0)), blank)
    regions, opened, inside = [], [], None
    for at, char in enumerate(blank):
        if char == "{":
            opened.append(at)
            if inside is None:
                start = max(blank.rfind(end, 0, at) for end in ";{}")
                # A constructor's initialisers may have braces of their own.
                header = blank[max(start, 0) + 1:at]
                if match := re.search(r"[^\w:](\w+)\s*\([^{}]*\)\s*(?:const)?\s*:\s", blank[max(0, at - 600):at]):
                    header = header if HEADER.search(header) else blank[max(0, at - 600) + match.start():at]
                named = HEADER.search(" ".join(header.split()))
                if named and named.group(1) not in CONTROL:
                    inside = (named.group(1), at, len(opened))
        elif char == "}" and opened:
            if inside and len(opened) == inside[2]:
                regions.append((inside[0], inside[1], at))
                inside = None
            opened.pop()
    return regions


def steps(body):
    """The steps of a function that carry order, or are ordered, in the order of its text."""
    places = []
    for kind, pattern in TOKENS:
        for match in pattern.finditer(body):
            if kind == "asm":
                text = body[match.end():].split(");")[0]
                places += [(match.start(), kind, f"asm({order})") for literal in re.findall(r'"((?:\\.|[^"\\])*)"', text)
                          for order in ORDERS.findall(re.sub(r"\\[nt]", " ", literal))]
                continue
            said = " ".join((group or "") for group in match.groups()).strip()
            said = " ".join(re.sub(r"cuda::(?:ptx::|std::)?|ptx::|n32_t<", "", said).split()).strip(" <>,;")
            places.append((match.start(), kind, f"{kind}({said})" if said else kind))
    return [(kind, text) for _, kind, text in sorted(places)]


def places(tree):
    """By file and function: the steps of functions that carry order. Steps outside functions, such as a default order,
    belong to the file's declarations."""
    sites = {}
    for name in tree.files(KERNELS, BELOW):
        text = without_comments(tree.text(name))
        bodies = functions(text)
        outside = text
        for _, begin, end in bodies:
            outside = outside[:begin] + re.sub(r"[^\n]", " ", text[begin:end]) + outside[end:]
        parts = [(function, steps(text[begin:end])) for function, begin, end in bodies]
        # The names of functions are no calls.
        named = re.compile(r"(__device__[^;{}()]*?\s)(\w+)(?=\s*\()")
        parts.append(("declarations", [step for step in steps(named.sub(r"\1", outside)) if step[0] in CARRIES]))
        for function, all_steps in parts:
            if not any(kind in CARRIES for kind, _ in all_steps):
                continue
            key, number = f"{name} {function}", 2
            while key in sites:
                key, number = f"{name} {function}#{number}", number + 1
            sites[key] = all_steps
    return sites


def after(kinds, first, then, last):
    """Whether between each `first` and the next `last` behind it there is a `then`."""
    waiting = False
    for kind in kinds:
        if kind in first:
            waiting = True
        elif kind in then:
            waiting = False
        elif kind in last and waiting:
            return False
    return True


def rules(steps_of):
    """Steps that are wrong wherever they occur."""
    kinds = [kind for kind, _ in steps_of]
    wrong = []
    if not after(kinds, {"tma_store"}, {"tma_store_wait", "wait_group"}, {"raise", "release", "tell"}):
        wrong.append("tells of TMA tiles that TMA may not have written")
    if not after(kinds, {"matrices"}, {"fence_proxy"}, {"arrive", "sync_group"}):
        wrong.append("hands on what TMA, or the tensor cores, read, without a proxy fence")
    return wrong


def listed(tree):
    """By place: its steps, and why they are there."""
    steps, place = {}, None
    for line in tree.text(LIST).splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if not line.startswith(" "):
            place = line.strip()
            steps[place] = ["", ""]
        elif line.strip().startswith("-- "):
            steps[place][1] += line.strip()[3:]
        else:
            steps[place][0] = (steps[place][0] + " " + line.strip()).strip()
    return steps


def check(tree):
    known = listed(tree) if (tree.root / LIST).is_file() else {}
    findings = []
    for place, steps_of in places(tree).items():
        is_now = ", ".join(text for _, text in steps_of)
        findings += [f"{place}: {wrong}" for wrong in rules(steps_of)]
        if place not in known:
            findings.append(f"{place}: carries order, and {LIST} does not name it:\n{place}\n    {is_now}\n    -- why")
        elif known[place][0] != is_now:
            findings.append(f"{place}: {LIST} says\n    {known[place][0]}\nand it has\n    {is_now}")
        elif len(known[place][1]) < 10:
            findings.append(f"{place}: {LIST} gives no reason")
        known.pop(place, None)
    return findings + [f"{LIST}: {place} carries no order any more" for place in known]


SENDER = """__device__ void send() {
  tma_store_layer(map, to, from);
  tma_store_commit();
  tma_store_wait();
  __syncwarp();
  raise_release(counter, 1);
}
"""
LINES = """ops/x/a.cuh send
    tma_store, tma_store_commit, tma_store_wait, sync_warp, raise
    -- what is told of has been written
"""
STAGER = """__device__ void stage() {
  write_sixteen(rows, at, j);
  cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
  staged.arrive();
}
"""
STAGES = """ops/x/a.cuh stage
    matrices, fence_proxy(space_shared), arrive(arrive)
    -- TMA reads what ordinary stores wrote
"""


def with_list(text, lines):
    return {"ops/x/a.cuh": text, LIST: lines}


BAD = [with_list(SENDER.replace(*change), LINES) for change in (
    ("  tma_store_wait();\n", ""), ("tma_store_wait", "tma_store_wait_read<0>"), ("tma_store_wait()", "tma_store_wait<1>()"),
    ("  __syncwarp();\n", ""), ("  tma_store_commit();\n", ""), ("  raise_release(counter, 1);\n", ""),
    ("  tma_store_wait();\n  __syncwarp();\n  raise_release(counter, 1);\n",
     "  raise_release(counter, 1);\n  __syncwarp();\n  tma_store_wait();\n"))]
BAD += [with_list(STAGER.replace(*change), STAGES) for change in (
    ("  cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);\n", ""), ("space_shared", "space_global"),
    ("  cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);\n  staged.arrive();\n",
     "  staged.arrive();\n  cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);\n"))]
BAD += [
    # The list may say what it likes: some things are wrong.
    with_list(SENDER.replace("  tma_store_wait();\n", ""), LINES.replace("tma_store_wait, ", "")),
    with_list(STAGER.replace("  cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);\n", ""),
              STAGES.replace("fence_proxy(space_shared), ", "")),
    with_list(SENDER, ""), with_list("", LINES), with_list(SENDER, LINES.replace("-- what is told of has been written", "-- so")),
    with_list("int x = (tma_store_wait(), 1);\n", ""),
    with_list("void f(memory_order order = memory_order::relaxed);\n",
              "ops/x/a.cuh declarations\n    order(release)\n    -- where none is named\n"),
    with_list("__device__ void f() { c.store(1, cuda::memory_order_relaxed); }\n",
              "ops/x/a.cuh f\n    order(release)\n    -- others acquire it\n"),
    with_list("__device__ int f() { return cuda::atomic_ref<int, cuda::thread_scope_block>(w).load(); }\n",
              "ops/x/a.cuh f\n    scope(device)\n    -- by blocks of the GPU\n"),
]
GOOD = [with_list(SENDER, LINES), with_list(STAGER, STAGES), with_list("__device__ int f() { return 1; }\n", "")]

if __name__ == "__main__":
    gate.main(check, BAD, GOOD)
