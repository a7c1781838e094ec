#pragma once

#include <cstdint>

#include <untax/rma/packet.cuh>

#include "engines/gpu/attention/packet_waits.cuh"
#include "engines/gpu/attention/partial.cuh"
#include "engines/gpu/attention/rank_combination.cuh"
#include "engines/gpu/channel/pending_waits.cuh"

namespace untax::gpu {

/// The exchange of partial results between ranks, as packets that carry their own flag.
///
/// The inbox of a rank has two sets, used by alternate epochs. A set has a row of packets for each
/// query head of each sequence and each source rank. It is overwritten two epochs later. By then it
/// has been read: every rank sends every row in every epoch, after it has ended the previous epoch.
/// So when a rank has ended epoch e - 1, all ranks have ended epoch e - 2. The outbox has two sets,
/// too, so that its packets are forwarded unchanged.
///
/// Marks require more. Every packet of a row is written in every epoch, even for an empty sequence,
/// and a kernel that succeeds has seen each word arrive. Loads of later kernels return no older
/// value, so a word belongs to the set's previous use or to this one. A failed wait leaves words
/// that no load has seen, and epochs that differ between blocks. But from then on world::check
/// throws, and the results of replayed launches are invalid.
template <class Element, class Wire>
class rank_exchange {
 public:
  __device__ rank_exchange(const attention_arguments& a, std::uint64_t epoch)
      : a_(a), epoch_(epoch), packets_(packets_of_row(a.shape.head_dim)) {}

  /// Sends packet `i` of a row to all ranks, the next rank first and this rank last.
  __device__ void send(std::int64_t row, int i, const packet& p) const {
    for (int hop = 1; hop <= a_.ranks; ++hop) {
      const int peer = a_.rank + hop < a_.ranks ? a_.rank + hop : a_.rank + hop - a_.ranks;
      untax::detail::store_packet(slot(peer, row, a_.rank) + i, p);
    }
  }
  /// Stores packet `i` of a row in the outbox.
  __device__ void leave(std::int64_t row, int i, const packet& p) const {
    untax::detail::store_packet(own(row) + i, p);
  }

  /// Waits for the statistics of a row from all ranks. This wait may last as long as the kernel, so
  /// it polls no other packets. All lanes of the warp must call this. Returns false if it failed.
  [[nodiscard]] __device__ bool await(std::int64_t row, lazy_watch& watch) const {
    return await_tail(lane() < a_.ranks ? slot(a_.rank, row, lane() + 1) - 1 : nullptr,
                      lane() % a_.ranks, row, watch);
  }
  /// Waits likewise for the statistics of a row in the outbox.
  [[nodiscard]] __device__ bool await_own(std::int64_t row, lazy_watch& watch) const {
    return await_tail(lane() == 0 ? own(row + 1) - 1 : nullptr, a_.rank, row, watch);
  }

  /// Waits for a row from all ranks and stores the result. All lanes of the warp must call this.
  [[nodiscard]] __device__ bool receive(std::int64_t row, lazy_watch& watch) const {
    auto* const out = static_cast<std::uint16_t*>(a_.memory.out) + row * a_.memory.out_stride;
#pragma unroll 1
    for (int begin = 0; begin < packets_ - 1; begin += 32) {
      const int at = begin + lane();
      const bool has = at < packets_ - 1;
      float sum[4] = {};
      float part = 0;
#pragma unroll 1
      for (int rank = 0; rank < a_.ranks; rank += packets_of_ranks::most) {
        packets_of_ranks some(epoch_);
        some.tail = lane() < a_.ranks ? slot(a_.rank, row, lane() + 1) - 1 : nullptr;
        some.first = slot(a_.rank, row, rank) + (has ? at : 0);
        some.apart = packets_;
        some.rank = rank;
        some.places = has ? min(a_.ranks - rank, packets_of_ranks::most) : 0;
        some.room = static_cast<int>(row);
        if (wait_for_parts(some, watch, a_.run, a_.run.operator_name()) != wait_outcome::ok)
          return false;
        const combination all(some.statistics, a_.ranks);
#pragma unroll
        for (int k = 0; k < packets_of_ranks::most; ++k)
          combination::add(all.weight_of(rank + k), format::unmarked(some.fours[k]), sum);
        part = all.part();
      }
      if (has) combination::store(sum, part, out + 4 * at);
    }
    return true;
  }

  /// Waits for a row in the outbox and sends it. All lanes of the warp must call this.
  [[nodiscard]] __device__ bool forward(std::int64_t row, lazy_watch& watch) const {
    constexpr int most = 2;  // packets per lane, enough for heads of 256 elements
    row_packets<Wire, most> mine(epoch_);
    mine.first = own(row) + lane();
    mine.apart = 32;
    mine.places = (packets_ - 1 - lane() + 31) / 32;
    mine.tail = lane() == 0 ? own(row + 1) - 1 : nullptr;
    mine.peer = a_.rank;
    mine.room = static_cast<int>(row);
    if (wait_for_parts(mine, watch, a_.run, a_.run.operator_name()) != wait_outcome::ok)
      return false;
#pragma unroll
    for (int k = 0; k < most; ++k) {
      if (k < mine.places) send(row, lane() + 32 * k, mine.fours[k]);
    }
    if (lane() == 0) send(row, packets_ - 1, {mine.statistics, epoch_});
    return true;
  }

 private:
  using format = partial_format<Wire>;
  using combination = rank_combination<Element, Wire>;
  using packets_of_ranks = rank_packets<Wire>;

  [[nodiscard]] __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }

  [[nodiscard]] __device__ bool await_tail(const packet* at, int peer, std::int64_t row,
                                           lazy_watch& watch) const {
    lane_packet tail;
    tail.at = at;
    tail.expected = epoch_;
    tail.peer = peer;
    tail.room = static_cast<int>(row);
    return wait_for_parts(tail, watch, a_.run, a_.run.operator_name()) == wait_outcome::ok;
  }

  [[nodiscard]] __device__ packet* slot(int at, std::int64_t row, int source) const {
    return reinterpret_cast<packet*>(a_.run.inbox.at(at)) +
           ((set_of(epoch_) * a_.shape.rows() + row) * a_.ranks + source) * packets_;
  }
  /// A row in the outbox.
  [[nodiscard]] __device__ packet* own(std::int64_t row) const {
    return a_.outbox + (set_of(epoch_) * a_.shape.rows() + row) * packets_;
  }

  const attention_arguments& a_;
  std::uint64_t epoch_;
  int packets_;
};

}  // namespace untax::gpu
