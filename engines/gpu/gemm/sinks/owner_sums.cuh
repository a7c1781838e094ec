#pragma once

#include "engines/gpu/channel/peer_slabs.cuh"
#include "engines/gpu/gemm/block.cuh"
#include "engines/gpu/gemm/io.cuh"
#include "engines/gpu/gemm/sinks/owner_sums.hpp"
#include "engines/gpu/gemm/sinks/partial_words.cuh"
#include "engines/gpu/gemm/sinks/sum_adder.cuh"
#include "engines/gpu/gemm/sinks/sums_epilogue.cuh"
#include "engines/gpu/sm90/ptx/matrix_store.cuh"

namespace untax::gpu {

/// The number of a warp of a block, for wait records: all that wait have one.
[[nodiscard]] __device__ inline int slot_of_warp() {
  constexpr int warps = block_threads / 32;
  return static_cast<int>(blockIdx.x) * warps + static_cast<int>(threadIdx.x) / 32;
}

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

/// What has become of the sums of all tiles of a warp.
struct handed_over {
  bool given_up = false;  ///< a wait ended badly, which the host reports: nobody is told anything
  owed_tiles owed;
};

/// A warp of an MMA warpgroup, which sends its partial sums, own ones too. Where no CTA does
/// nothing but add, it adds what of its tiles is for this rank: behind each tile what has come by
/// then from all ranks, and the rest at the end. Before it has sent everything it waits for peers
/// for a bounded time at most, so no cycle of waits can arise, in whatever order ranks multiply.
class sums_sender {
 public:
  static constexpr bool takes = true;
  static constexpr bool adds = false;

  __device__ sums_sender(const sums_run& io, std::uint64_t epoch, int group)
      : t_(io), epoch_(epoch), group_(group) {}

  __device__ void begin() {
    going_ = !t_.how.asks() || reserve_slabs(t_.moved.run, t_.how, epoch_, slot_of_warp());
  }

  /// The sums of a tile, whose first row and column are given in the order of the GEMM.
  template <class T, tile_config config>
  __device__ __forceinline__ void take(const block_view<config>& block, const tile_place& tile,
                                       const float (&sums)[config.block_n / 2]) {
    owed_.begin_tile();
    if constexpr (can_stage(config)) {
      const int owner = buffered_owner<config>(t_, tile.row, tile.column, group_);
      if (owner == t_.how.rank()) return add_landed<T>(block, tile, sums);
      if (owner >= 0) return stage<T>(block, sums);
    }
    if (!going_) return;
    const sum_fragment first = first_of<config>(tile);
    if (t_.how.halves) {
      send<T, partial_words<T, true>, config>(first, sums);
    } else {
      send<T, partial_words<T, false>, config>(first, sums);
    }
    if (t_.keeps) return;
    if (t_.looks == 0 || !sum_adder(t_, epoch_, slot_of_warp()).try_strip<T, config.swap_ab>(first))
      owed_.add();
  }
  /// Behind the last tile.
  template <tile_config config>
  [[nodiscard]] __device__ handed_over left(const block_view<config>& block) const {
    // Until what was added has left nothing behind in slabs.
    if constexpr (can_stage(config)) {
      if (t_.lands) block.shared.epi_empty[group_][writing_.stage].wait(writing_.parity);
    }
    return {!going_, owed_};
  }

 private:
  /// For the epilogue warp, which sends. Zeros change nothing in a slab that is free: where none
  /// is, nothing is sent.
  template <class T, tile_config config>
  __device__ __forceinline__ void stage(const block_view<config>& block,
                                        const float (&sums)[config.block_n / 2]) {
    using to = partial_words<T, true>;
    constexpr int parts = subtile_parts(config);
#pragma unroll
    for (int subtile = 0; subtile < subtiles_of(config); ++subtile) {
      block.shared.epi_empty[group_][writing_.stage].wait(writing_.parity);
      uint2* const words = words_in<config>(block);
#pragma unroll
      for (int part = 0; part < parts; ++part)
        words[part * sum_fragments::lanes] =
            going_ ? to::of(sums + (subtile * parts + part) * 4) : to::nothing();
      hand_on(block);
    }
  }

