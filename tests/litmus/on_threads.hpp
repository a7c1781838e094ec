#pragma once

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace untax::litmus {

/// The outcomes of a body on threads of this machine.
struct observed {
  std::uint64_t executions = 0;
  std::uint64_t forbidden = 0;
  std::map<std::string, std::uint64_t> outcomes;
};

/// Runs a body again and again on real threads with random delays, for about `limit`. The threads
/// go through a batch of bodies without meeting in between, so that they run against each other at
/// every offset.
template <class Body>
observed run_on_threads(std::uint32_t seed,
                        std::chrono::milliseconds limit = std::chrono::milliseconds(300)) {
  struct alignas(64) slot {
    Body body{};
  };
  constexpr std::size_t batch = 128;
  std::vector<slot> slots(batch);
  observed seen;
  bool more = true;
  const auto end = std::chrono::steady_clock::now() + limit;
  const auto collect = [&]() noexcept {
    for (slot& s : slots) {
      ++seen.executions;
      ++seen.outcomes[s.body.outcome()];
      if (s.body.forbidden()) ++seen.forbidden;
      s = slot{};
    }
    more = std::chrono::steady_clock::now() < end;
  };
  std::barrier meeting(Body::threads, collect);
  const auto work = [&](int index) {
    std::minstd_rand lot(seed + static_cast<std::uint32_t>(index));
    const auto delay = [&] {
      const std::atomic<int> nothing = 0;
      for (std::uint32_t left = lot() % 64; left > 0; --left)
        nothing.load(std::memory_order_relaxed);
    };
    while (more) {
      for (slot& s : slots) s.body.thread(index, delay);
      meeting.arrive_and_wait();
    }
  };
  std::vector<std::jthread> threads;
  for (int index = 0; index < Body::threads; ++index) threads.emplace_back(work, index);
  threads.clear();
  return seen;
}

}  // namespace untax::litmus
