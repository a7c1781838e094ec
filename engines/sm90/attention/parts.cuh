#pragma once

#include <cstdint>

#include <untax/rma/packet.cuh>

#include "engines/sm90/attention/ranks.cuh"
#include "engines/sm90/attention/work.cuh"
#include "engines/sm90/ptx/packet_load.cuh"
#include "engines/sm90/transfer/held_waits.cuh"

namespace untax::sm90 {

/// The blocks that have an item, and which of its units are the calling one's to finish. A unit is
/// what one warp takes at a time: `packets` of a row, `turns` of them the row. The more blocks
/// there are, the fewer packets: a lane then has time for some of the blocks only.
struct item_share {
  int from = 0;
  int blocks = 1;
  bool begins = true;  ///< with block `from`'s first tile
  int packets = 32;
  int turns = 1;
  int first = 0;  ///< units
  int last = 0;

  /// `row_packets`: of elements, in a row. A lane takes the parts of `at_once` blocks at a time.
  template <int keys>
  __device__ item_share(const attention_work<keys>& work, const attention_segment& segment,
                        int group, int row_packets, int at_once)
      : from(static_cast<int>(blockIdx.x)) {
    const attention_item& item = segment.item;
    const bool whole = segment.whole();
    if (!whole) {
      from = work.block_of(item.first);
      blocks = work.block_of(item.first + item.tiles - 1) - from + 1;
      begins = work.begin_of(from) == item.first;
      while (packets > least_packets && blocks > at_once * (32 / packets)) packets /= 2;
    }
    turns = (row_packets + packets - 1) / packets;
    last = group * turns;
    if (whole) return;
    const auto mine = static_cast<unsigned>(static_cast<int>(blockIdx.x) - from);
    const auto units = static_cast<unsigned>(last);
    first = static_cast<int>(mine * units / static_cast<unsigned>(blocks));
    last = static_cast<int>((mine + 1) * units / static_cast<unsigned>(blocks));
  }

  static constexpr int least_packets = 8;
};

/// Packets of a row from several blocks, what a lane waits for.
template <int each, int most>
struct block_packets {
  const packet* first = nullptr;  ///< of the lane, at its first block
  const packet* next = nullptr;   ///< at the second; `apart` packets further those of the third
  std::int64_t apart = 0;
  int blocks = 0;
  std::uint64_t expected = 0;
  std::uint64_t seen = 0;
  int peer = -1;
  int room = -1;
  verb what = verb::acquire;
  std::uint64_t data[most][each];

  /// 1 if all have come, else 0. All are asked for before the first one is looked at, and that is
  /// the last: compilers would move it in between.
  [[nodiscard]] __device__ std::uint64_t look() {
    packet found[most][each];
#pragma unroll
    for (int k = 0; k < most; ++k) {
      const packet* const from = k == 0 ? first : next + (k - 1) * apart;
#pragma unroll
      for (int i = 0; i < each; ++i) found[k][i] = load_packet_if(k < blocks, from + i);
    }
    std::uint64_t oldest = expected;
#pragma unroll
    for (int k = most - 1; k >= 0; --k) {
#pragma unroll
      for (int i = each - 1; i >= 0; --i) {
        data[k][i] = found[k][i].data;
        oldest = found[k][i].epoch < oldest ? found[k][i].epoch : oldest;
      }
    }
    if (oldest >= expected) return 1;
    seen = oldest;
    return 0;
  }
  __device__ void raise(std::uint64_t /*value*/) noexcept {}
};

/// The results of blocks that have only a part of an item: packets in memory of this rank, two rows
/// of items a block, with which the blocks of the item find each other. Each combines a share of
/// the rows, in the order of the blocks.
template <int width>
class item_parts {
 public:
  static constexpr int packets = width / 2 + 1;  ///< of a row: elements by two, then statistics

  __device__ item_parts(const attention_arguments& a, std::uint64_t epoch)
      : parts_(a.parts), rank_(a.rank), epoch_(epoch) {}

  /// Four elements of a row of the calling block's part of an item.
  __device__ void leave(bool is_first, int g, int column, const float (&elements)[4],
                        const float2& statistics) const {
    using format = partial_format<float>;
    packet* const to = row(static_cast<int>(blockIdx.x), is_first, g);
    untax::detail::store_packet(to + column / 2, {format::data(elements), epoch_});
    untax::detail::store_packet(to + column / 2 + 1, {format::data(elements + 2), epoch_});
    if (column == 0)
      untax::detail::store_packet(to + packets - 1, {format::data(statistics), epoch_});
  }

  /// How many blocks a lane takes at a time, if it takes `columns` elements of each.
  [[nodiscard]] __device__ static constexpr int at_once(int columns) { return 24 / columns; }