  /// The same of own rows: the epilogue warp has brought peers' words, which are added in the order
  /// of the ranks, and stores the sums. Where some of a sub-tile had not come, the own words go to
  /// this rank's slab, and all are added at the end.
  template <class T, tile_config config>
  __device__ __forceinline__ void add_landed(const block_view<config>& block,
                                             const tile_place& tile,
                                             const float (&sums)[config.block_n / 2]) {
    using to = partial_words<T, true>;
    constexpr int parts = subtile_parts(config);
    const int lane = device_warp::thread_rank();
    const sum_fragment first = first_of<config>(tile);
#pragma unroll
    for (int subtile = 0; subtile < subtiles_of(config); ++subtile) {
      const float* const own = sums + subtile * parts * 4;
      float4 added[parts];
      // To which any first summand adds up to itself.
#pragma unroll
      for (float4& four : added) four = make_float4(-0.0F, -0.0F, -0.0F, -0.0F);
      bool there = going_;
      int peers = t_.how.world() - 1;
#pragma unroll 1
      for (int rank = 0; rank < t_.how.world(); ++rank) {
        if (rank == t_.how.rank()) {
#pragma unroll
          for (int part = 0; part < parts; ++part)
            sum_adder::add_to(added[part], rounded<T>(own + 4 * part), false);
          continue;
        }
        block.shared.epi_empty[group_][writing_.stage].wait(writing_.parity);
        const uint2* const words = words_in<config>(block);
#pragma unroll
        for (int part = 0; part < parts; ++part) {
          const uint2 word = words[part * sum_fragments::lanes];
          there = there && to::have_come(word);
          sum_adder::add_to(added[part], to::sums_of(word), false);
        }
        if (--peers == 0) continue;
        block.shared.epi_full[group_][writing_.stage].arrive();
        writing_.template advance<config.epilogue_buffers>();
      }
      // Behind this all lanes have read what results take the place of.
      there = __all_sync(0xffffffffU, there ? 1 : 0) != 0;
      __syncwarp();
      if (there) {
        auto* const rows = reinterpret_cast<std::byte*>(words_in<config>(block) - lane);
#pragma unroll
        for (int part = 0; part < parts; part += 2)
          write_results<T>(rows, part, added[part], added[part + 1]);
      } else if (going_) {
        owed_.add();
        uint2* const mine = place_at<to>(t_, t_.how.rank(), first, epoch_);
#pragma unroll
        for (int part = 0; part < parts; ++part)
          store_sum_words(mine + (subtile * parts + part) * sum_fragments::lanes,
                          to::of(own + 4 * part));
      }
      if (lane == 0) landed_in(block).added[group_][writing_.stage][first.warp] = there;
      hand_on(block);
    }
  }
  template <class T>
  [[nodiscard]] __device__ static float4 rounded(const float* sums) {
    const float2 first = two_floats(two_halves(sums[0], sums[1], T{}), T{});
    const float2 second = two_floats(two_halves(sums[2], sums[3], T{}), T{});
    return make_float4(first.x, first.y, second.x, second.y);
  }
  /// Two fragments side by side, of a sub-tile, of which `rows` are this warp's: as TMA stores
  /// them.
  template <class T>
  __device__ static void write_results(std::byte* rows, int part, const float4& left,
                                       const float4& right) {
    const int lane = device_warp::thread_rank();
    const int row = lane % 16;
    const int swizzled = (part + lane / 16) ^ (row % 8);
    store_matrices<false>(rows + row * (subtile_side * 2) + swizzled * 16,
                          two_halves(left.x, left.y, T{}), two_halves(left.z, left.w, T{}),
                          two_halves(right.x, right.y, T{}), two_halves(right.z, right.w, T{}));
  }

