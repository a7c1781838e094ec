#pragma once

#include <cstdint>

#include <untax/rma/packet.cuh>

#include "engines/sm90/attention/partial.cuh"
#include "engines/sm90/attention/seldom_watch.cuh"
#include "engines/sm90/ptx/packet_load.cuh"
#include "engines/sm90/transfer/held_waits.cuh"

namespace untax::sm90 {

/// One packet that a lane waits for, or none.
struct lane_packet {
  const packet* at = nullptr;
  std::uint64_t expected = 0;
  std::uint64_t seen = 0;
  int peer = -1;
  int room = -1;
  verb what = verb::acquire;
  std::uint64_t data = 0;

  /// 1 if it has come, else 0.
  [[nodiscard]] __device__ std::uint64_t look() {
    if (at == nullptr) return 1;
    const packet p = untax::detail::load_packet(at);
    data = p.data;
    seen = p.epoch;
    return seen >= expected ? 1 : 0;
  }
  __device__ void raise(std::uint64_t /*value*/) noexcept {}
};

/// The last packets of some rows, each of all ranks: what a lane waits for.
struct row_tails {
  static constexpr int most = 4;  ///< of 16 rows from 8 ranks

  const packet* first = nullptr;
  std::int64_t apart = 0;
  int count = 0;
  int ranks = 1;
  std::uint64_t expected = 0;
  std::uint64_t seen = 0;
  int peer = -1;
  int room = -1;
  verb what = verb::acquire;

  /// 1 if all have come, else 0.
  [[nodiscard]] __device__ std::uint64_t look() {
    std::uint64_t found[most];
#pragma unroll
    for (int k = 0; k < most; ++k) found[k] = load_packet_if(k < count, first + k * apart).epoch;
    std::uint64_t oldest = expected;
#pragma unroll
    for (int k = most - 1; k >= 0; --k) {
      if (found[k] < expected) peer = (static_cast<int>(threadIdx.x) % 32 + 32 * k) % ranks;
      oldest = found[k] < oldest ? found[k] : oldest;
    }
    if (oldest >= expected) return 1;
    seen = oldest;
    return 0;
  }
  __device__ void raise(std::uint64_t /*value*/) noexcept {}
};

/// One packet of a row from each rank, and that of the statistics: what a lane waits for. Data are
/// taken from the very loads that saw the epoch.
struct partial_packets {
  static constexpr int most = 8;

  const packet* first = nullptr;  ///< of the row of rank 0
  int apart = 0;                  ///< packets of a row
  int index = 0;
  int ranks = 0;
  std::uint64_t expected = 0;
  std::uint64_t seen = 0;
  int peer = -1;
  int room = -1;
  verb what = verb::acquire;
  std::uint64_t data[most] = {};
  std::uint64_t statistics[most] = {};

  /// 1 if all have come, else 0. All are asked for before the first one is looked at, and that is
  /// the last: compilers would move it in between.
  [[nodiscard]] __device__ std::uint64_t look() {
    packet tails[most];
    packet mine[most];
#pragma unroll
    for (int k = 0; k < most; ++k) {
      const packet* const row = first + k * apart;
      tails[k] = load_packet_if(k < ranks, row + apart - 1);
      mine[k] = load_packet_if(k < ranks, row + index);
    }
    std::uint64_t oldest = expected;
#pragma unroll
    for (int k = most - 1; k >= 0; --k) {
      statistics[k] = tails[k].data;
      data[k] = mine[k].data;
      const std::uint64_t of_rank = tails[k].epoch < mine[k].epoch ? tails[k].epoch : mine[k].epoch;
      if (of_rank < expected) peer = k;
      oldest = of_rank < oldest ? of_rank : oldest;
    }
    if (oldest >= expected) return 1;
    seen = oldest;
    return 0;
  }
  __device__ void raise(std::uint64_t /*value*/) noexcept {}
};

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

  [[nodiscard]] __device__ int packets() const noexcept { return packets_; }

  /// Packet `i` of a row to all ranks, nearest first and itself last.
  __device__ void send(std::int64_t row, int i, std::uint64_t data) const {
    for (int hop = 1; hop <= a_.ranks; ++hop) {
      const int peer = a_.rank + hop < a_.ranks ? a_.rank + hop : a_.rank + hop - a_.ranks;
      packet* const at = slot(peer, row, a_.rank) + i;
      untax::detail::store_packet(at, {data, epoch_});
    }
  }

  /// Waits for the statistics of some rows, 16 at most, of all ranks. This may be waited for all
  /// the while, so no other packets are looked at. By all lanes of a warp.
  [[nodiscard]] __device__ bool await(std::int64_t row, int rows, seldom_watch& watch) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    row_tails tails;
    tails.first = slot(a_.rank, row, 0) + (lane + 1) * packets_ - 1;
    tails.apart = 32 * packets_;
    tails.count = (rows * a_.ranks - lane + 31) / 32;
    tails.ranks = a_.ranks;
    tails.expected = epoch_;
    tails.room = static_cast<int>(row);
    return wait_for_parts(tails, watch, a_.run.operator_name()) == wait_outcome::ok;
  }

  /// Waits for `count` packets of elements of a row from all ranks, 32 at most and from packet
  /// `begin` on, and writes that part of the result. By all lanes of a warp.
  [[nodiscard]] __device__ bool receive(std::int64_t row, int begin, int count,
                                        seldom_watch& watch) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int at = begin + lane;
    const bool has = lane < count && at < packets_ - 1;
    partial_packets part;
    part.first = slot(a_.rank, row, 0);
    part.apart = packets_;
    part.index = has ? at : packets_ - 1;
    part.ranks = a_.ranks;
    part.expected = epoch_;
    part.room = static_cast<int>(row);
    if (wait_for_parts(part, watch, a_.run.operator_name()) != wait_outcome::ok) return false;
    if (!has) return true;
    auto* const out = static_cast<std::uint16_t*>(a_.memory.out) + row * a_.memory.out_stride;
    rank_combination<Element, Wire> all;
    all.weigh(part.statistics, a_.ranks);
    all.combine(part.data, a_.ranks, out + at * format::columns);
    return true;
  }

 private:
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
