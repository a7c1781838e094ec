#pragma once

#include <concepts>
#include <cstdint>

#include <untax/memory/host_memory.hpp>
#include <untax/memory/policy.hpp>

namespace untax {

/// Threads that call a verb together: a block of a GPU, or one thread of a CPU.
///
/// Verbs that take a group are cooperative: every thread of the group calls them with the same
/// arguments, and when they return the work of the whole group is done.
template <class G>
concept thread_group = memory_policy<typename G::memory> && requires(const G& group) {
  /// The number of the calling thread in the group, from 0.
  { group.thread_rank() } -> std::convertible_to<int>;
  { group.size() } -> std::convertible_to<int>;
  /// Returns when all threads of the group have called it. Earlier writes of each thread are then
  /// visible to all of them.
  group.sync();
};

/// A group of threads of a CPU. Groups of a GPU are in rma/device_group.cuh.
template <class G>
concept host_group = thread_group<G> && std::same_as<typename G::memory, host_memory>;

/// The group of one thread of a CPU, for verbs that never wait.
struct lone_thread {
  using memory = host_memory;

  [[nodiscard]] static constexpr int thread_rank() noexcept { return 0; }
  [[nodiscard]] static constexpr int size() noexcept { return 1; }
  static constexpr void sync() noexcept {}
};

static_assert(host_group<lone_thread>);

namespace detail {

/// A contiguous part of [0, count).
struct share {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The part of [0, count) that the calling thread does.
template <thread_group G>
[[nodiscard]] constexpr share share_of(const G& group, std::int64_t count) {
  const std::int64_t threads = group.size();
  const std::int64_t mine = group.thread_rank();
  const std::int64_t each = count / threads;
  const std::int64_t rest = count % threads;
  const std::int64_t begin = mine * each + (mine < rest ? mine : rest);
  return {begin, begin + each + (mine < rest ? 1 : 0)};
}

}  // namespace detail
}  // namespace untax
