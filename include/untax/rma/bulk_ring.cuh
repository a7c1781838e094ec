#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda/ptx>

#include <untax/rma/device_group.cuh>

namespace untax {

/// Rows of bytes that the copy engine moves: addresses, strides and `bytes` are multiples of 16.
struct bulk_rows {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::int64_t to_stride = 0;
  std::int64_t from_stride = 0;
  std::int64_t rows = 0;
  std::int64_t bytes = 0;  ///< of a row
};

/// Shared memory through which the copy engine of a multiprocessor moves bytes from anywhere to
/// anywhere: it reads into one stage while it writes from others. One thread drives it and the
/// others are free for edges, or for something else.
///
/// A stage is 32 KB, which is what the engine needs for the full rate of the link, and six of them
/// cover the way to a peer and back.
template <int stages = 6, int stage_bytes = 32768>
class bulk_ring {
  static_assert(stages >= 2 && stage_bytes % 128 == 0);

 public:
  /// What the caller provides, usually at the start of dynamic shared memory (more than 48 KB have
  /// to be asked for with cudaFuncSetAttribute).
  struct alignas(128) memory {
    std::byte stage[stages][stage_bytes];
    std::uint64_t arrived[stages];
  };

  /// By all threads of the block, once in a kernel. Nothing else may touch `shared` afterwards.
  __device__ bulk_ring(const device_block& block, memory& shared) : shared_(&shared) {
    if (block.thread_rank() == 0) {
      for (std::uint64_t& barrier : shared.arrived) cuda::ptx::mbarrier_init(&barrier, 1);
      cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
      cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    }
    block.sync();
  }

  /// By one thread, always the same one: moves the rows and returns when all are at their
  /// destination, so that a release of this thread covers them. What it, or a thread that it is
  /// synchronised with, wrote to the source with ordinary stores is moved, too.
  __device__ void move(const bulk_rows& rows) {
    const plan chunks(rows);
    // Ordinary stores and the copy engine take different ways to memory.
    cuda::ptx::fence_proxy_async();
    for (std::int64_t i = 0; i < chunks.count && i < stages; ++i) load(chunks, i);
    for (std::int64_t i = 0; i < chunks.count; ++i) {
      store(chunks, i);
      // The next load goes where chunk i - 1 was: chunk i may still be leaving, but not that.
      const std::int64_t next = i - 1 + stages;
      if (i == 0 || next >= chunks.count) continue;
      cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<1>());
      load(chunks, next);
    }
    // Not only read but written: that is what a signal promises.
    cuda::ptx::cp_async_bulk_wait_group(cuda::ptx::n32_t<0>());
  }

 private:
  /// The rows in pieces that fit a stage: several rows, or a part of one.
  struct plan {
    bulk_rows all;
    std::int64_t rows_a_chunk;
    std::int64_t chunks_a_row;
    std::int64_t count;

    explicit __device__ plan(const bulk_rows& rows) : all(rows) {
      const bool several = rows.bytes * 2 <= stage_bytes;
      rows_a_chunk = several ? stage_bytes / rows.bytes : 1;
      chunks_a_row = several ? 1 : (rows.bytes + stage_bytes - 1) / stage_bytes;
      count = (rows.rows + rows_a_chunk - 1) / rows_a_chunk * chunks_a_row;
    }
  };

  /// One chunk: `rows` pieces of `bytes` bytes, the first at `row` and `offset`.
  struct chunk {
    std::int64_t row;
    std::int64_t offset;
    std::int32_t rows;
    std::uint32_t bytes;

    __device__ chunk(const plan& p, std::int64_t i)
        : row(i / p.chunks_a_row * p.rows_a_chunk), offset(i % p.chunks_a_row * stage_bytes) {
      const std::int64_t rows_left = p.all.rows - row;
      const std::int64_t bytes_left = p.all.bytes - offset;
      rows = static_cast<std::int32_t>(rows_left < p.rows_a_chunk ? rows_left : p.rows_a_chunk);
      bytes = static_cast<std::uint32_t>(bytes_left < stage_bytes ? bytes_left : stage_bytes);
    }
  };

  /// A place in the ring, and which time around it is.
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

  __device__ void load(const plan& p, std::int64_t i) {
    const chunk c(p, i);
    std::uint64_t* arrived = &shared_->arrived[loading_.stage];
    std::byte* stage = shared_->stage[loading_.stage];
    cuda::ptx::mbarrier_arrive_expect_tx(cuda::ptx::sem_release, cuda::ptx::scope_cta,
                                         cuda::ptx::space_shared, arrived, c.rows * c.bytes);
    const std::byte* from = p.all.from + c.row * p.all.from_stride + c.offset;
    for (std::int32_t row = 0; row < c.rows; ++row) {
      cuda::ptx::cp_async_bulk(cuda::ptx::space_cluster, cuda::ptx::space_global, stage, from,
                               c.bytes, arrived);
      stage += c.bytes;
      from += p.all.from_stride;
    }
    loading_.advance();
  }

  __device__ void store(const plan& p, std::int64_t i) {
    const chunk c(p, i);
    // Not a wait for a peer: the barrier is raised by this multiprocessor's own copy engine, and a
    // memory that does not answer ends the kernel with an error.
    while (!cuda::ptx::mbarrier_try_wait_parity(&shared_->arrived[storing_.stage], storing_.turn)) {
    }
    const std::byte* stage = shared_->stage[storing_.stage];
    std::byte* to = p.all.to + c.row * p.all.to_stride + c.offset;
    for (std::int32_t row = 0; row < c.rows; ++row) {
      cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, to, stage,
                               c.bytes);
      stage += c.bytes;
      to += p.all.to_stride;
    }
    cuda::ptx::cp_async_bulk_commit_group();
    storing_.advance();
  }

  memory* shared_;
  cursor loading_;
  cursor storing_;
};

}  // namespace untax
