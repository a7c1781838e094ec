#pragma once

#include <cstdint>

#include <untax/rma/device_group.cuh>

#include "engines/gpu/channel/pending_waits.cuh"
#include "engines/gpu/channel/run_arguments.hpp"
#include "engines/gpu/sm90/ptx/sum_words.cuh"
#include "engines/gpu/trace/launch_trace.hpp"

namespace untax::gpu {

/// Where a lane's words of some ranks lie: in slabs of the same layout
/// (engines/gpu/channel/peer_slabs.hpp), at the same offset in each slab.
template <class Words>
struct slab_place {
  using words = typename Words::words;

  words* base = nullptr;    ///< in the slab of rank 0
  std::int64_t stride = 0;  ///< words from a slab to the next one
  int skipped = -1;         ///< a rank that sends nothing here; -1: all ranks send
  int begin = 0;            ///< the first rank, counted without `skipped`
  int count = 0;            ///< number of ranks
  unsigned wanted = 1;      ///< a bit for each word per rank
  std::uint64_t epoch = 0;
  int room = -1;  ///< number of rank 0's slab

  [[nodiscard]] __device__ int rank_of(int i) const {
    const int rank = begin + i;
    return skipped >= 0 && rank >= skipped ? rank + 1 : rank;
  }
};

/// A word of a lane that has not arrived, or none (null).
template <class Words>
struct missing_word {
  const typename Words::words* word = nullptr;
  std::uint64_t expected = 0;
  std::uint64_t seen = 0;
  int peer = -1;
  int room = -1;
  verb what = verb::acquire;

  [[nodiscard]] __device__ std::uint64_t look() const {
    return Words::have_arrived(load_sum_words_if(word != nullptr, word)) ? 1 : 0;
  }
  __device__ void raise(std::uint64_t /*value*/) noexcept {}
};

/// Waits for the missing words of the lanes of a warp. Returns false if the wait failed. Not
/// inlined, so that this rarely run code is not fetched with the code around it.
template <class Words>
[[nodiscard]] __device__ __noinline__ bool await_missing(const run_arguments& run,
                                                         missing_word<Words> mine, int slot) {
  lazy_watch watch(device_watch(run.world, slot));
  return wait_for_parts(mine, watch, run, run.operator_name()) == wait_outcome::ok;
}

/// The words that a lane waits for: up to `together` words of each of up to `ranks` ranks. All
/// loads are issued before the first word is tested. A word that has arrived is both data and
/// signal, so no other load has to be ordered after it.
template <class Words, int ranks, int together = 1>
struct slab_words {
  using words = typename Words::words;
  static constexpr int lanes = 32;  ///< distance between words of a lane

  slab_place<Words> at;
  words found[ranks][together];

  // The fields that a wait reports.
  std::uint64_t expected = 0;
  std::uint64_t seen = 0;
  int peer = -1;
  int room = -1;
  verb what = verb::acquire;

  __device__ explicit slab_words(const slab_place<Words>& where)
      : at(where), expected(where.epoch), seen(where.epoch > 2 ? where.epoch - 2 : 0) {}

  [[nodiscard]] __device__ bool wants(int i, int part) const {
    return i < at.count && (at.wanted >> part & 1U) != 0;
  }
  [[nodiscard]] __device__ words* word(int i, int part) const {
    return at.base + at.rank_of(i) * at.stride + part * lanes;
  }
  __device__ void fetch() {
#pragma unroll
    for (int i = 0; i < ranks; ++i) {
#pragma unroll
      for (int part = 0; part < together; ++part)
        found[i][part] = load_sum_words_if(wants(i, part), word(i, part));
    }
  }
  [[nodiscard]] __device__ bool have_arrived() {
    bool came = true;
#pragma unroll
    for (int i = ranks - 1; i >= 0; --i) {
#pragma unroll
      for (int part = 0; part < together; ++part) {
        if (Words::have_arrived(found[i][part])) continue;
        came = false;
        peer = at.rank_of(i);
        room = at.room + peer;
      }
    }
    return came;
  }
  [[nodiscard]] __device__ std::uint64_t look() {
    fetch();
    return have_arrived() ? 1 : 0;
  }
  __device__ void raise(std::uint64_t /*value*/) noexcept {}

  /// For one rank: a bit for each word that has arrived for all lanes, or was not loaded.
  [[nodiscard]] __device__ unsigned have_arrived_of_lanes() const {
    static_assert(ranks == 1);
    unsigned came = 0;
#pragma unroll
    for (int part = 0; part < together; ++part)
      if (Words::have_arrived(found[0][part])) came |= 1U << part;
    return __reduce_and_sync(0xffffffffU, came);
  }

  /// Polls once: loads all words. Returns whether they have arrived for all lanes of the warp.
  [[nodiscard]] __device__ bool poll() {
    fetch();
    return __any_sync(0xffffffffU, have_arrived() ? 0 : 1) == 0;
  }
  /// Waits until all words have arrived for all lanes. Returns false if the wait failed.
  [[nodiscard]] __device__ bool await(const run_arguments& run, int slot) {
    if (poll()) return true;
    lazy_watch watch(device_watch(run.world, slot));
    return wait_for_parts(*this, watch, run, run.operator_name()) == wait_outcome::ok;
  }
  /// As `await`, for words that have been loaded once already, with little code and few registers:
  /// polls all of them a number of times, then waits for one.
  [[nodiscard]] __device__ bool compact_await(const run_arguments& run, int slot) {
    for (int looks = 1; __any_sync(0xffffffffU, misses_some() ? 1 : 0) != 0; ++looks) {
      if (looks % patience == 0 && !await_missing(run, missing(), slot)) return false;
      fetch();
    }
    return true;
  }
  /// Resets the words to `nothing`, for the epoch after the next, which uses the same slabs.
  __device__ void reset_words() const {
#pragma unroll
    for (int i = 0; i < ranks; ++i) {
#pragma unroll
      for (int part = 0; part < together; ++part) {
        if (wants(i, part)) store_sum_words(word(i, part), Words::nothing());
      }
    }
  }

 private:
  /// Polls before a wait, each of most of a microsecond. A trace records waits, but no polls.
  static constexpr int patience = kernels_are_traced ? 1 : 64;

  [[nodiscard]] __device__ bool misses(int i, int part) const {
    return wants(i, part) && !Words::have_arrived(found[i][part]);
  }
  [[nodiscard]] __device__ bool misses_some() const {
    bool some = false;
#pragma unroll
    for (int i = 0; i < ranks; ++i) {
#pragma unroll
      for (int part = 0; part < together; ++part) some = some || misses(i, part);
    }
    return some;
  }
  /// The last word that has not arrived: usually the other words arrive before it.
  [[nodiscard]] __device__ missing_word<Words> missing() const {
    missing_word<Words> one;
    one.expected = expected;
    one.seen = seen;
#pragma unroll
    for (int i = 0; i < ranks; ++i) {
#pragma unroll
      for (int part = 0; part < together; ++part) {
        if (!misses(i, part)) continue;
        one.word = word(i, part);
        one.peer = at.rank_of(i);
        one.room = at.room + one.peer;
      }
    }
    return one;
  }
};

}  // namespace untax::gpu
