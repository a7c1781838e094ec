#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/memory/cuda_memory.cuh>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/comm/sinks/owner_sums.hpp"
#include "engines/gpu/gemm/block.cuh"
#include "engines/gpu/gemm/store_throttle.cuh"
#include "engines/gpu/sm90/ptx/sum_words.cuh"
#include "engines/gpu/sm90/ptx/tile_copy.cuh"

namespace untax::gpu {

/// The rank that owns all rows of a warpgroup in a tile, if its partials pass through the epilogue
/// buffers; else -1.
template <tile_config config>
[[nodiscard]] __device__ int buffered_owner(const sums_run& io, int row, int column, int group) {
  const sum_fragments& how = io.how;
  constexpr int rows = warpgroup_rows;
  const int first = how.rotated(row) + group * rows;
  const int owner = first / how.full_rows();
  if (first + rows > how.m || (first + rows - 1) / how.full_rows() != owner ||
      !(owner == how.rank() ? io.lands_by_tma : io.sends_by_tma) || column + how.tile_n > how.n)
    return -1;
  return owner;
}

template <tile_config config>
[[nodiscard]] __device__ landed_sums<config>& landed_in(const block_view<config>& block) {
  return *reinterpret_cast<landed_sums<config>*>(&block.shared + 1);
}

/// Writes the zeros with which words are reset. All lanes of a warp must call this; other warps may
/// do so at the same time.
template <tile_config config>
__device__ void clear(landed_sums<config>& landed) {
  auto* const all = reinterpret_cast<uint4*>(landed.zeros);
  for (int i = static_cast<int>(threadIdx.x) % 32; i < landed.strip_bytes / 16; i += 32)
    all[i] = make_uint4(0, 0, 0, 0);
  cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
  __syncwarp();
}

/// The epilogue of an MMA warpgroup, run by one thread while the warpgroup multiplies its next
/// tile. If a peer owns the tile, the thread sends what the warpgroup wrote into the epilogue
/// buffers. If this rank owns it, the thread loads the peers' words into the buffers during the
/// multiplications, the warpgroup adds them, and the thread stores the sums; then it resets the
/// words, for the epoch after the next. All copies use TMA: warps that loaded and stored words
/// beside a GEMM took longer than a tile.
template <tile_config config>
class sums_epilogue {
 public:
  /// `reserved`: whether the slabs of peers were reserved. If not, nothing is sent or loaded.
  __device__ sums_epilogue(const block_view<config>& block, const sums_run& io,
                           const CUtensorMap* copies, std::uint64_t epoch, int group, bool reserved)
      : block_(block),
        io_(io),
        copies_(copies),
        how_(io.how),
        epoch_(epoch),
        group_(group),
        reserved_(reserved),
        began_(cuda_memory::now()) {}

  __device__ void run() {
    // Owners reset slabs with ordinary stores, which have to precede the TMA stores to them.
    cuda::ptx::fence_proxy_async();
    block_.each_tile([&](const work_tile& w) {
      throttle_.count(w.end - w.begin);
      const tile_place tile = block_.place(w);
      const int owner = block_.arguments.schedule.stores_partial(w)
                            ? -1
                            : buffered_owner<config>(io_, tile.row, tile.column, group_);
      measures_ = measures_ && owner >= 0;
      if (owner < 0) return;
      sum_fragment first;
      first.row_tile = how_.rotated(tile.row) / how_.tile_m;
      first.col_tile = tile.column / how_.tile_n;
      first.group = group_;
      if (owner != how_.rank()) {
        send(w, owner, first);
      } else {
        add_up(w, first);
      }
      tma_store_wait_read<0>();
    });
    reset_words();
    tma_store_wait();
    if (io_.lands_by_tma) empty().arrive();
  }

 private:
  static constexpr int warp_bytes = subtile_bytes(config) / sum_fragments::warps;
  static constexpr int parts = subtile_parts(config);

