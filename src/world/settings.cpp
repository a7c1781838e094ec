#include "settings.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax {
namespace {

#ifdef NDEBUG
constexpr std::uint64_t usual_guards = 0;
#else
constexpr std::uint64_t usual_guards = 1;
#endif

// One year: long enough, and far from an overflow in nanoseconds.
constexpr std::int64_t longest_ms = std::int64_t{1000} * 60 * 60 * 24 * 365;

constexpr int most_ranks_per_gpu = 8;
constexpr std::int64_t most_queues = 32;  // hardware queues of a GPU; a rank has several streams

std::chrono::milliseconds limit(const environment& env, const environment_variable& v) {
  return std::chrono::milliseconds(env.number_or_fallback(v, 0, longest_ms));
}

std::chrono::milliseconds limit(const std::optional<std::chrono::milliseconds>& given,
                                std::chrono::milliseconds fallback, std::string_view name) {
  if (!given) return fallback;
  if (given->count() < 0 || given->count() > longest_ms) {
    throw error(errc::invalid_argument,
                fmt::format("{} is {} ms; it can be 0, for no limit, to {}, a year", name,
                            given->count(), longest_ms));
  }
  return *given;
}

memory_kind memory_of(const environment& env) {
  const std::string name = env.text(variable::memory).value_or(variable::memory.fallback);
  for (const memory_kind kind : {memory_kind::host, memory_kind::cuda, memory_kind::automatic}) {
    if (name == name_of(kind)) return kind;
  }
  throw error(errc::invalid_argument,
              fmt::format("{} is \"{}\"; it has to be host, cuda or automatic ({})",
                          variable::memory.name, name, variable::memory.meaning));
}

/// Ranks that share a GPU need separate hardware queues: in one queue, a kernel would wait for a
/// kernel that is queued behind it.
int sharing_of(const world_options& options, const environment& env) {
  const auto& v = variable::ranks_per_gpu;
  const int ranks = options.ranks_per_gpu
                        ? *options.ranks_per_gpu
                        : static_cast<int>(env.number_or_fallback(v, 1, most_ranks_per_gpu));
  if (ranks < 1 || ranks > most_ranks_per_gpu) {
    throw error(errc::invalid_argument, fmt::format("{} ranks a GPU ({}); it can be 1 to {}", ranks,
                                                    v.name, most_ranks_per_gpu));
  }
  const auto queues = env.number(variable::connections, 1, most_queues);
  if (ranks > 1 && queues.value_or(0) < most_queues) {
    throw error(errc::invalid_argument,
                fmt::format("{} ranks share a GPU, and {} is {}; it has to be {} in the "
                            "environment that the program starts with, or kernels that wait for "
                            "each other would be queued one behind the other",
                            ranks, variable::connections.name,
                            queues ? std::to_string(*queues) : "not set", most_queues));
  }
  return ranks;
}

/// Sets the first size of heaps and their limit. A value that is not set adapts to one that is.
void set_heap(settings& s, const world_options& options, const environment& env) {
  const bool sized = options.heap_bytes || env.has(variable::heap_bytes);
  const bool limited = options.heap_limit || env.has(variable::heap_limit);
  // An invalid variable is an error, even if an option overrides it.
  const std::size_t first = env.bytes_or_fallback(variable::heap_bytes);
  const std::size_t most = env.bytes_or_fallback(variable::heap_limit);
  s.heap_bytes = options.heap_bytes.value_or(first);
  s.heap_limit = options.heap_limit.value_or(most);
  if (!limited) s.heap_limit = std::max(s.heap_limit, s.heap_bytes);
  if (!sized) s.heap_bytes = std::min(s.heap_bytes, s.heap_limit);
  if (s.heap_bytes <= s.heap_limit) return;
  throw error(errc::invalid_argument,
              fmt::format("a heap of {} at first ({}) cannot grow to {} ({}), which is less",
                          format_bytes(s.heap_bytes), variable::heap_bytes.name,
                          format_bytes(s.heap_limit), variable::heap_limit.name));
}

}  // namespace

settings settings::of(const world_options& options, const environment& env) {
  settings s;
  set_heap(s, options, env);
  // An invalid variable is an error, even if an option overrides it.
  s.heap_guards = env.number(variable::heap_guards, 0, 1).value_or(usual_guards) == 1;
  s.memory = memory_of(env);
  s.wait_limit = limit(env, variable::wait_limit);
  s.join_limit = limit(env, variable::join_limit);
  s.heap_guards = options.heap_guards.value_or(s.heap_guards);
  s.memory = options.memory.value_or(s.memory);
  s.wait_limit = limit(options.wait_limit, s.wait_limit, "wait_limit");
  s.join_limit = limit(options.join_limit, s.join_limit, "join_limit");
  s.device = options.device;
  return s;
}

settings settings::of_gpus(const world_options& options, const environment& env) {
  settings s = of(options, env);
  s.ranks_per_gpu = sharing_of(options, env);
  return s;
}

}  // namespace untax
