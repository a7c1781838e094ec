#pragma once

#include <untax/memory/cuda_memory.cuh>

#include <untax/tile/order.hpp>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/channel/warp_channel.cuh"
#include "engines/gpu/comm/sources/gathered.hpp"
#include "engines/gpu/gemm/config.hpp"
#include "engines/gpu/gemm/io.cuh"

namespace untax {

/// A thread's view of A: where it lies, how far it has arrived, and which rooms to retire when it
/// has been read.
template <class Protocol>
template <class Io>
class gathered<Protocol>::view {
 public:
  __device__ view(const Io& io, const gpu::gemm_arguments& given)
      : io_(io),
        b_(given.b),
        k_blocks_(given.schedule.k_blocks),
        channel_(io.moved.run, static_cast<int>(blockIdx.x)) {}

  __device__ void begin(std::uint64_t epoch) {
    epoch_ = epoch;
    use_ = io_.how.sets().use_of(epoch_);
    set_ = io_.how.sets().set_of(epoch_);
  }

  [[nodiscard]] __device__ bool counts_readers() const { return io_.shard.counted; }

  /// The last block that has read all of A retires it to the ranks that wrote it, while results are
  /// being stored. DMA engines do not wait, so if they send, this also waits until peers have read
  /// what this rank sent.
  __device__ void retire() {
    const int lane = device_warp::thread_rank();
    bool last = false;
    if (lane == 0) last = count_block() == epoch_ * static_cast<std::uint64_t>(io_.multiplying);
    const bool retires = __any_sync(0xffffffffU, last) != 0;
    __syncwarp();  // a vote orders no memory
    if (!retires) return;
    const Protocol& how = io_.how;
    if (!gpu::left_out(gpu::mutant::gather_retire)) {
      channel_.retire(how.world() - 1, [&](int i) {
        const int source = source_at_hop(how.rank(), i + 1, how.world());
        return how.answers(source) ? how.inbox_room(source, how.rank(), 0, epoch_) : room{};
      });
    }
    if (io_.next_use == nullptr) return;
    const int readers = how.answers(how.rank()) ? how.world() - 1 : 0;
    const bool read = channel_.reserve(readers, [&](int i) {
      const int peer = receiver_at_hop(how.rank(), i + 1, how.world());
      room next = how.inbox_room(how.rank(), peer, 0, epoch_);
      ++next.use;
      return next;
    });
    if (read && lane == 0) *io_.next_use = use_ + 1;
  }

  [[nodiscard]] __device__ gpu::operand_window window_of(int row, int k_block) const {
    const gather_segments::part at =
        io_.segments.part_of(row, k_block, k_blocks_, set_, io_.shard.set_rows);
    const bool by_k_blocks = io_.segments.rows == 0 && !io_.arrivals.by_rows;
    return {&io_.a[at.segment], at.row, by_k_blocks ? &io_.b_or_c[at.segment] : &b_, at.first,
            at.end};
  }
  [[nodiscard]] __device__ bool polls() const { return io_.polled; }
  /// Whether the window of a k-block is this rank's own shard, which nobody sends.
  [[nodiscard]] __device__ bool is_own_window(int row, int k_block) const {
    return io_.segments.is_own(io_.segments.at(row, k_block));
  }
  /// The first k-block of [begin, end) whose rows have not all arrived, or `end`.
  [[nodiscard]] __device__ int arrived_until(int row, int rows, int begin, int end) {
    if (io_.all_arrived || !going_) return end;
    const awaited_chunks what = chunks_of(row, rows, begin, end);
    if (what.rows == 0) return end;
    // Polls few flags at a time; the flags of later chunks are polled later.
    const int most = what.rows > most_looks ? what.rows : most_looks;
    const int count = what.count() < most ? what.count() : most;
    const int missing = channel_.first_missing(count, use_, [&](int i) { return what.counter(i); });
    if (missing < what.rows) return begin;
    // TMA reads what was acquired.
    if (!gpu::left_out(gpu::mutant::gather_proxy))
      cuda::ptx::fence_proxy_async(cuda::ptx::space_global);
    return what.end_of(missing / what.rows, end);
  }
  /// After a failed wait the block continues with the data in memory. The result is wrong, which
  /// `world::check` reports, but no role of the block is left waiting.
  __device__ void await(int row, int rows, int begin, int end) {
    const awaited_chunks what = chunks_of(row, rows, begin, end);
    going_ = channel_.acquire(what.count(), [&](int i) {
      room r;
      r.producer = io_.segments.sender_of(io_.arrivals, what, i, begin);
      r.number = r.ready = what.counter(i);
      r.use = use_;
      return r;
    });
    if (!gpu::left_out(gpu::mutant::gather_proxy))
      cuda::ptx::fence_proxy_async(cuda::ptx::space_global);
  }

 private:
  static constexpr int most_looks = 64;

  /// Counts this block after all its reads. Acquires the reads of the blocks before it.
  [[nodiscard]] __device__ std::uint64_t count_block() const {
    return 1 + cuda::atomic_ref<std::uint64_t, cuda::thread_scope_device>(*io_.done).fetch_add(
                   1, cuda::memory_order_acq_rel);
  }

  /// The chunks for which rows of tiles and k-blocks of a segment wait.
  [[nodiscard]] __device__ awaited_chunks chunks_of(int row, int rows, int begin, int end) const {
    return io_.segments.awaited(io_.arrivals, set_, row, rows, begin, end);
  }

  const Io& io_;
  const CUtensorMap& b_;
  int k_blocks_;
  std::uint64_t epoch_ = 0;
  std::uint64_t use_ = 0;  // of the set in this epoch
  int set_ = 0;
  gpu::warp_channel channel_;
  bool going_ = true;
};

/// A sink: tells where tiles of C go, by the segment of their rows.
template <class Io>
class segmented_result::view {
 public:
  __device__ view(const Io& io, const gpu::gemm_arguments& given) : io_(io), c_(given.c) {}
  __device__ void begin(std::uint64_t /*epoch*/) {}

  [[nodiscard]] __device__ static constexpr int copies() { return 1; }
  [[nodiscard]] __device__ gpu::destination copy_of(int row, int /*copy*/) const {
    const gather_segments& in = io_.segments;
    if (in.rows == 0) return {&c_, row};
    return {&io_.b_or_c[row / in.rows], in.row_of_result(row)};
  }

 private:
  const Io& io_;
  const CUtensorMap& c_;
};

}  // namespace untax