  __device__ void send(const work_tile& w, int owner, sum_fragment f) {
    for (int subtile = 0; subtile < subtiles_of(config); ++subtile) release();
    reset_words();
#pragma unroll 1
    for (int subtile = 0; subtile < subtiles_of(config); ++subtile) {
      full().wait(full_.parity);
      if (subtile == 0) {
        measure(w);
        throttle_.begin_tile(subtiles_of(config), block_.k_blocks_after(w));
      }
      throttle_.await();
      f.part = subtile * parts;
      for (f.warp = 0; reserved_ && f.warp < sum_fragments::warps; ++f.warp)
        cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared,
                                 words_of(io_.moved.run.inbox.at(owner), how_.rank(), owner, f),
                                 buffer_at(full_) + f.warp * warp_bytes, warp_bytes);
      tma_store_commit();
      full_.template advance<config.epilogue_buffers>();
    }
  }

  __device__ void add_up(const work_tile& w, const sum_fragment& first) {
    const int peers = how_.world() - 1;
    const int uses = subtiles_of(config) * peers;  // uses of buffers
    await_words(w, first);
    int fetched = 0;
    while (fetched < min(uses, config.epilogue_buffers)) fetch(first, fetched++);
    reset_words();
#pragma unroll 1
    for (int use = 0; use < uses; ++use) {
      full().wait(full_.parity);
      if (use == 0) {
        measure(w);
        throttle_.begin_tile(sum_fragments::warps * peers, block_.k_blocks_after(w));
      }
      const bool sums = (use + 1) % peers == 0;
      if (sums) store(first, use / peers);
      full_.template advance<config.epilogue_buffers>();
      if (fetched == uses) continue;
      if (sums) tma_store_wait_read<0>();
      fetch(first, fetched++);
    }
    added_up_ = first;
  }

