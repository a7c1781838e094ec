"""All mutations of a file compiled in at once, each behind a switch that the environment sets."""

HEADER = "untax_mutants.hpp"
# A mutant's own text stands in a line of this number and its own, so that an error there names it.
OWN_LINES = 1_000_000

# MUTANT_ACTIVE is the number of the mutant that is on. With MUTANT_REACHED, a file of a byte for each, a process says
# which of them it came by.
SWITCH = """#pragma once
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <type_traits>
#include <unistd.h>
namespace untax_mutants {
// -2: note whoever is met.
inline int number_from_environment() {
  const char* text = std::getenv("MUTANT_ACTIVE");
  if (text) return std::atoi(text);
  return std::getenv("MUTANT_REACHED") ? -2 : -1;
}
inline unsigned char* reached_from_environment() {
  const char* path = std::getenv("MUTANT_REACHED");
  const int file = path ? ::open(path, O_RDWR) : -1;
  if (file < 0) return nullptr;
  void* at = ::mmap(nullptr, static_cast<std::size_t>(::lseek(file, 0, SEEK_END)), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  return at == MAP_FAILED ? nullptr : static_cast<unsigned char*>(at);
}
inline const int active = number_from_environment();
inline unsigned char* const reached = reached_from_environment();
inline bool asked(int mutant) {
  const int chosen = active;
  if (chosen == mutant) [[unlikely]] return true;
  if (chosen == -2 && reached) [[unlikely]] reached[mutant] = 1;
  return false;
}
}  // namespace untax_mutants
constexpr bool untax_mutant(int mutant) {
  if (std::is_constant_evaluated()) return false;
  return untax_mutants::asked(mutant);
}
"""


def instrumented(source, mutations):
    """`mutations`: pairs of number and Mutation of this source. Lines keep their numbers, so that the compiler's errors can be read."""
    spans = {}
    for number, m in mutations:
        spans.setdefault((m.start, m.end, m.statement), []).append((number, m))
    ordered = sorted(spans, key=lambda s: (s[0], -s[1], not s[2]))

    def render(start, end, rest):
        out, at = [], start
        while rest and rest[0][0] < end:
            span = rest.pop(0)
            if span[0] < at or span[1] > end:  # crosses another: cannot happen with balanced brackets
                continue
            inner = []
            while rest and rest[0][1] <= span[1] and rest[0][0] >= span[0]:
                inner.append(rest.pop(0))
            out.append(source[at : span[0]])
            out.append(wrapped(span, render(span[0], span[1], inner)))
            at = span[1]
        out.append(source[at:end])
        return "".join(out)

    def wrapped(span, inner):
        if span[2]:
            before = "".join(own(n, f"if (untax_mutant({n})) {{ {m.text} }} else") for n, m in spans[span])
            return "{ " + before + back_at(span[0]) + "{ " + inner + " } }"
        before = "".join(own(n, f"untax_mutant({n}) ? ({m.text}) :") for n, m in spans[span])
        return "(" + before + back_at(span[0]) + "(" + inner + "))"

    def own(number, text):
        return f"\n#line {OWN_LINES + number}\n{text}"

    def back_at(start):
        return f"\n#line {source.count(chr(10), 0, start) + 1}\n"

    text = render(0, len(source), ordered)
    include = f'#include "{HEADER}"\n#line 1\n'
    if "#pragma once" in text:
        before, _, after = text.partition("#pragma once\n")
        return before + f"#pragma once\n{include.replace('1', str(before.count(chr(10)) + 2), 1)}" + after
    return include + text
