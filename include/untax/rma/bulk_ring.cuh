#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <cuda/ptx>

#include <untax/rma/device_group.cuh>

namespace untax {

/// The rows of bytes of a copy by TMA. Addresses, strides and `bytes` are multiples of 16.
struct bulk_rows {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::int64_t to_stride = 0;    ///< in bytes
  std::int64_t from_stride = 0;  ///< in bytes
  std::int64_t rows = 0;
  std::int64_t bytes = 0;  ///< in a row
};

/// A ring buffer in shared memory, through which TMA copies bytes between any two addresses: it
/// loads one stage while it stores others. One thread drives it; the others are free for edges, or
/// for other work.
///
/// A stage of 32 KB is large enough for the full rate of a link, and six of them cover the latency
/// of a peer.
template <int stages = 6, int stage_bytes = 32768>
class bulk_ring {
  static_assert(stages >= 2 && stage_bytes % 128 == 0);

 public:
  /// The shared memory that the caller provides, usually at the start of dynamic shared memory
  /// (more than 48 KB have to be requested with cudaFuncSetAttribute).
  struct alignas(128) memory {
    std::byte stage[stages][stage_bytes];
    std::uint64_t arrived[stages];
  };

  /// Called by all threads of a block or of a warp, once in a kernel. Nothing else may use `shared`
  /// afterwards.
  template <class Group>
  __device__ bulk_ring(const Group& group, memory& shared) : shared_(&shared) {
    if (group.thread_rank() == 0) {
      for (std::uint64_t& barrier : shared.arrived) cuda::ptx::mbarrier_init(&barrier, 1);
      cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
      cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    }
    group.sync();
  }

  /// Moves the rows, and returns when all of them are at their destination, so that a release of
  /// this thread covers them. It is called by one thread, always the same one. Earlier ordinary
  /// stores to the source, by this thread or a thread that it is synchronised with, are moved, too.
  __device__ void move(const bulk_rows& rows) {
    post(rows);
    finish();
  }

  /// As `move`, but returns when the last rows are in flight, so that the next rows follow without
  /// a gap. `finish` has to be called before the first release that covers them, and before the
  /// kernel ends.
  __device__ void post(const bulk_rows& rows) {
    post(rows, 1, [&](int /*copy*/) { return rows.to; });
  }
  /// As above, for `copies` destinations of one source: copy i begins at `to_of(i)`.
  template <class ToOf>
  __device__ void post(const bulk_rows& rows, int copies, const ToOf& to_of) {
    // Ordinary stores and TMA take different ways to memory.
    cuda::ptx::fence_proxy_async();
    chunk next(rows);
    fill(rows, next, std::make_integer_sequence<int, stages>());
    chunk here(rows);
    for (bool first = true; here.row < rows.rows; first = false) {
      store(rows, here, copies, to_of);
      // The next load goes to the stage of the previous chunk: the current chunk may still be
      // leaving its stage, but the previous one has left.
      if (first || next.row >= rows.rows) continue;
      cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<1>());
      load(rows, next);
    }
  }

  /// Returns when everything that was posted is at its destination. It is called by the same
  /// thread.
  __device__ void finish() {
    // Waits until the bytes are written, not only read, since a signal promises the write.
    cuda::ptx::cp_async_bulk_wait_group(cuda::ptx::n32_t<0>());
  }

 private:
  /// A part of the rows that fits a stage: several rows, or a part of one.
  struct chunk {
    std::int64_t row = 0;
    std::int64_t offset = 0;
    std::int32_t most_rows;

    explicit __device__ chunk(const bulk_rows& all)
        : most_rows(all.bytes * 2 > stage_bytes ? 1 : stage_bytes / static_cast<int>(all.bytes)) {}

    [[nodiscard]] __device__ std::int32_t rows(const bulk_rows& all) const {
      const std::int64_t left = all.rows - row;
      return left < most_rows ? static_cast<std::int32_t>(left) : most_rows;
    }
    [[nodiscard]] __device__ std::uint32_t bytes(const bulk_rows& all) const {
      const std::int64_t left = all.bytes - offset;
      return static_cast<std::uint32_t>(left < stage_bytes ? left : stage_bytes);
    }
    __device__ void advance(const bulk_rows& all) {
      offset += stage_bytes;
      if (offset < all.bytes) return;
      offset = 0;
      row += most_rows;
    }
  };

  /// A stage of the ring, and the parity of the turn around it.
  struct cursor {
    std::uint32_t stage = 0;
    std::uint32_t turn = 0;

    __device__ void advance() {
      if (++stage == stages) {
        stage = 0;
        turn ^= 1;
      }
    }
  };

  /// Starts a load into each stage, as soon as the rows posted before have left it.
  template <int... i>
  __device__ void fill(const bulk_rows& all, chunk& c, std::integer_sequence<int, i...> /*turns*/) {
    (fill_stage<stages - 1 - i>(all, c), ...);
  }
  template <int unread>
  __device__ void fill_stage(const bulk_rows& all, chunk& c) {
    if (c.row >= all.rows) return;
    cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<unread>());
    load(all, c);
  }

  __device__ void load(const bulk_rows& all, chunk& c) {
    std::uint64_t* arrived = &shared_->arrived[loading_.stage];
    std::byte* stage = shared_->stage[loading_.stage];
    const std::int32_t rows = c.rows(all);
    const std::uint32_t bytes = c.bytes(all);
    cuda::ptx::mbarrier_arrive_expect_tx(cuda::ptx::sem_release, cuda::ptx::scope_cta,
                                         cuda::ptx::space_shared, arrived,
                                         static_cast<std::uint32_t>(rows) * bytes);
    const std::byte* from = all.from + c.row * all.from_stride + c.offset;
#pragma unroll 1
    for (std::int32_t row = 0; row < rows; ++row) {
      cuda::ptx::cp_async_bulk(cuda::ptx::space_cluster, cuda::ptx::space_global, stage, from,
                               bytes, arrived);
      stage += bytes;
      from += all.from_stride;
    }
    c.advance(all);
    loading_.advance();
  }

  template <class ToOf>
  __device__ void store(const bulk_rows& all, chunk& c, int copies, const ToOf& to_of) {
    // Not a wait for a peer: the barrier is raised by this multiprocessor's own TMA unit, and a
    // memory that does not answer ends the kernel with an error.
    while (!cuda::ptx::mbarrier_try_wait_parity(&shared_->arrived[storing_.stage], storing_.turn)) {
    }
    const std::int32_t rows = c.rows(all);
    const std::uint32_t bytes = c.bytes(all);
#pragma unroll 1
    for (int copy = 0; copy < copies; ++copy) {
      const std::byte* stage = shared_->stage[storing_.stage];
      std::byte* to = to_of(copy) + c.row * all.to_stride + c.offset;
#pragma unroll 1
      for (std::int32_t row = 0; row < rows; ++row) {
        cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, to, stage,
                                 bytes);
        stage += bytes;
        to += all.to_stride;
      }
    }
    cuda::ptx::cp_async_bulk_commit_group();
    c.advance(all);
    storing_.advance();
  }

  memory* shared_;
  cursor loading_;
  cursor storing_;
};

}  // namespace untax
