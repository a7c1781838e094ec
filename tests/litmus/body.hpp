#pragma once

#include <cstdint>
#include <string>

#include <untax/flow/wait.hpp>

#include "engines/model/no_timeout.hpp"

namespace untax::litmus {

// A litmus body is a struct template over the memory policy, made anew for each execution:
//
//   static constexpr int threads;        how many threads it has
//   thread(index, delay)                 what each does; calls delay() where timing matters
//   forbidden()                          whether an outcome was reached that must not be possible
//   outcome()                            what the threads read, e.g. "1 0"
//
// Counters are flags, cells are payload. Names of the shapes are those of the literature: Maranget,
// Sarkar and Sewell, "A Tutorial Introduction to the ARM and POWER Relaxed Memory Models" (2012),
// and Alglave, Maranget and Tautschnig, "Herding Cats" (2014).

/// Waits until a counter has reached `value`, by the one loop that untax has for that.
template <memory_policy M>
void await(typename M::counter& counter, std::uint64_t value) {
  model::no_timeout guard;
  const wait_site site{
      .operator_name = "litmus", .what = verb::wait_until, .peer = 0, .expected = value};
  static_cast<void>(wait_until<M>(counter, site, guard));
}

/// The numbers that the threads read, one after the other.
template <class... Number>
std::string numbers(const Number&... n) {
  std::string text;
  ((text += (text.empty() ? "" : " ") + std::to_string(n)), ...);
  return text;
}

}  // namespace untax::litmus
