#!/usr/bin/env python3
"""Only include/untax/flow/wait.hpp loops on memory, so that every wait is bounded and names its suspect.

A text can't be asked whether it waits, so the gate looks for what waiting loops are made of:
  * a call that gives the processor away (pause, yield, sleep, futex);
  * a loop without a count (`while`, `do`, `for (;;)`), or the condition of a counted one, that loads from memory
    which others write;
  * a compare-exchange in any loop.
"""
import re

import gate

GIVES_WAY = re.compile(r"\b(?:pause|_mm_pause|__builtin_ia32_pause|sched_yield|pthread_yield|nanosleep|"
                       r"clock_nanosleep|usleep|sleep|sleep_for|sleep_until|yield|futex|SYS_futex)\s*\(")
LOADS = re.compile(r"\bload\s*\(|\bload_acquire\s*\(|\batomic_load\w*\s*\(|\b__atomic_load\w*\s*\(")
EXCHANGES = re.compile(r"\b(?:compare_exchange_\w+|__atomic_compare_exchange\w*)\s*\(")
LOOP = re.compile(r"\b(?:while|for|do)\b")

# Where one of the three may stand, and why. A path that ends in "/" is a directory.
ALLOWED = {
    "include/untax/flow/wait.hpp": ({"yield", "load"}, "the one place that waits"),
    "include/untax/memory/": ({"yield", "exchange"}, "defines each memory's pause, and raises by retry"),
    "include/untax/rma/atomic.hpp": ({"exchange"}, "min and max, which C++20 lacks: retried only if another won"),
    "include/untax/rma/device_atomic.cuh": ({"exchange"}, "the same in kernels"),
    "src/flow/fault_plan.cpp": ({"yield"}, "injects the delays that fault tests ask for"),
    "src/world/join_rank_0.cpp": ({"yield"}, "tries again to reach a socket, not memory"),
    "bench/suites/host.cpp": ({"yield", "load"}, "the bare atomic ping-pong that a signal is compared with"),
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
    """(offset, condition, body, counted) of every loop."""
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


def allowed(name, kind):
    return any((name == path or (path.endswith("/") and name.startswith(path))) and kind in kinds
               for path, (kinds, _) in ALLOWED.items())


def check(tree):
    findings = []

    def find(name, text, offset, kind, what):
        if not allowed(name, kind):
            findings.append(f"{name}:{gate.line_of(text, offset)}: {what}; wait with untax::wait_until, or name the "
                            "file and the reason in tests/style/waiting.py")

    for name in tree.files():
        text = gate.without_comments(tree.text(name))
        for match in GIVES_WAY.finditer(text):
            find(name, text, match.start(), "yield", f"'{match.group(0).strip()}' gives the processor away")
        for offset, condition, body, counted in loops(text):
            if LOADS.search(condition) or (not counted and LOADS.search(body)):
                find(name, text, offset, "load", "a loop on memory")
            if EXCHANGES.search(condition) or EXCHANGES.search(body):
                find(name, text, offset, "exchange", "a compare-exchange in a loop")
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
]
GOOD = [
    ("include/untax/flow/wait.hpp", "void f() { while (flag.load() < 3) M::pause(1); }\n"),
    ("include/untax/memory/a.hpp", "inline void f() { while (!c.compare_exchange_weak(a, b)) {} }\n"),
    ("src/rma/a.cpp", "// while (flag.load() < 3) {}\nconst char* s = \"pause()\";\n"),
    ("src/rma/a.cpp", "void f() { for (int r = 0; r < n; ++r) seen[r] = flags[r].load(); }\n"),
    ("src/rma/a.cpp", "void f() { for (auto& flag : flags) sum += flag.load(); }\n"),
]

if __name__ == "__main__":
    gate.main(check, BAD, GOOD)