  /// Where this lane's words of the sub-tile lie that is written next.
  template <tile_config config>
  [[nodiscard]] __device__ uint2* words_in(const block_view<config>& block) const {
    const int thread = static_cast<int>(threadIdx.x) % warpgroup_threads;
    return reinterpret_cast<uint2*>(block.shared.epilogue_buffers[group_][writing_.stage].rows) +
           thread / 32 * subtile_parts(config) * sum_fragments::lanes + thread % 32;
  }
  template <tile_config config>
  __device__ void hand_on(const block_view<config>& block) {
    if (!left_out(mutant::results_proxy)) cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    block.shared.epi_full[group_][writing_.stage].arrive();
    writing_.template advance<config.epilogue_buffers>();
  }

  template <tile_config config>
  [[nodiscard]] __device__ sum_fragment first_of(const tile_place& tile) const {
    constexpr int tile_m = config.swap_ab ? config.block_n : tile_rows(config);
    constexpr int tile_n = config.swap_ab ? tile_rows(config) : config.block_n;
    return {t_.how.turned(tile.row) / tile_m, tile.column / tile_n, group_,
            static_cast<int>(threadIdx.x) / 32 % sum_fragments::warps, 0};
  }

  template <class T, class Words, tile_config config>
  __device__ __forceinline__ void send(const sum_fragment& first,
                                       const float (&sums)[config.block_n / 2]) {
    const sum_fragments& how = t_.how;
    constexpr int parts = config.block_n / 8;
    // Nearest first. Rows of a warp are mostly one owner's.
#pragma unroll 1
    for (int hop = 1; hop <= how.world() - (t_.keeps ? 1 : 0); ++hop) {
      const int owner = receiver_at_hop(how.rank(), hop, how.world());
      const unsigned wanted = how.mask_of(how.first_row(owner), how.end_row(owner), first, parts);
      if (wanted == 0) continue;
      auto* const to = place_at<Words>(t_, owner, first, epoch_);
#pragma unroll
      for (int part = 0; part < parts; ++part) {
        if ((wanted >> part & 1U) != 0)
          store_sum_words(to + part * sum_fragments::lanes, Words::of(sums + 4 * part));
      }
    }
    if constexpr (sizeof(typename Words::words) == 8) {
      if (t_.keeps && !sum_adder(t_, epoch_, slot_of_warp())
                           .try_kept<T, Words, config.swap_ab, parts>(first, sums))
        owed_.add();
    }
  }

  const sums_run& t_;
  std::uint64_t epoch_;
  int group_;
  bool going_ = true;
  owed_tiles owed_;
  ring_cursor writing_;
};

template <class Io>
class owner_sums::view {
 public:
  using results = sums_sender;

  __device__ view(const Io& io, const gemm_arguments& /*given*/) : t_(io), copies_(io.c) {}
  __device__ void begin(std::uint64_t epoch) { epoch_ = epoch; }

  /// For a warp of an MMA warpgroup.
  [[nodiscard]] __device__ sums_sender results_of(int group) const { return {t_, epoch_, group}; }
  /// The same, with what that has left.
  template <tile_config config>
  __device__ void after_results(const block_view<config>& block, int group,
                                const handed_over& sums) const {
    if (!t_.adds_itself || sums.given_up) return;
    if (sums.owed.none()) return end_sums(t_, epoch_, slot_of_warp());
    const sums_list left(t_, block.arguments.schedule, block.cluster, config.cluster,
                         static_cast<int>(block.m_place), group, sums.owed);
    add_sums(t_, left, epoch_, slot_of_warp());
  }

  /// An epilogue warp.
  template <tile_config config>
  __device__ void send_buffered(const block_view<config>& block, int group) const {
    if constexpr (can_stage(config)) {
      if (!t_.stages && !t_.lands) return;
      const bool going = reserve_slabs(t_.moved.run, t_.how, epoch_, slot_of_warp());
      clear(landed_in(block));
      if (threadIdx.x % 32 == 0)
        sums_epilogue<config>(block, t_, copies_, epoch_, group, going).run();
    }
  }

 private:
  const sums_run& t_;
  const CUtensorMap* copies_;
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
