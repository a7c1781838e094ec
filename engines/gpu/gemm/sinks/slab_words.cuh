#pragma once

#include <cstdint>

#include <untax/rma/device_group.cuh>

#include "engines/gpu/channel/pending_waits.cuh"
#include "engines/gpu/channel/run_arguments.hpp"
#include "engines/gpu/sm90/ptx/sum_words.cuh"
#include "engines/gpu/trace/launch_trace.hpp"

namespace untax::gpu {

/// Where a lane's words lie that some ranks have for it: in slabs of the same form
/// (engines/gpu/channel/peer_slabs.hpp), at the same place of each.
template <class Words>
struct slab_place {
  using words = typename Words::words;

  words* first = nullptr;  ///< in the slab of rank 0
  std::int64_t apart = 0;  ///< words from a slab to the next
  int skipped = -1;        ///< a rank that has none here; -1: all have
  int begin = 0;           ///< the first rank, without that one
  int count = 0;           ///< of ranks
  unsigned wanted = 1;     ///< a bit for each word of a rank that there is
  std::uint64_t epoch = 0;
  int room = -1;  ///< of rank 0

  [[nodiscard]] __device__ int rank_of(int i) const {
    const int rank = begin + i;
    return skipped >= 0 && rank >= skipped ? rank + 1 : rank;
  }
};

/// A word that a lane misses, or none.
template <class Words>
struct missing_word {
  const typename Words::words* word = nullptr;
  std::uint64_t expected = 0;
  std::uint64_t seen = 0;
  int peer = -1;
  int room = -1;
  verb what = verb::acquire;

  [[nodiscard]] __device__ std::uint64_t look() const {
    return Words::have_come(load_sum_words_if(word != nullptr, word)) ? 1 : 0;
  }
  __device__ void raise(std::uint64_t /*value*/) noexcept {}
};

/// Waits for the words that the lanes of a warp miss; false if that ended badly. A function of its
/// own, since code that is rarely run and lies between what mostly is has to be fetched, too.
template <class Words>
[[nodiscard]] __device__ __noinline__ bool await_missing(const run_arguments& run,
                                                         missing_word<Words> mine, int slot) {
  lazy_watch watch(device_watch(run.world, slot));
  return wait_for_parts(mine, watch, run, run.operator_name()) == wait_outcome::ok;
}

/// What a lane waits for: `together` words of `ranks` ranks at most. They are asked for all at once
/// before the first one is looked at. Data are taken from the very loads that found them, so that
/// nothing else has to be ordered.
template <class Words, int ranks, int together = 1>
struct slab_words {
  using words = typename Words::words;
  static constexpr int lanes = 32;  ///< between words of a lane

  slab_place<Words> at;
  words found[ranks][together];

  // What a wait reports.
  std::uint64_t expected = 0;
  std::uint64_t seen = 0;
  int peer = -1;
  int room = -1;
  verb what = verb::acquire;

  __device__ explicit slab_words(const slab_place<Words>& where)
      : at(where), expected(where.epoch), seen(where.epoch > 2 ? where.epoch - 2 : 0) {}

  [[nodiscard]] __device__ bool asks(int i, int part) const {
    return i < at.count && (at.wanted >> part & 1U) != 0;
  }
  [[nodiscard]] __device__ words* word(int i, int part) const {
    return at.first + at.rank_of(i) * at.apart + part * lanes;
  }
  __device__ void ask() {
#pragma unroll
    for (int i = 0; i < ranks; ++i) {
#pragma unroll
      for (int part = 0; part < together; ++part)
        found[i][part] = load_sum_words_if(asks(i, part), word(i, part));
    }
  }
  [[nodiscard]] __device__ bool have_come() {
    bool came = true;
#pragma unroll
    for (int i = ranks - 1; i >= 0; --i) {
#pragma unroll
      for (int part = 0; part < together; ++part) {
        if (Words::have_come(found[i][part])) continue;
        came = false;
        peer = at.rank_of(i);
        room = at.room + peer;
      }
    }
    return came;
  }
  [[nodiscard]] __device__ std::uint64_t look() {
    ask();
    return have_come() ? 1 : 0;
  }
  __device__ void raise(std::uint64_t /*value*/) noexcept {}

  /// A bit for each word of a rank, of one rank, that has come, or has not been asked for.
  [[nodiscard]] __device__ unsigned have_come_of_lanes() const {
    static_assert(ranks == 1);
    unsigned came = 0;
#pragma unroll
    for (int part = 0; part < together; ++part)
      if (Words::have_come(found[0][part])) came |= 1U << part;
    return __reduce_and_sync(0xffffffffU, came);
  }

  /// Whether those of all lanes of the warp have come, as far as one look tells.
  [[nodiscard]] __device__ bool are_there() {
    ask();
    return __any_sync(0xffffffffU, have_come() ? 0 : 1) == 0;
  }
  /// Waits until those of all lanes of the warp have come; false if that ended badly.
  [[nodiscard]] __device__ bool await(const run_arguments& run, int slot) {
    if (are_there()) return true;
    lazy_watch watch(device_watch(run.world, slot));
    return wait_for_parts(*this, watch, run, run.operator_name()) == wait_outcome::ok;
  }
  /// The same of words that have been asked for already, and are still wanted, in little code and
  /// few registers: some looks at all of them, and then a wait for one.
  [[nodiscard]] __device__ bool compact_await(const run_arguments& run, int slot) {
    for (int looks = 1; __any_sync(0xffffffffU, misses_some() ? 1 : 0) != 0; ++looks) {
      if (looks % patience == 0 && !await_missing(run, missing(), slot)) return false;
      ask();
    }
    return true;
  }
  /// For the epoch after the next.
  __device__ void put_back() const {
#pragma unroll
    for (int i = 0; i < ranks; ++i) {
#pragma unroll
      for (int part = 0; part < together; ++part) {
        if (asks(i, part)) store_sum_words(word(i, part), Words::nothing());
      }
    }
  }

 private:
  /// Looks, of most of a microsecond each. A trace notes waits, and so does not know what is found
  /// by looking.
  static constexpr int patience = kernels_are_traced ? 1 : 64;

  [[nodiscard]] __device__ bool misses(int i, int part) const {
    return asks(i, part) && !Words::have_come(found[i][part]);
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
  /// The last of those that are wanted which has not come: mostly the others come before it.
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
