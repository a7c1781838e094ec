#pragma once

#include "engines/gpu/channel/peer_slabs.cuh"
#include "engines/gpu/gemm/block.cuh"
#include "engines/gpu/gemm/io.cuh"
#include "engines/gpu/gemm/sinks/owner_sums.hpp"
#include "engines/gpu/gemm/sinks/partial_words.cuh"
#include "engines/gpu/gemm/sinks/sum_adder.cuh"
#include "engines/gpu/gemm/store_throttle.cuh"
#include "engines/gpu/sm90/ptx/tile_copy.cuh"

namespace untax::gpu {

/// The number of a warp of a block, for wait records: all that wait have one.
[[nodiscard]] __device__ inline int slot_of_warp() {
  constexpr int warps = block_threads / 32;
  return static_cast<int>(blockIdx.x) * warps + static_cast<int>(threadIdx.x) / 32;
}

template <class Io>
class turned_source::view {
 public:
  __device__ view(const Io& io, const gemm_arguments& given)
      : how_(io.how), a_(given.a), b_(given.b), k_blocks_(given.schedule.k_blocks) {}
  __device__ void begin(std::uint64_t /*epoch*/) {}
  [[nodiscard]] __device__ operand_window window_of(int row, int /*k_block*/) const {
    return {&a_, how_.turned(row), &b_, 0, k_blocks_};
  }

 private:
  const sum_fragments& how_;
  const CUtensorMap& a_;
  const CUtensorMap& b_;
  int k_blocks_;
};

/// Where a lane puts its words of a fragment.
template <class Words>
[[nodiscard]] __device__ typename Words::words* place_at(const sums_run& io, int owner,
                                                         const sum_fragment& f,
                                                         std::uint64_t epoch) {
  const sum_fragments& how = io.how;
  std::byte* const slab =
      io.moved.run.inbox.at(owner) + how.slab_of(how.rank(), epoch) * io.slab_bytes;
  return reinterpret_cast<typename Words::words*>(slab) +
         how.slot_of(owner, f) * sum_fragments::lanes + device_warp::thread_rank();
}

/// Whether tiles can leave through the places of the epilogue, a whole tile at a time.
template <tile_config config>
inline constexpr bool can_stage =
    !config.swap_ab && config.cluster_split_k == 1 &&
    config.epilogue_buffers >= subtiles_of(config) && subtile_columns(config) == subtile_side;

/// The peer whose rows are all of those of a group in a tile, which then leave through shared
/// memory; -1 if there is no such peer.
template <tile_config config>
[[nodiscard]] __device__ int buffered_owner(const sums_run& io, int row, int column, int group) {
  const sum_fragments& how = io.how;
  if (!can_stage<config> || !io.stages) return -1;
  const int first = how.turned(row) + group * warpgroup_rows;
  const int rows = how.full_rows();
  const int owner = first / rows;
  if (first + warpgroup_rows > how.m || (first + warpgroup_rows - 1) / rows != owner ||
      owner == how.rank() || column + config.block_n > how.n)
    return -1;
  return owner;
}

/// What has become of the sums of all tiles of a warp. After a wait that ended badly, which the
/// host reports, nobody is told anything.
enum class handed_over : std::uint8_t { added, some_left, given_up };

/// A warp of an MMA warpgroup, which sends its partial sums, own ones too. Where no CTA does
/// nothing but add, it adds what of its tiles is for this rank: behind each tile what has come by
/// then from all ranks, and the rest at the end. So it never waits before it has sent everything,
/// and no cycle of waits can arise, in whatever order ranks multiply.
class sums_sender {
 public:
  static constexpr bool takes = true;

  __device__ sums_sender(const sums_run& io, std::uint64_t epoch, int group)
      : t_(io), epoch_(epoch), group_(group) {}

  __device__ void begin() {
    going_ = !t_.how.asks() || reserve_slabs(t_.moved.run, t_.how, epoch_, slot_of_warp());
  }

