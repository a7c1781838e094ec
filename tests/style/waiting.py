#!/usr/bin/env python3
"""Only include/untax/flow/wait.hpp loops on memory, so that every wait is bounded and names its suspect.

A text can't be asked whether it waits, so the gate looks for what waiting loops are made of:
  * a call, or an instruction, that gives the processor away (pause, yield, sleep, nanosleep, futex);
  * a loop without a count (`while`, `do`, `for (;;)`), or the condition of a counted one, that loads from memory
    which others write; in kernels also by a call that only looks (LOOKS);
  * in kernels a counted loop that looks at the same thing in every turn, and ends when it has come;
  * a compare-exchange in any loop.
"""
import re

import gate

GIVES_WAY = re.compile(r"\b(?:pause|_mm_pause|__builtin_ia32_pause|sched_yield|pthread_yield|(?:__)?nanosleep|"
                       r"clock_nanosleep|usleep|sleep|sleep_for|sleep_until|yield|futex|SYS_futex)\s*\(")
LOADS = re.compile(r"\bload\s*\(|\bload_acquire\s*\(|\batomic_load\w*\s*\(|\b__atomic_load\w*\s*\(")
# Further ways in which kernels poll memory: packets, barriers in shared memory, parts of a wait, bits of A.
LOOKS = re.compile(r"\b(?:look|arrived_until|arrived_soon|have_arrived|first_missing|has_ended|load_packet\w*|"
                   r"\w*(?:try|test)_wait\w*|__ld(?:cv|cg|volatile)|ld_\w+)\s*\(|\bvolatile\s+\w+\s*\*")
KERNELS = (".cu", ".cuh")
# In the text of an instruction.
SLEEPS = re.compile(r"\bnanosleep\.")
DECLARED = re.compile(r"\b(?:auto&?|bool|[\w:]+(?:<[^;]*?>)?[*&]?) (\w+)(?= = |\{|\()")
LEAVES = re.compile(r"\b(?:return|break)\b")
EXCHANGES = re.compile(r"\b(?:compare_exchange_\w+|__atomic_compare_exchange\w*)\s*\(")
LOOP = re.compile(r"\b(?:while|for|do)\b")

# The files that may have such a call, with the reason. A path that ends in "/" is a directory.
ALLOWED = {
    "include/untax/flow/wait.hpp": ({"yield", "load"}, "the one place that waits"),
    "include/untax/memory/": ({"yield", "exchange"}, "defines each memory's pause, and raises by retry"),
    "include/untax/rma/atomic.hpp": ({"exchange"}, "min and max, which C++20 lacks: retried only if another won"),
    "include/untax/rma/device_atomic.cuh": ({"exchange"}, "the same in kernels"),
    "src/flow/fault_plan.cpp": ({"yield"}, "injects the delays that fault tests ask for"),
    "src/world/directory_lock.cpp": ({"yield"}, "tries again to lock a directory, not memory, and for 10 s at most"),
    "src/world/join_rank_0.cpp": ({"yield"}, "tries again to reach a socket, not memory"),
    "bench/suites/host.cpp": ({"yield", "load"}, "the bare atomic ping-pong that a signal is compared with"),
    "bench/suites/cuda/shared.cpp": ({"yield"}, "holds a stream for a time, so that what is timed has been launched"),
    "bench/suites/cuda/sides.cu": ({"yield", "load"}, "looks at a meter of energy until an event of the GPU has come"),
    "engines/gpu/sm90/ptx/barrier.cuh": ({"load"}, "barriers in shared memory, which blocks of a cluster alone raise"),
    "include/untax/rma/bulk_ring.cuh": ({"load"}, "the barrier of a bulk copy, which TMA raises"),
    "engines/gpu/gemm/arrivals.cuh": ({"yield", "look"}, "looks so many times, apart, before a bounded wait begins"),
    "engines/gpu/gemm/tma_producer.cuh": ({"load"}, "looks between asking for weights, of which there are so many, and "
                                               "then begins a bounded wait"),
    "engines/gpu/decode_step/attention.cuh": ({"look"}, "looks so many times before a bounded wait begins"),
    "engines/gpu/decode_step/multiplier.cuh": ({"look"}, "the same"),
    "engines/gpu/decode_step/loaders.cuh": ({"load"}, "waits for what multiplier.cuh waits for, and ends when that wait has failed"),
    "engines/gpu/gemm/store_throttle.cuh": ({"yield"}, "waits for a time, not for memory"),
    "engines/gpu/comm/sinks/sums_epilogue.cuh": ({"yield"}, "looks for a bounded time; what has not come then is added at "
                                                            "the end, by a bounded wait"),
    "engines/gpu/comm/shard_sender.cuh": ({"yield"}, "waits for a time, not for memory"),
    "tests/gpu/litmus_bulk.cu": ({"load"}, "the barrier of a bulk copy, waited for with and without what is tried"),
    "tests/": ({"yield"}, "tests hold ranks up on purpose"),
}


