#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/rma/packet.cuh>

#include "engines/gpu/collectives/element.cuh"

namespace untax::gpu {

// Rows of packets lie in two sets, which epochs use alternately: epoch 1 is the first use of set 1,
// epoch 2 the first use of set 0.

[[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t set_of(std::uint64_t epoch) noexcept {
  return static_cast<std::int64_t>(epoch & 1U);
}
/// The mark flips from use to use of a set. It is 1 in the first use, as memory is zero at first.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr std::uint32_t mark_of(std::uint64_t epoch) noexcept {
  return static_cast<std::uint32_t>((epoch + 1) >> 1U) & 1U;
}
static_assert(mark_of(1) == 1 && mark_of(2) == 1 && mark_of(3) == 0 && mark_of(4) == 0);

/// Packs two words, the lower one first.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr std::uint64_t two_words(std::uint32_t low,
                                                                  std::uint32_t high) noexcept {
  return low | std::uint64_t{high} << 32U;
}

/// Format of partial results in flight: for each query head the elements, then two statistics whose
/// sum is the logarithm, to base 2, of the sum of the exponentials. `Wire` is float or bf16. A row
/// is stored as words, or as packets: four elements per packet, then one packet of statistics.
///
/// Four bf16 elements leave room for the epoch. Four fp32 elements fill a packet, so each word is
/// its own flag: its lowest bit is mark_of the epoch, instead of the element's. So words need not
/// arrive together, and need no ordering. A mark tells a use of a set from the previous use only;
/// `rank_exchange` says why no packet of an older use can be there.
template <class Wire>
struct partial_format {
  using words = word_of_elements<Wire>;
  static constexpr int each = words::each;  ///< elements per word
  static constexpr int count = 4 / each;    ///< words per four elements

  /// Four elements. The mark bit is 0, even in elements that are not sent, so all patterns and
  /// epochs give the same bits. A NaN stays a NaN: NaNs of arithmetic have all mantissa bits set.
  struct four {
    std::uint32_t word[count];
  };

  [[nodiscard]] __device__ static constexpr int row_words(int width) {
    return width / each + 2 / each;
  }

  [[nodiscard]] __device__ static four narrow(const float (&elements)[4]) {
    four to;
#pragma unroll
    for (int i = 0; i < count; ++i) to.word[i] = words::narrow(elements + i * each) & ~mark_bit;
    return to;
  }
  __device__ static void widen(const four& from, float (&to)[4]) {
#pragma unroll
    for (int i = 0; i < count; ++i) words::widen(from.word[i], to + i * each);
  }

  /// The packet that carries four elements and the flags of `epoch`.
  [[nodiscard]] __device__ static packet marked(const four& from, std::uint64_t epoch) {
    if constexpr (mark_bit == 0) {
      return {two_words(from.word[0], from.word[1]), epoch};
    } else {
      const std::uint32_t mark = mark_of(epoch);
      return {two_words(from.word[0] | mark, from.word[1] | mark),
              two_words(from.word[2] | mark, from.word[3] | mark)};
    }
  }
  [[nodiscard]] __device__ static bool has_come(const packet& p, std::uint64_t epoch) {
    if constexpr (mark_bit == 0) {
      return p.epoch >= epoch;
    } else {
      // Two words at a time: word by word, ptxas checks a packet before it issues the next load.
      const std::uint64_t marks = two_words(mark_of(epoch), mark_of(epoch));
      const std::uint64_t wrong = (p.data ^ marks) | (p.epoch ^ marks);
      return ((wrong | wrong >> 32U) & mark_bit) == 0;
    }
  }
  [[nodiscard]] __device__ static four unmarked(const packet& p) {
    four to;
#pragma unroll
    for (int i = 0; i < count; ++i) to.word[i] = word_of(p, i) & ~mark_bit;
    return to;
  }

  /// For bf16, splits the sum of the statistics into two terms, together twice as precise as one.
  [[nodiscard]] __device__ static std::uint64_t narrow(const float2& statistics) {
    float both[2] = {statistics.x, statistics.y};
    if constexpr (each == 1) return two_words(words::narrow(both), words::narrow(both + 1));
    const float whole = statistics.x + statistics.y;
    both[0] = whole;
    both[1] = 0;
    float high[2];
    words::widen(words::narrow(both), high);
    both[1] = whole == high[0] ? 0 : whole - high[0];
    return words::narrow(both);
  }
  /// The sum of the statistics.
  [[nodiscard]] __device__ static float logarithm(std::uint64_t statistics) {
    float both[4];
    words::widen(static_cast<std::uint32_t>(statistics), both);
    words::widen(static_cast<std::uint32_t>(statistics >> 32U), both + each);
    return both[0] + both[1];
  }

 private:
  static constexpr std::uint32_t mark_bit = each == 1 ? 1 : 0;

  [[nodiscard]] __device__ static std::uint32_t word_of(const packet& p, int i) {
    return static_cast<std::uint32_t>((i < 2 ? p.data : p.epoch) >> 32U * (i % 2));
  }
};

}  // namespace untax::gpu