  /// The sums of a tile, whose first row and column are given in the order of the GEMM.
  template <class T, tile_config config>
  __device__ __forceinline__ void take(const block_view<config>& block, const tile_place& tile,
                                       const float (&sums)[config.block_n / 2]) {
    if constexpr (can_stage<config>) {
      if (buffered_owner<config>(t_, tile.row, tile.column, group_) >= 0)
        return stage<T>(block, sums);
    }
    if (!going_) return;
    const sum_fragment first = first_of<config>(tile);
    if (t_.how.halves) {
      send<T, partial_words<T, true>, config>(first, tile.column, sums);
    } else {
      send<T, partial_words<T, false>, config>(first, tile.column, sums);
    }
    if (t_.keeps) return;
    if (t_.looks == 0 || !sum_adder(t_, epoch_, slot_of_warp()).try_strip<T>(first)) owes_ = true;
  }
  [[nodiscard]] __device__ handed_over left() const {
    return !going_ ? handed_over::given_up : owes_ ? handed_over::some_left : handed_over::added;
  }

 private:
  /// For the warp that sends. Zeros change nothing in a slab that is free: where none is, nothing
  /// is sent.
  template <class T, tile_config config>
  __device__ __forceinline__ void stage(const block_view<config>& block,
                                        const float (&sums)[config.block_n / 2]) {
    using to = partial_words<T, true>;
    constexpr int parts = subtile_side / 8;
    const int thread = static_cast<int>(threadIdx.x) % warpgroup_threads;
    const int at = thread / 32 * parts * 32 + thread % 32;
#pragma unroll
    for (int subtile = 0; subtile < subtiles_of(config); ++subtile) {
      block.shared.epi_empty[group_][writing_.stage].wait(writing_.parity);
      auto* const words =
          reinterpret_cast<uint2*>(block.shared.epilogue_buffers[group_][writing_.stage].rows) + at;
#pragma unroll
      for (int part = 0; part < parts; ++part)
        words[part * 32] = going_ ? to::of(sums + (subtile * parts + part) * 4) : to::nothing();
      if (!left_out(mutant::results_proxy)) cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
      block.shared.epi_full[group_][writing_.stage].arrive();
      writing_.template advance<config.epilogue_buffers>();
    }
  }

  template <tile_config config>
  [[nodiscard]] __device__ sum_fragment first_of(const tile_place& tile) const {
    constexpr int tile_m = config.swap_ab ? config.block_n : tile_rows(config);
    constexpr int tile_n = config.swap_ab ? tile_rows(config) : config.block_n;
    return {t_.how.turned(tile.row) / tile_m, tile.column / tile_n, group_,
            static_cast<int>(threadIdx.x) / 32 % sum_fragments::warps, 0};
  }

  template <class T, class Words, tile_config config>
  __device__ __forceinline__ void send(const sum_fragment& first, int column,
                                       const float (&sums)[config.block_n / 2]) {
    const sum_fragments& how = t_.how;
    constexpr int parts = config.block_n / 8;
    const int rows = config.swap_ab ? config.block_n : how.fragment_rows();
    const int first_row = how.row_of(first);
    if (first_row >= how.m || (config.swap_ab && how.col_of(first) >= how.n)) return;
    // With A and B exchanged, parts are rows of A, which may be another owner's each.
    const int all = config.swap_ab ? parts : (how.n - column) / 8;
    // Nearest first. Rows of a warp are mostly one owner's.
#pragma unroll 1
    for (int hop = 1; hop <= how.world() - (t_.keeps ? 1 : 0); ++hop) {
      const int owner = receiver_at_hop(how.rank(), hop, how.world());
      if (!how.touches(owner, first_row, rows)) continue;
      auto* const to = place_at<Words>(t_, owner, first, epoch_);
#pragma unroll
      for (int part = 0; part < parts; ++part) {
        if (part >= all) break;
        if (config.swap_ab && !how.touches(owner, first_row + part * 8, 8)) continue;
        store_sum_words(to + part * sum_fragments::lanes, Words::of(sums + 4 * part));
      }
    }
    if constexpr (sizeof(typename Words::words) == 8) {
      if (t_.keeps && !sum_adder(t_, epoch_, slot_of_warp()).try_kept<T, Words, parts>(first, sums))
        owes_ = true;
    }
  }

  const sums_run& t_;
  std::uint64_t epoch_;
  int group_;
  bool going_ = true;
  bool owes_ = false;
  ring_cursor writing_;
};

template <class Io>
class owner_sums::view {
 public:
  using results = sums_sender;