  /// Combines what all blocks of an item have for a unit: turn `turn` of row `g`, `columns`
  /// elements for each packet of it, in as many lanes as it has packets. Whether it came; by all
  /// lanes of a warp.
  template <int columns>
  [[nodiscard]] __device__ bool combine(const item_share& share, int g, int turn, int room,
                                        seldom_watch& watch, const name_ref& name,
                                        float (&elements)[columns], float2& statistics) const {
    constexpr int each = columns / 2;
    using waited = block_packets<each, at_once(columns)>;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int beside = 32 / share.packets;  // lanes with the same packets, of other blocks
    const int together = min(at_once(columns) * beside, 32);  // each has a lane for its statistics
    const int sub = lane / share.packets;
    const int place = (turn * share.packets + lane % share.packets) * each;
    const int at = place < packets - 1 ? place : 0;
    float high = nothing();
    float total = 0;
    for (float& e : elements) e = 0;
#pragma unroll 1
    for (int begin = 0; begin < share.blocks; begin += together) {
      const int blocks = min(share.blocks - begin, together);
      const int from = share.from + begin;
      const packet* const mine = row(from + lane, begin + lane > 0 || share.begins, g);
      // As long as keys are read, one packet of each block is enough to ask for.
      lane_packet tail{lane < blocks ? mine + packets - 1 : nullptr, epoch_, 0, rank_, room};
      if (wait_for_parts(tail, watch, name) != wait_outcome::ok) return false;
      waited part;
      part.first = row(from + sub, begin + sub > 0 || share.begins, g) + at;
      part.apart = static_cast<std::int64_t>(beside) * apart;
      part.next = row(from + sub + beside, true, g) + at;
      part.blocks = (blocks - sub + beside - 1) / beside;
      part.expected = epoch_;
      part.peer = rank_;
      part.room = room;
      if (wait_for_parts(part, watch, name) != wait_outcome::ok) return false;
      float pair[2] = {nothing(), 0};
      if (lane < blocks) widen(tail.data, pair);
      add(part, pair[0] + pair[1], sub, beside, high, total, elements);
    }
#pragma unroll 1
    for (int away = share.packets; away < 32; away *= 2) {
      for (float& e : elements) e += __shfl_xor_sync(everybody, e, away);
    }
    const float part = total > 0 ? 1 / total : 0;
    for (float& e : elements) e *= part;
    statistics = {high, total > 0 ? log2f(total) : 0};
    return true;
  }

 private:
  static constexpr unsigned everybody = 0xffffffffU;
  /// Packets from a row of a block to the same one of the next block.
  static constexpr int apart = 2 * most_heads_of_group * packets;

  [[nodiscard]] __device__ static float nothing() { return __int_as_float(0xff800000); }

  /// Of a block's first item, or of its last.
  [[nodiscard]] __device__ packet* row(int block, bool is_first, int g) const {
    const std::int64_t item = 2 * block + (is_first ? 0 : 1);
    return parts_ + (item * most_heads_of_group + g) * packets;
  }

  /// `logarithm`: of the sum of block `lane`.
  template <int each, int most>
  __device__ static void add(const block_packets<each, most>& part, float logarithm, int sub,
                             int beside, float& high, float& total, float (&elements)[2 * each]) {
    float top = fmaxf(high, logarithm);
#pragma unroll
    for (int away = 16; away > 0; away /= 2)
      top = fmaxf(top, __shfl_xor_sync(everybody, top, away));
    const float reference = top == nothing() ? 0 : top;
    const float kept = power_of_2(high - reference);
    const float weight = power_of_2(logarithm - reference);
    float all = weight;
#pragma unroll
    for (int away = 16; away > 0; away /= 2) all += __shfl_xor_sync(everybody, all, away);
    high = top;
    total = total * kept + all;
    for (float& e : elements) e *= kept;
#pragma unroll
    for (int k = 0; k < most; ++k) {
      const float of_k = __shfl_sync(everybody, weight, (k * beside + sub) % 32);
#pragma unroll
      for (int i = 0; i < each; ++i) {
        float pair[2];
        widen(part.data[k][i], pair);
        elements[2 * i] += of_k * pair[0];
        elements[2 * i + 1] += of_k * pair[1];
      }
    }
  }
  __device__ static void widen(std::uint64_t data, float (&to)[2]) {
    to[0] = __uint_as_float(static_cast<std::uint32_t>(data));
    to[1] = __uint_as_float(static_cast<std::uint32_t>(data >> 32U));
  }

  packet* parts_;
  int rank_;
  std::uint64_t epoch_;
};

}  // namespace untax::sm90
