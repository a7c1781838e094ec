#pragma once

#include <concepts>
#include <cstdint>

namespace untax {

/// The number of polls of a wait that has not ended. The longer a wait lasts, the less it uses the
/// core.
using poll_count = std::uint32_t;

/// The operations on memory that the verbs need. The same protocol source runs on every policy:
/// `host_memory` (C++ atomics), `model_memory` (a model checker) and `cuda_memory` (GPUs).
///
/// A `counter` is a 64-bit number that is only ever raised; it lies where its waiter can poll it
/// cheaply. Counters are reached by (rank, index) through a counter table, since the counters of a
/// model checker cannot lie in plain memory. `cell<T>` is payload that the policy's checker, if it
/// has one, must see.
template <class M>
concept memory_policy = requires(typename M::counter& counter, std::uint64_t value,
                                 poll_count polls) {
  typename M::template cell<int>;
  /// Acquire load: the writes of the thread that raised the counter are visible after it, if they
  /// came before.
  { M::load_acquire(counter) } -> std::same_as<std::uint64_t>;
  /// Release: raises the counter to `value`. It never lowers the counter, so a signal that arrives
  /// twice or late is harmless.
  M::raise_release(counter, value);
  /// One step of a waiting loop; only flow/wait.hpp calls it.
  M::pause(polls);
  /// Monotonic nanoseconds, comparable within one machine.
  { M::now() } -> std::same_as<std::uint64_t>;
};

/// A type whose `at(rank, index)` is the counter `index` that lies at rank `rank`.
template <class T, class M>
concept counter_table = requires(const T& table, int rank, int index) {
  { table.at(rank, index) } -> std::same_as<typename M::counter&>;
};

}  // namespace untax