def closing(text, start, opener, closer):
    """The offset just behind the bracket that closes the one at `start`."""
    depth = 0
    for offset in range(start, len(text)):
        depth += (text[offset] == opener) - (text[offset] == closer)
        if depth == 0:
            return offset + 1
    return len(text)


def loops(text):
    """(offset, condition, body, counted) of every loop; counted ones with the name of their counter, if it has one."""
    for match in LOOP.finditer(text):
        at = match.end()
        condition, counted = "", False
        if match.group(0) != "do":
            start = text.find("(", at)
            if start < 0 or text[at:start].strip():
                continue
            at = closing(text, start, "(", ")")
            condition = text[start:at]
            clauses = condition.strip("()").split(";")
            counted = match.group(0) == "for" and (len(clauses) != 3 or bool(clauses[1].strip()))
        body_start = at + len(text[at:]) - len(text[at:].lstrip())
        if text[body_start:body_start + 1] == "{":
            body = text[body_start:closing(text, body_start, "{", "}")]
        else:
            body = text[body_start:text.find(";", body_start) + 1]
        yield match.start(), condition, body, counted


def exemptions(name, kind):
    return {(path, kind) for path, (kinds, _) in ALLOWED.items()
            if (name == path or (path.endswith("/") and name.startswith(path))) and kind in kinds}


def looks_again(condition, body):
    """Whether a counted loop looks at what does not depend on the turn, and leaves when it has come."""
    counter = re.search(r"(\w+)\s*(?:=|\{|:)", condition)
    if not counter or not LEAVES.search(body):
        return False
    of_turn = {counter.group(1), *DECLARED.findall(body)}
    for match in LOOKS.finditer(body):
        before = re.search(r"[\w.\[\]% >-]*$", body[:match.start()]).group(0)
        before = before.split("=")[-1].split("return")[-1]
        if match.group(0).endswith("("):
            call = before + body[match.start():closing(body, match.end() - 1, "(", ")")]
            if not of_turn & set(re.findall(r"\w+", call)):
                return True
    return False


def check(tree):
    findings = []
    used = set()

    def find(name, text, offset, kind, subject):
        used.update(exemptions(name, kind))
        if not exemptions(name, kind):
            findings.append(f"{name}:{gate.line_of(text, offset)}: {subject}; wait with untax::wait_until, or name the "
                            "file and the reason in tests/style/waiting.py")

    for name in tree.files():
        text = gate.without_comments(tree.text(name))
        for match in SLEEPS.finditer(tree.text(name)):
            find(name, tree.text(name), match.start(), "yield", "'nanosleep' gives the processor away")
        for match in GIVES_WAY.finditer(text):
            find(name, text, match.start(), "yield", f"'{match.group(0).strip()}' gives the processor away")
        for offset, condition, body, counted in loops(text):
            if LOADS.search(condition) or (not counted and LOADS.search(body)):
                find(name, text, offset, "load", "a loop on memory")
            elif name.endswith(KERNELS) and (LOOKS.search(condition) or (not counted and LOOKS.search(body))):
                find(name, text, offset, "load", "a loop on memory")
            elif name.endswith(KERNELS) and counted and looks_again(condition, body):
                find(name, text, offset, "look", "a loop that looks at the same memory again")
            if EXCHANGES.search(condition) or EXCHANGES.search(body):
                find(name, text, offset, "exchange", "a compare-exchange in a loop")
    if tree.root == gate.PROJECT:
        findings += [f"tests/style/waiting.py: {path} is allowed '{kind}', and has none"
                     for path, (kinds, _) in ALLOWED.items() for kind in kinds if (path, kind) not in used]
    return findings