  /// Usually peers' words arrived long before. If not, this polls while the tile is multiplied, and
  /// longer for the last tile. One word per peer is only a hint: adding checks all of them.
  __device__ void await_words(const work_tile& w, sum_fragment f) {
    const std::uint64_t most = block_.next(w).valid()
                                   ? began_ + k_block_ * static_cast<unsigned>(w.end - w.begin)
                                   : cuda_memory::now() + patience;
    f.warp = sum_fragments::warps - 1;
    f.part = how_.parts - 1;
    for (int i = 0; reserved_ && i < how_.world() - 1; ++i) {
      const auto* const last = reinterpret_cast<const uint2*>(own_words(peer(i), f));
      while (load_sum_words_if(true, last).x == 0 && cuda_memory::now() < most)
        __nanosleep(look_nanoseconds);
    }
  }
  /// Loads the words of one peer for one sub-tile: `use` counts the peers of each sub-tile.
  __device__ void fetch(sum_fragment f, int use) {
    const int peers = how_.world() - 1;
    if (!reserved_) return release();
    empty().arrive_and_expect(subtile_bytes(config));
    f.part = use / peers * parts;
#pragma unroll
    for (f.warp = 0; f.warp < sum_fragments::warps; ++f.warp)
      cuda::ptx::cp_async_bulk(cuda::ptx::space_cluster, cuda::ptx::space_global,
                               buffer_at(empty_) + f.warp * warp_bytes,
                               own_words(peer(use % peers), f), warp_bytes, &empty().word);
    empty_.template advance<config.epilogue_buffers>();
  }
  /// Stores the rows of a sub-tile of those warps that have complete sums.
  __device__ void store(sum_fragment f, int subtile) {
    f.part = subtile * parts;
    for (f.warp = 0; f.warp < sum_fragments::warps; ++f.warp) {
      if (!landed_in(block_).added[group_][full_.stage][f.warp]) continue;
      added_ |= bit_of(subtile, f.warp);
      for (int hop = how_.passes_on ? how_.world() - 1 : 0; hop >= 0; --hop)
        tma_store(copies_[hop], {how_.col_of(f), how_.row_of(f) - how_.first_row(how_.rank())},
                  buffer_at(full_) + f.warp * warp_bytes);
    }
    tma_store_commit();
  }
  /// Overwrites the words of the tile that was added last with zeros, while the next tile is
  /// multiplied. If possible, one copy resets a warp's words of all sub-tiles: several short copies
  /// take longer.
  __device__ void reset_words() {
    if (added_ == 0) return;
    sum_fragment f = added_up_;
    for (f.warp = 0; !left_out(mutant::sums_reset) && f.warp < sum_fragments::warps; ++f.warp) {
      unsigned all = 0;
      for (int subtile = 0; subtile < subtiles_of(config); ++subtile)
        all |= bit_of(subtile, f.warp);
      const bool at_once = (added_ & all) == all;
      for (int subtile = 0; subtile < (at_once ? 1 : subtiles_of(config)); ++subtile) {
        if ((added_ & bit_of(subtile, f.warp)) == 0) continue;
        f.part = subtile * parts;
        for (int i = 0; i < how_.world() - 1; ++i) {
          throttle_.await();
          cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared,
                                   own_words(peer(i), f), landed_in(block_).zeros,
                                   at_once ? landed_sums<config>::strip_bytes : warp_bytes);
        }
      }
    }
    tma_store_commit();
    added_ = 0;
  }
  [[nodiscard]] __device__ static unsigned bit_of(int subtile, int warp) {
    return 1U << (subtile * sum_fragments::warps + warp);
  }

  /// The rank of peer number i, in rank order.
  [[nodiscard]] __device__ int peer(int i) const { return i < how_.rank() ? i : i + 1; }
  /// The address of a rank's words of a fragment in the inbox of the fragment's owner.
  [[nodiscard]] __device__ std::byte* words_of(std::byte* inbox, int rank, int owner,
                                               const sum_fragment& f) const {
    return inbox + how_.slab_of(rank, epoch_) * io_.slab_bytes +
           how_.slot_of(owner, f) * how_.fragment_bytes();
  }
  [[nodiscard]] __device__ std::byte* own_words(int rank, const sum_fragment& f) const {
    return words_of(io_.moved.run.inbox.local(), rank, how_.rank(), f);
  }

  [[nodiscard]] __device__ stage_barrier& full() const {
    return block_.shared.epi_full[group_][full_.stage];
  }
  [[nodiscard]] __device__ stage_barrier& empty() const {
    return block_.shared.epi_empty[group_][empty_.stage];
  }
  [[nodiscard]] __device__ std::byte* buffer_at(const ring_cursor& at) const {
    return block_.shared.epilogue_buffers[group_][at.stage].rows;
  }
  /// Lets the warpgroup write the next buffer.
  __device__ void release() {
    empty().arrive();
    empty_.template advance<config.epilogue_buffers>();
  }
  /// Measures the time of a tile. Tiles that do not pass through the buffers are not measured.
  __device__ void measure(const work_tile& w) {
    const std::uint64_t now = cuda_memory::now();
    // The block may have been suspended meanwhile, so there is a limit.
    const std::uint64_t took = (now - began_) / static_cast<unsigned>(w.end - w.begin);
    if (measures_) k_block_ = min(took, most_k_block);
    measures_ = true;
    began_ = now;
  }

  // All in nanoseconds.
  static constexpr unsigned look_nanoseconds = 300;
  static constexpr std::uint64_t most_k_block = 2000;  // a k-block of 256 columns takes 700
  static constexpr std::uint64_t patience = 300'000;

  const block_view<config>& block_;
  const sums_run& io_;
  const CUtensorMap* copies_;  // of C: this rank's, then those of peers in the order of hops
  const sum_fragments& how_;
  std::uint64_t epoch_;
  int group_;
  bool reserved_;
  bool measures_ = true;  // no tile was skipped since `began_`
  store_throttle throttle_;
  std::uint64_t began_;        // when the current tile began
  std::uint64_t k_block_ = 0;  // time per k-block of the previous tile
  sum_fragment added_up_;      // the first fragment of the tile that was added last
  unsigned added_ = 0;         // its sub-tiles and warps whose words are not reset: a bit each
  ring_cursor full_;
  ring_cursor empty_;
};

}  // namespace untax::gpu
