#pragma once

#include <cstdint>

#include <untax/rma/packet.cuh>

#include "engines/gpu/attention/log_sum_exp.cuh"
#include "engines/gpu/attention/mma_consumer.cuh"
#include "engines/gpu/attention/packet_waits.cuh"
#include "engines/gpu/attention/partial.cuh"
#include "engines/gpu/attention/shares.cuh"
#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/channel/pending_waits.cuh"

namespace untax::gpu {

/// The blocks that share an item, and the units of it that the calling block combines. A warp
/// combines one unit at a time: `fours` groups of four elements of a row. A row has `turns` units.
/// With many blocks `fours` is smaller, so that a lane handles only some of the blocks.
struct part_share {
  static constexpr int at_once = 6;  ///< blocks that a lane handles at a time
  static constexpr int least_fours = 8;

  item_blocks blocks;
  int fours = 32;
  int turns = 1;
  count_share units;

  template <int keys>
  __device__ part_share(const attention_work<keys>& work, const attention_item& item, int group,
                        int width)
      : blocks(work, item) {
    while (fours > least_fours && blocks.count > at_once * (32 / fours)) fours /= 2;
    turns = (width / 4 + fours - 1) / fours;
    units = blocks.share_of(group * turns);
  }
};

/// Partial results of split items, as packets in this rank's memory, with room for two items per
/// block. The blocks of an item read each other's packets there. Each block combines a share of the
/// rows, in a fixed order. Every packet carries its whole epoch: as lengths change, a block may
/// skip a row for any number of epochs, so a one-bit mark would be ambiguous.
template <int width>
class item_parts {
 public:
  static constexpr int packets = width / 2 + 1;  ///< per row: two elements each, then statistics

  __device__ item_parts(const attention_arguments& a, std::uint64_t epoch)
      : parts_(a.parts), rank_(a.rank), epoch_(epoch) {}

  /// Stores four elements of a row of the block's part of an item; at column 0 also statistics.
  __device__ void leave(bool is_first, int g, int column, const float (&elements)[4],
                        const float2& statistics) const {
    packet* const to = row(static_cast<int>(blockIdx.x), is_first, g);
    untax::detail::store_packet(to + column / 2, {pair(elements[0], elements[1]), epoch_});
    untax::detail::store_packet(to + column / 2 + 1, {pair(elements[2], elements[3]), epoch_});
    if (column == 0)
      untax::detail::store_packet(to + packets - 1, {pair(statistics.x, statistics.y), epoch_});
  }

  /// Combines unit `turn` of row `g` over all blocks of an item; each of the first `fours` lanes
  /// gets four elements. Returns false if a wait failed. All lanes of the warp must call this.
  [[nodiscard]] __device__ bool combine(const part_share& share, int g, int turn, int room,
                                        lazy_watch& watch, const launch_trace& trace,
                                        const name_ref& name, float (&elements)[4],
                                        float2& statistics) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int beside = 32 / share.fours;  // lanes with equal elements, of different blocks
    const int together = min(part_share::at_once * beside, 32);  // one lane per block's statistics
    const int sub = lane / share.fours;
    const int place = (turn * share.fours + lane % share.fours) * 2;
    const int at = place < packets - 1 ? place : 0;
    const item_blocks& blocks = share.blocks;
    float high = log_of_nothing();
    float total = 0;
    for (float& e : elements) e = 0;
#pragma unroll 1
    for (int begin = 0; begin < blocks.count; begin += together) {
      const int count = min(blocks.count - begin, together);
      const int from = blocks.from + begin;
      const packet* const mine = row(from + lane, begin + lane > 0 || blocks.begins, g);
      const packet* const tail = lane < count ? mine + packets - 1 : nullptr;
      parts_of_lane part;
      part.tail = tail;
      part.first = row(from + sub, begin + sub > 0 || blocks.begins, g) + at;
      part.apart = static_cast<std::int64_t>(beside) * apart;
      part.next = row(from + sub + beside, true, g) + at;
      part.places = (count - sub + beside - 1) / beside;
      part.expected = left_out(mutant::attend_parts) ? 0 : epoch_;
      part.peer = rank_;
      part.room = room;
      if (wait_for_parts(part, watch, trace, name) != wait_outcome::ok) return false;
      float pair[2] = {log_of_nothing(), 0};
      if (lane < count) widen(part.statistics, pair);
      add(part, pair[0] + pair[1], sub, beside, high, total, elements);
    }
#pragma unroll 1
    for (int away = share.fours; away < 32; away *= 2) {
      for (float& e : elements) e += __shfl_xor_sync(everybody, e, away);
    }
    const float part = share_of(total);
    for (float& e : elements) e *= part;
    statistics = {high, total > 0 ? log2f(total) : 0};
    return true;
  }

 private:
  /// A lane's wait for packets: four elements from each of several blocks, and the row's statistics
  /// from the block with the lane's number, if there is one.
  struct parts_of_lane : spread_packets<2, part_share::at_once> {
    using elements = spread_packets<2, part_share::at_once>;
    const packet* tail = nullptr;
    std::uint64_t statistics = 0;

    [[nodiscard]] __device__ std::uint64_t look() {
      const packet last = load_packet_if(tail != nullptr, tail);
      const std::uint64_t came = elements::look();
      statistics = last.data;
      return last.epoch < this->expected ? this->judge(last.epoch) : came;
    }
  };
  static constexpr unsigned everybody = 0xffffffffU;
  /// Distance in packets from a row of a block to the same row of the next block.
  static constexpr int apart = 2 * most_heads_of_group * packets;

  /// A row of a block's partial result of its first item, or of its last item.
  [[nodiscard]] __device__ packet* row(int block, bool is_first, int g) const {
    const std::int64_t item = 2 * block + (is_first ? 0 : 1);
    return parts_ + (item * most_heads_of_group + g) * packets;
  }

  /// Adds the blocks in `part`. `logarithm`: log2-sum-exp of the block with the lane's number.
  __device__ static void add(const parts_of_lane& part, float logarithm, int sub, int beside,
                             float& high, float& total, float (&elements)[4]) {
    float top = fmaxf(high, logarithm);
#pragma unroll
    for (int away = 16; away > 0; away /= 2)
      top = fmaxf(top, __shfl_xor_sync(everybody, top, away));
    const float reference = reference_of(top);
    const float kept = power_of_2(high - reference);
    const float weight = power_of_2(logarithm - reference);
    float all = weight;
#pragma unroll
    for (int away = 16; away > 0; away /= 2) all += __shfl_xor_sync(everybody, all, away);
    high = top;
    total = total * kept + all;
    for (float& e : elements) e *= kept;
#pragma unroll
    for (int k = 0; k < part_share::at_once; ++k) {
      const float of_k = __shfl_sync(everybody, weight, (k * beside + sub) % 32);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float pair[2];
        widen(part.data[k][i], pair);
        elements[2 * i] += of_k * pair[0];
        elements[2 * i + 1] += of_k * pair[1];
      }
    }
  }
  [[nodiscard]] __device__ static std::uint64_t pair(float low, float high) {
    return two_words(__float_as_uint(low), __float_as_uint(high));
  }
  __device__ static void widen(std::uint64_t data, float (&to)[2]) {
    to[0] = __uint_as_float(static_cast<std::uint32_t>(data));
    to[1] = __uint_as_float(static_cast<std::uint32_t>(data >> 32U));
  }

  packet* parts_;
  int rank_;
  std::uint64_t epoch_;
};

}  // namespace untax::gpu
