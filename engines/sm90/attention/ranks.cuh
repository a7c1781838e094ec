#pragma once

#include <cstdint>

#include <untax/rma/packet.cuh>

#include "engines/sm90/attention/partial.cuh"
#include "engines/sm90/transfer/held_waits.cuh"

namespace untax::sm90 {

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

  /// 1 if all have come, else 0.
  [[nodiscard]] __device__ std::uint64_t look() {
    std::uint64_t come = 1;
#pragma unroll
    for (int k = 0; k < most; ++k) {
      if (k >= ranks) continue;
      const packet* row = first + k * apart;
      const packet tail = untax::detail::load_packet(row + apart - 1);
      const packet mine = untax::detail::load_packet(row + index);
      statistics[k] = tail.data;
      data[k] = mine.data;
      const std::uint64_t oldest = tail.epoch < mine.epoch ? tail.epoch : mine.epoch;
      if (oldest >= expected) continue;
      come = 0;
      seen = oldest;
      peer = k;
    }
    return come;
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

  /// Waits for a row of all ranks and writes the result. By all lanes of a warp.
  [[nodiscard]] __device__ bool receive(std::int64_t row, device_watch& watch) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    auto* const out = static_cast<std::uint16_t*>(a_.memory.out) + row * a_.memory.out_stride;
    for (int begin = 0; begin < packets_ - 1; begin += 32) {
      const bool has = begin + lane < packets_ - 1;
      partial_packets part;
      part.first = slot(a_.rank, row, 0);
      part.apart = packets_;
      part.index = has ? begin + lane : packets_ - 1;
      part.ranks = a_.ranks;
      part.expected = epoch_;
      part.room = static_cast<int>(row);
      if (wait_for_parts(part, watch, a_.run.operator_name()) != wait_outcome::ok) return false;
      if (!has) continue;
      rank_combination<Element, Wire> all;
      all.weigh(part.statistics, a_.ranks);
      all.combine(part.data, a_.ranks, out + (begin + lane) * format::columns);
    }
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
