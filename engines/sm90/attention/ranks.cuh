#pragma once

#include <cstdint>

#include <untax/rma/packet.cuh>

#include "engines/sm90/attention/packet_waits.cuh"
#include "engines/sm90/attention/partial.cuh"
#include "engines/sm90/attention/seldom_watch.cuh"
#include "engines/sm90/transfer/held_waits.cuh"

namespace untax::sm90 {

/// The exchange of partial results between ranks, as packets that carry their own flag.
///
/// The inbox of a rank: two sets, used in turn; in a set a row of packets for each query head of
/// each sequence and each rank. A set is written again two epochs later. By then its reader has
/// read it: every rank sends every row in every epoch, so who has come to the end of the last epoch
/// has heard from all that they had ended the one before.
template <class Element, class Wire>
class rank_exchange {
  using format = partial_format<Wire>;

 public:
  __device__ rank_exchange(const attention_arguments& a, std::uint64_t epoch)
      : a_(a), epoch_(epoch), packets_(format::packets(a.shape.head_dim)) {}

  /// Packet `i` of a row and those behind it to all ranks, nearest first and itself last.
  template <int count>
  __device__ void send(std::int64_t row, int i, const std::uint64_t (&data)[count]) const {
    for (int hop = 1; hop <= a_.ranks; ++hop) {
      const int peer = a_.rank + hop < a_.ranks ? a_.rank + hop : a_.rank + hop - a_.ranks;
      packet* const at = slot(peer, row, a_.rank) + i;
#pragma unroll
      for (int k = 0; k < count; ++k) untax::detail::store_packet(at + k, {data[k], epoch_});
    }
  }

  /// Waits for the statistics of a row of all ranks. This may be waited for all the while, so no
  /// other packets are looked at. By all lanes of a warp.
  [[nodiscard]] __device__ bool await(std::int64_t row, seldom_watch& watch) const {
    return await_tail(lane() < a_.ranks ? slot(a_.rank, row, lane() + 1) - 1 : nullptr,
                      lane() % a_.ranks, row, watch);
  }
  /// The same of a row in the outbox.
  [[nodiscard]] __device__ bool await_own(std::int64_t row, seldom_watch& watch) const {
    return await_tail(lane() == 0 ? a_.outbox + (row + 1) * packets_ - 1 : nullptr, a_.rank, row,
                      watch);
  }

  /// Waits for a row from all ranks and writes the result. By all lanes of a warp.
  [[nodiscard]] __device__ bool receive(std::int64_t row, seldom_watch& watch) const {
    auto* const out = static_cast<std::uint16_t*>(a_.memory.out) + row * a_.memory.out_stride;
#pragma unroll 1
    for (int begin = 0; begin < packets_ - 1; begin += 32 * each) {
      const int at = begin + lane() * each;
      float sum[each][format::columns] = {};
      float part = 0;
#pragma unroll 1
      for (int rank = 0; rank < a_.ranks; rank += packets_of_ranks::most) {
        packets_of_ranks some;
        some.tail = lane() < a_.ranks ? slot(a_.rank, row, lane() + 1) - 1 : nullptr;
        some.first = slot(a_.rank, row, rank) + (at < packets_ - 1 ? at : 0);
        some.apart = packets_;
        some.rank = rank;
        some.ranks = at < packets_ - 1 ? min(a_.ranks - rank, packets_of_ranks::most) : 0;
        some.expected = epoch_;
        some.room = static_cast<int>(row);
        if (wait_for_parts(some, watch, a_.run.operator_name()) != wait_outcome::ok) return false;
        const combination all(some.statistics, a_.ranks);
#pragma unroll
        for (int k = 0; k < packets_of_ranks::most; ++k) {
          const float weight = all.weight_of(rank + k);
#pragma unroll
          for (int i = 0; i < each; ++i) combination::add(weight, some.data[k][i], sum[i]);
        }
        part = all.part();
      }
      if (at >= packets_ - 1) continue;
#pragma unroll
      for (int i = 0; i < each; ++i)
        combination::store(sum[i], part, out + (at + i) * format::columns);
    }
    return true;
  }

  /// Waits for a row in the outbox and sends it. By all lanes of a warp.
  [[nodiscard]] __device__ bool forward(std::int64_t row, seldom_watch& watch) const {
    constexpr int most = 3;
#pragma unroll 1
    for (int begin = 0; begin < packets_; begin += most * 32) {
      const int at = begin + lane();
      spread_packets<1, most> mine;
      mine.first = a_.outbox + row * packets_ + at;
      mine.next = mine.first + 32;
      mine.apart = 32;
      mine.places = (packets_ - at + 31) / 32;
      mine.expected = epoch_;
      mine.peer = a_.rank;
      mine.room = static_cast<int>(row);
      if (wait_for_parts(mine, watch, a_.run.operator_name()) != wait_outcome::ok) return false;
#pragma unroll
      for (int k = 0; k < most; ++k) {
        if (k < mine.places) send(row, at + k * 32, mine.data[k]);
      }
    }
    return true;
  }

 private:
  using combination = rank_combination<Element, Wire>;
  /// Packets of four elements.
  static constexpr int each = 4 / format::columns;
  using packets_of_ranks = rank_packets<each>;

  [[nodiscard]] __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }

  [[nodiscard]] __device__ bool await_tail(const packet* at, int peer, std::int64_t row,
                                           seldom_watch& watch) const {
    lane_packet tail;
    tail.at = at;
    tail.expected = epoch_;
    tail.peer = peer;
    tail.room = static_cast<int>(row);
    return wait_for_parts(tail, watch, a_.run.operator_name()) == wait_outcome::ok;
  }

  [[nodiscard]] __device__ packet* slot(int at, std::int64_t row, int source) const {
    const std::int64_t set = static_cast<std::int64_t>(epoch_ & 1U) * a_.shape.rows();
    return reinterpret_cast<packet*>(a_.run.inbox.at(at)) +
           ((set + row) * a_.ranks + source) * packets_;
  }

  const attention_arguments& a_;
  std::uint64_t epoch_;
  int packets_;
};

}  // namespace untax::sm90
