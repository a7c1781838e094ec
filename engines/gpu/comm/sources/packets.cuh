#pragma once

#include <cstdint>

#include <untax/rma/packet.cuh>

#include "engines/gpu/channel/pending_waits.cuh"
#include "engines/gpu/comm/packet_senders.cuh"
#include "engines/gpu/comm/sources/gathered.cuh"
#include "engines/gpu/comm/sources/gathered.hpp"
#include "engines/gpu/gemm/config.hpp"
#include "engines/gpu/sm90/ptx/packet_load.cuh"

namespace untax {

/// The packets that a thread loads of `k_blocks` k-blocks: of each k-block, those at one place in
/// each of `core_matrices` core matrices of 8 rows. All loads precede the first test.
template <int k_blocks, int core_matrices>
struct packets_of_k_blocks {
  static constexpr int every = gpu::mma_warpgroups;  ///< distance of the warpgroup's k-blocks

  const packet* first = nullptr;  ///< of k-block 0
  int step = 0;                   ///< packets from one of these k-blocks to the next
  unsigned wanted =
      0;  ///< a bit for each packet: k-block by k-block, and in it core matrix by core matrix
  packet found[k_blocks][core_matrices];

  // For the wait record: the place of the packet of k-block 0 and core matrix 0.
  const packet_panel* panel = nullptr;
  int row = 0;
  int column = 0;

  std::uint64_t expected = 0;
  std::uint64_t seen = 0;
  int peer = -1;
  int room = -1;
  verb what = verb::acquire;
  int oldest = 0;  ///< the first packet that is missing

  __device__ void issue_loads() {
#pragma unroll
    for (int i = 0; i < k_blocks; ++i) {
#pragma unroll
      for (int core_matrix = 0; core_matrix < core_matrices; ++core_matrix)
        found[i][core_matrix] = gpu::load_packet_if(
            (wanted >> (i * core_matrices + core_matrix) & 1U) != 0,
            first + i * step + core_matrix * (8 * packet_panel::across), nothing());
    }
  }
  [[nodiscard]] __device__ bool have_arrived() {
    bool came = true;
#pragma unroll
    for (int i = k_blocks - 1; i >= 0; --i) {
#pragma unroll
      for (int core_matrix = core_matrices - 1; core_matrix >= 0; --core_matrix) {
        if (found[i][core_matrix].epoch >= expected) continue;
        came = false;
        seen = found[i][core_matrix].epoch;
        oldest = i * core_matrices + core_matrix;
      }
    }
    return came;
  }
  [[nodiscard]] __device__ std::uint64_t look() {
    issue_loads();
    if (have_arrived()) return 1;
    const int at_row = row + oldest % core_matrices * 8;
    const int at_column = column + oldest / core_matrices * (every * gpu::block_k);
    peer = panel->source_of(at_row);
    room = panel->at(at_row, at_column);
    return 0;
  }
  __device__ void raise(std::uint64_t /*value*/) noexcept {}

 private:
  [[nodiscard]] __device__ static packet nothing() { return {0, ~std::uint64_t{0}}; }
};

/// A as packets, which the threads of an MMA warpgroup load: see engines/gpu/gemm/io.cuh. A thread
/// has the same place in every k-block: four columns of rows r and r + 8. Only the epoch in a
/// packet says that it has arrived.
template <class Io>
class packet_rows {
  static constexpr int core_matrices = 2;  // of 8 rows, after which the swizzle repeats
  static constexpr int row_bytes = gpu::block_k * 2;

 public:
  static constexpr int stages = 2;
  using requested = packets_of_k_blocks<stages, core_matrices>;

  /// `slot`: the wait record of the warpgroup's first warp; its other warps use the next ones.
  __device__ packet_rows(const Io& gather, std::uint64_t epoch, int group, int slot)
      : g_(gather),
        epoch_(epoch),
        slot_(slot + thread() / 32),
        tells_(group == 0),
        row_(thread() / packet_panel::across),
        column_(thread() % packet_panel::across * packet_panel::elements),
        swizzled_(row_ * row_bytes + (column_ / 8 ^ row_ % 8) * 16 + column_ % 8 * 2),
        inbox_(reinterpret_cast<const packet*>(g_.moved.run.inbox.local()) +
               g_.how.sets().set_of(epoch) * g_.panel.in_set + g_.panel.at(row_, column_)) {}

