#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <untax/flow/wait_site.hpp>
#include <untax/tile/step.hpp>
#include <untax/trace/record.hpp>

#include "engines/gpu/trace/decode.hpp"

// Rings by hand, as warps of kernels leave them.

namespace untax::testing {

using gpu::event_word;
using gpu::kernel_record;
using gpu::warp_ring;
using gpu::warp_role;

// Counters of two ranks, as rank 0 and rank 1 see them: addresses above 2^46, as CUDA gives them.
inline constexpr std::uint64_t counters_here = 0x7f1234560000;
inline constexpr std::int64_t between = 1 << 21;
inline constexpr int ready = 5;
inline constexpr int freed = 9;

inline std::uint64_t address_at(int owner, int me, int counter) {
  return counters_here + static_cast<std::uint64_t>((owner - me) * between + 8 * counter);
}

/// A warp that notes by hand.
class noting_warp {
 public:
  noting_warp(int block, int warp, int me, int group = 0) : me_(me) {
    ring_.group = group;
    ring_.block = block;
    ring_.warp = warp;
  }
  noting_warp& begin(std::uint64_t time, warp_role role, std::uint64_t epoch, int launch = 0,
                     int cluster = 1) {
    return note(time, event_word::kernel_begin(role, launch, epoch, cluster));
  }
  noting_warp& end(std::uint64_t time) { return note(time, event_word::end(trace_kind::kernel)); }
  noting_warp& act(std::uint64_t from, std::uint64_t to, action what) {
    note(from, event_word::begin(trace_kind::action, static_cast<int>(what)));
    return note(to, event_word::end(trace_kind::action));
  }
  noting_warp& wait(std::uint64_t from, std::uint64_t to, int counter, std::uint64_t use, int peer,
                    verb what = verb::acquire) {
    const std::uint64_t at = counter < 0 ? 0 : address_at(me_, me_, counter);
    note(from, event_word::at_counter(trace_kind::wait, at, use));
    return note(to, event_word::wait_end(static_cast<int>(what), peer, 3));
  }
  noting_warp& signal(std::uint64_t time, int owner, int counter, std::uint64_t use) {
    return note(time,
                event_word::at_counter(trace_kind::signal, address_at(owner, me_, counter), use));
  }
  noting_warp& note(std::uint64_t time, const event_word& word) {
    ring_.events.push_back({time, word.bits});
    ++ring_.noted;
    return *this;
  }
  /// As if there had been room for so many.
  noting_warp& keep(std::size_t newest) {
    const auto gone = static_cast<std::ptrdiff_t>(ring_.events.size() - newest);
    ring_.events.erase(ring_.events.begin(), ring_.events.begin() + gone);
    return *this;
  }
  [[nodiscard]] const warp_ring& ring() const { return ring_; }

 private:
  int me_;
  warp_ring ring_;
};

inline traced_operator decoded(int rank, const std::vector<noting_warp>& warps,
                               const std::vector<std::uint64_t>& calls = {},
                               const gpu::clock_line& clock = {}) {
  kernel_record record;
  record.rank = rank;
  record.ranks = 2;
  record.counters = {{counters_here, between, 64, 0}};
  record.clock = clock;
  record.calls = calls;
  for (const noting_warp& warp : warps) record.rings.push_back(warp.ring());
  traced_operator op;
  op.id = 7;
  op.world = 1;
  op.name = "by hand";
  op.rank = rank;
  op.ranks = 2;
  decode(record, op);
  return op;
}

inline long in_ns(double seconds) { return std::lround(seconds * 1e9); }

}  // namespace untax::testing