  __device__ view(const Io& io, const gemm_arguments& /*given*/) : t_(io) {}
  __device__ void begin(std::uint64_t epoch) { epoch_ = epoch; }

  /// For a warp of an MMA warpgroup.
  [[nodiscard]] __device__ sums_sender results_of(int group) const { return {t_, epoch_, group}; }
  /// The same, with what that has left.
  template <tile_config config>
  __device__ void after_results(const block_view<config>& block, int group,
                                handed_over sums) const {
    if (!t_.adds_itself || sums == handed_over::given_up) return;
    if (sums == handed_over::added) return end_sums(t_, epoch_, slot_of_warp());
    const sums_list left(t_, block.arguments.schedule, block.cluster, config.cluster,
                         static_cast<int>(block.m_place), group);
    add_sums(t_, left, epoch_, slot_of_warp());
  }

  /// What MMA warpgroups leave in the places of the epilogue goes to peers, by a warp for each of
  /// them, over most of the time of the next tile.
  template <tile_config config>
  __device__ void send_buffered(const block_view<config>& block, int group) const {
    if constexpr (can_stage<config>) {
      if (!t_.stages) return;
      const bool going = reserve_slabs(t_.moved.run, t_.how, epoch_, slot_of_warp());
      if (threadIdx.x % 32 != 0) return;
      for (stage_barrier& empty : block.shared.epi_empty[group]) empty.arrive();
      cuda::ptx::fence_proxy_async();
      store_throttle throttle;
      ring_cursor full;
      ring_cursor empty;
      block.each_tile([&](const work_tile& w) {
        const tile_schedule& order = block.arguments.schedule;
        throttle.count(w.end - w.begin);
        if (order.stores_partial(w)) return;
        const tile_place tile = block.place(w);
        const int owner = buffered_owner<config>(t_, tile.row, tile.column, group);
        if (owner < 0) return;
        const work_tile next = block.next(w);
        std::byte* const slab =
            t_.moved.run.inbox.at(owner) + t_.how.slab_of(t_.how.rank(), epoch_) * t_.slab_bytes;
        sum_fragment f{t_.how.turned(tile.row) / tile_rows(config), tile.column / config.block_n,
                       group, 0, 0};
#pragma unroll 1
        for (int subtile = 0; subtile < subtiles_of(config); ++subtile) {
          constexpr int bytes = subtile_bytes(config) / sum_fragments::warps;
          block.shared.epi_full[group][full.stage].wait(full.parity);
          if (subtile == 0)
            throttle.begin_tile(subtiles_of(config), next.valid() ? next.end - next.begin : 0);
          throttle.await();
          f.part = subtile * (subtile_side / 8);
          for (f.warp = 0; going && f.warp < sum_fragments::warps; ++f.warp)
            cuda::ptx::cp_async_bulk(
                cuda::ptx::space_global, cuda::ptx::space_shared,
                slab + t_.how.slot_of(owner, f) * t_.how.fragment_bytes(),
                block.shared.epilogue_buffers[group][full.stage].rows + f.warp * bytes, bytes);
          tma_store_commit();
          full.template advance<config.epilogue_buffers>();
        }
        tma_store_wait_read<0>();
        for (int subtile = 0; subtile < subtiles_of(config); ++subtile) {
          block.shared.epi_empty[group][empty.stage].arrive();
          empty.template advance<config.epilogue_buffers>();
        }
      });
      tma_store_wait();
    }
  }

 private:
  const sums_run& t_;
  std::uint64_t epoch_ = 0;
};

template <class Io>
class sum_adders::view {
 public:
  static constexpr std::size_t comm_smem_bytes = 0;

  explicit __device__ view(const Io& io) : t_(io) {}
  __device__ void begin(std::uint64_t epoch) { epoch_ = epoch; }
  __device__ void prepare_comm() {}
  __device__ void prepare_beside(int /*warp*/) {}

  /// All warps add.
  __device__ void run_comm(std::byte* /*shared*/) {
    const int me = slot_of_warp();
    add_sums(t_, {t_, me}, epoch_, me);
  }
  __device__ void beside(int /*warp*/, const epilogue_smem& /*own*/) {}

 private:
  const sums_run& t_;
  std::uint64_t epoch_ = 0;
};

}  // namespace untax::gpu