BAD = [
    ("src/rma/a.cpp", "void f() { while (flag.load() < 3) {} }\n"),
    ("src/rma/a.cpp", "void f() { while (flag.load() < 3); }\n"),
    ("src/rma/a.cpp", "void f() { for (;;) { if (M::load_acquire(c) == 1) break; } }\n"),
    ("src/rma/a.cpp", "void f() { do { x = flag->load(); } while (x < 3); }\n"),
    ("src/rma/a.cpp", "void f() { for (int i = 0; flag.load() < 3; ++i) work(); }\n"),
    ("src/rma/a.cpp", "void f() { std::this_thread::yield(); }\n"),
    ("src/rma/a.cpp", "void f() { while (!c.compare_exchange_weak(a, b)) {} }\n"),
    ("include/untax/memory/a.hpp", "inline void f() { while (flag.load() < 3) {} }\n"),
    ("ops/x/a.cuh", "__device__ void f() { __nanosleep(100); }\n"),
    ("ops/x/a.cuh", "__device__ void f() { asm volatile(\"nanosleep.u32 %0;\" ::\"r\"(n)); }\n"),
    ("ops/x/a.cuh", "__device__ void f() { while (cuda_memory::load_acquire(c) < 3) {} }\n"),
    ("ops/x/a.cuh", "__device__ void f() { while (part.look() == 0) {} }\n"),
    ("ops/x/a.cu", "__device__ void f() { for (;;) { if (load_packet(p).epoch >= e) return; } }\n"),
    ("ops/x/a.cuh", "__device__ void f() { while (!cuda::ptx::mbarrier_try_wait_parity(&w, 0)) {} }\n"),
    ("ops/x/a.cuh", "__device__ void f() { while (*static_cast<volatile int*>(p) == 0) {} }\n"),
    ("ops/x/a.cuh", "__device__ void f() { for (int i = 0; i < 9999; ++i) { if (traffic.arrived_until(row) > 0) return; } }\n"),
]
GOOD = [
    ("include/untax/flow/wait.hpp", "void f() { while (flag.load() < 3) M::pause(1); }\n"),
    ("include/untax/memory/a.hpp", "inline void f() { while (!c.compare_exchange_weak(a, b)) {} }\n"),
    ("src/rma/a.cpp", "// while (flag.load() < 3) {}\nconst char* s = \"pause()\";\n"),
    ("src/rma/a.cpp", "void f() { for (int r = 0; r < n; ++r) seen[r] = flags[r].load(); }\n"),
    ("src/rma/a.cpp", "void f() { for (auto& flag : flags) sum += flag.load(); }\n"),
    ("ops/x/a.cuh", "__device__ void f() { for (int i = 0; i < n; ++i) { if (look(at[i])) break; } }\n"),
    ("ops/x/a.cuh", "__device__ void f() { for (int i = 0; i < n; ++i) found[i] = load_packet(from); }\n"),
    ("ops/x/a.cuh", "__device__ bool f() { return part.look() != 0; }\n"),
    ("engines/gpu/gemm/store_throttle.cuh", "__device__ void f() { while (now() < t) __nanosleep(200); }\n"),
]

if __name__ == "__main__":
    gate.main(check, BAD, GOOD)
