#pragma once

#include <cstdint>
#include <string>

namespace untax::model {

/// A concurrent program whose executions are explored on `model_memory`. All its members are called
/// in turn, never at once: a switch between its threads happens only inside an access to a counter.
class subject {
 public:
  virtual ~subject() = default;

  /// The number of threads of the program, at most `max_threads`.
  [[nodiscard]] virtual int threads() const = 0;
  /// Makes the shared state of one execution.
  virtual void begin() = 0;
  /// The body of thread `index`.
  virtual void thread(int index) = 0;
  /// Called when all threads have ended: checks the outcome and ends the shared state. Not called
  /// when the execution failed; counters and cells must then be given up without being destroyed
  /// (see `execution_array`).
  virtual void end() = 0;
  /// The positions of the threads when an execution failed.
  [[nodiscard]] virtual std::string circumstances() const { return {}; }
};

inline constexpr int max_threads = 12;
/// The most threads for which the tree of executions can be searched.
inline constexpr int max_threads_of_tree = 4;

enum class strategy : std::uint8_t {
  random,     ///< each execution makes random choices, from a fixed seed
  bounded,    ///< all executions with at most `switches` unforced switches between threads
  exhaustive  ///< all executions; stale reads go back one value
};

/// The strategy and the limits of a search.
struct budget {
  strategy how = strategy::random;
  std::uint64_t executions = 2000;  ///< at most
  std::uint64_t seed = 1;           ///< random: the first of `executions` seeds
  unsigned switches = 2;            ///< for strategy::bounded
  std::uint64_t depth = 20000;  ///< accesses to counters after which an execution counts as stuck
};

/// The result of a search.
struct exploration {
  std::uint64_t executions = 0;
  bool ok = true;         ///< no execution failed
  bool complete = false;  ///< nothing is left to explore (never for strategy::random)
  std::string failure;    ///< the failure of the last execution, and the positions of its threads
};

/// Explores executions of `s` until one fails, none is left, or the budget is spent. Only one
/// search runs at a time; others wait. Throws `untax::error` (invalid_argument) if `s` has too many
/// threads.
[[nodiscard]] exploration search(subject& s, const budget& limits);

/// Called inside an execution: ends it as a failure.
[[noreturn]] void fail(const std::string& why);

}  // namespace untax::model
