#pragma once

#include <cstdint>
#include <string>

#include <untax/memory/model_memory.hpp>

// Headers that <relacy/context.hpp> needs.
#include <relacy/stdlib/condition_variable.hpp>
#include <relacy/stdlib/event.hpp>
#include <relacy/stdlib/mutex.hpp>
#include <relacy/stdlib/semaphore.hpp>
#include <relacy/test_suite.hpp>

#include "engines/model/search.hpp"

namespace untax::model {

/// The search under way.
struct search_state {
  subject* what = nullptr;
  std::uint64_t limit = 0;
  std::uint64_t executions = 0;
  std::string why;
};

inline search_state* current = nullptr;

/// A subject as a test suite of Relacy: constructed anew for each execution, with a fixed number of
/// threads. Threads that the subject does not need end at once.
template <int count>
struct fixture : rl::test_suite<fixture<count>, count> {
  fixture() {
    // Relacy itself bounds only random search.
    if (current->executions == current->limit) rl::ctx().rl_until("budget", {});
    ++current->executions;
    current->what->begin();
  }
  void thread(unsigned index) {
    const int own = static_cast<int>(index);
    if (own < current->what->threads()) current->what->thread(own);
  }
  void after() { current->what->end(); }
};

/// Runs the search with Relacy's parameters, and stores the result in `params`.
template <int count, template <rl::thread_id_t> class Scheduler>
void run(rl::test_params& params) {
  rl::ostringstream replay;
  rl::run_test<fixture<count>, Scheduler<count>>(params, replay, false);
}

using runner = void (*)(rl::test_params&);

/// The runner with the fewest threads that suffice for `threads`. Null if the last of `counts`,
/// which is the largest, is too small.
template <template <rl::thread_id_t> class Scheduler, int... counts>
[[nodiscard]] runner runner_for(int threads) {
  runner result = nullptr;
  ((result == nullptr && threads <= counts ? void(result = &run<counts, Scheduler>) : void()), ...);
  return result;
}

[[nodiscard]] runner random_runner(int threads);
/// The next two walk the tree of executions, for up to `max_threads_of_tree` threads.
[[nodiscard]] runner bounded_runner(int threads);
[[nodiscard]] runner exhaustive_runner(int threads);

}  // namespace untax::model