  [[nodiscard]] __device__ requested request(int k_block, int count) const {
    requested rows;
    rows.first = inbox_ + k_block * g_.panel.rows * packet_panel::across;
    rows.step = requested::every * g_.panel.rows * packet_panel::across;
    rows.panel = &g_.panel;
    rows.row = row_;
    rows.column = k_block * gpu::block_k + column_;
    rows.expected = epoch_;
#pragma unroll
    for (int i = 0; i < stages; ++i) {
      // The last k-blocks may reach beyond k.
      const int column = rows.column + i * requested::every * gpu::block_k;
#pragma unroll
      for (int core_matrix = 0; core_matrix < core_matrices; ++core_matrix) {
        if (i < count && column < g_.panel.columns && has(core_matrix))
          rows.wanted |= 1U << (i * core_matrices + core_matrix);
      }
    }
    rows.issue_loads();
    return rows;
  }
  template <class Place>
  __device__ void settle(requested& rows, int count, const Place& place) {
    if (going_ && __any_sync(0xffffffffU, rows.have_arrived() ? 0 : 1) != 0) going_ = await(rows);
#pragma unroll
    for (int i = 0; i < stages; ++i) {
#pragma unroll
      for (int core_matrix = 0; core_matrix < core_matrices; ++core_matrix) {
        if (i < count && has(core_matrix))
          *reinterpret_cast<std::uint64_t*>(place(i) + swizzled_ + core_matrix * 8 * row_bytes) =
              rows.found[i][core_matrix].data;
      }
    }
  }

 private:
  [[nodiscard]] __device__ static int thread() {
    return static_cast<int>(threadIdx.x) % gpu::warpgroup_threads;
  }
  [[nodiscard]] __device__ bool has(int core_matrix) const {
    return row_ + 8 * core_matrix < g_.panel.rows;
  }

  /// Returns false after a failed wait. Then the consumer continues with the data in memory: see
  /// `gathered::view::await`.
  [[nodiscard]] __device__ bool await(requested& mine) const {
    const gpu::run_arguments& run = g_.moved.run;
    const device_watch of_warp(run.world, slot_);
    // Both warpgroups wait for the same ranks, so only one of them reports.
    gpu::lazy_watch watch(tells_ ? of_warp : of_warp.silent());
    return gpu::wait_for_parts(mine, watch, run, run.operator_name()) == wait_outcome::ok;
  }

  const Io& g_;
  std::uint64_t epoch_;
  int slot_;  // index of the wait record
  bool tells_;
  int row_;       // in core matrix 0
  int column_;    // in a k-block
  int swizzled_;  // place of these elements in it, in bytes
  const packet* inbox_;
  bool going_ = true;
};

/// A as packets. A run ends as in any other gather.
template <class Protocol>
template <class Io>
class gathered_packets<Protocol>::view : gathered<Protocol>::template view<Io> {
  using base = typename gathered<Protocol>::template view<Io>;

 public:
  using rows = packet_rows<Io>;

  __device__ view(const Io& io, const gpu::gemm_arguments& given)
      : base(io, given), g_(io), b_(given.b), k_blocks_(given.schedule.k_blocks) {}

  __device__ void begin(std::uint64_t epoch) {
    base::begin(epoch);
    epoch_ = epoch;
  }
  using base::counts_readers;
  using base::retire;

  [[nodiscard]] __device__ rows rows_for(int group) const {
    constexpr int consumer_warps = gpu::warpgroup_threads / 32;
    return {g_, epoch_, group, (static_cast<int>(blockIdx.x) - g_.comm_ctas) * consumer_warps};
  }
  [[nodiscard]] __device__ gpu::operand_window window_of(int /*row*/, int /*k_block*/) const {
    return {nullptr, 0, &b_, 0, k_blocks_};
  }

 private:
  const Io& g_;
  const CUtensorMap& b_;
  int k_blocks_;
  std::uint64_t epoch_ = 0;
};

}  // namespace untax
