#pragma once

#include "engines/gpu/channel/peer_slabs.cuh"
#include "engines/gpu/comm/sinks/owner_sums.hpp"
#include "engines/gpu/comm/sinks/sum_adder.cuh"
#include "engines/gpu/comm/sinks/sums_epilogue.cuh"
#include "engines/gpu/gemm/block.cuh"
#include "engines/gpu/gemm/io.cuh"
#include "engines/gpu/sm90/ptx/matrix_store.cuh"
#include "engines/gpu/words/partial_words.cuh"

namespace untax::gpu {

/// The number of this warp among the warps of all blocks: its wait record.
[[nodiscard]] __device__ inline int slot_of_warp() {
  constexpr int warps = block_threads / 32;
  return static_cast<int>(blockIdx.x) * warps + static_cast<int>(threadIdx.x) / 32;
}

/// The address of this lane's words of a fragment in this rank's slab at `owner`.
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

/// The result of an MMA warp after its last tile.
struct handed_over {
  bool failed = false;  ///< a wait failed, which the host reports: nothing may be signalled
  deferred_tiles deferred;
};

/// Sends the partial sums of an MMA warp to their owners, including this rank. If MMA warps add, it
/// also adds the sums of its tiles that this rank owns: after each tile those that have arrived
/// from all ranks, and the rest at the end. Until it has sent everything it only polls, for a
/// bounded time. So no cycle of waits can arise, whatever the order in which ranks multiply.
class sums_sender {
 public:
  static constexpr bool takes = true;
  static constexpr bool adds = false;
  static constexpr bool gates = false;

  __device__ sums_sender(const sums_run& io, std::uint64_t epoch, int group)
      : io_(io), epoch_(epoch), group_(group) {}

  __device__ void begin() {
    reserved_ =
        !io_.how.reserves() || reserve_slabs(io_.moved.run, io_.how, epoch_, slot_of_warp());
  }

  /// Takes the sums of a tile, whose first row and column are in the order of the GEMM.
  template <class T, tile_config config>
  __device__ __forceinline__ void take(const block_view<config>& block, const tile_place& tile,
                                       const float (&sums)[config.block_n / 2]) {
    deferred_.begin_tile();
    if constexpr (can_stage(config)) {
      const int owner = buffered_owner<config>(io_, tile.row, tile.column, group_);
      if (owner == io_.how.rank()) return add_landed<T>(block, tile, sums);
      if (owner >= 0) return stage<T>(block, sums);
    }
    if (!reserved_) return;
    const sum_fragment first = first_of<config>(tile);
    if (io_.how.halves) {
      send<T, partial_words<T, true>, config>(first, sums);
    } else {
      send<T, partial_words<T, false>, config>(first, sums);
    }
    if (io_.own_in_registers) return;
    if (io_.polls == 0 ||
        !sum_adder(io_, epoch_, slot_of_warp()).try_tile<T, config.swap_ab>(first))
      deferred_.add();
  }
  /// Called after the last tile.
  template <tile_config config>
  [[nodiscard]] __device__ handed_over left(const block_view<config>& block) const {
    // The epilogue warp has then reset the words of everything that was added.
    if constexpr (can_stage(config)) {
      if (io_.lands_by_tma) block.shared.epi_empty[group_][writing_.stage].wait(writing_.parity);
    }
    return {!reserved_, deferred_};
  }

 private:
  /// Writes words to the epilogue buffers, from which the epilogue warp sends them. If slabs were
  /// not reserved, nothing is sent; the zeros written then would change nothing in a free slab.
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
            reserved_ ? to::of(sums + (subtile * parts + part) * 4) : to::nothing();
      hand_on(block);
    }
  }

  /// Adds own rows: the epilogue warp loads peers' words into the buffers, this warp adds them in
  /// rank order, and the epilogue warp stores the sums. If some words of a sub-tile have not
  /// arrived, this warp's own words go to this rank's slab, and the sub-tile is deferred.
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
      // Minus zero: adding the first summand to it leaves that summand unchanged.
#pragma unroll
      for (float4& four : added) four = make_float4(-0.0F, -0.0F, -0.0F, -0.0F);
      bool arrived = reserved_;
      int peers = io_.how.world() - 1;
#pragma unroll 1
      for (int rank = 0; rank < io_.how.world(); ++rank) {
        if (rank == io_.how.rank()) {
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
          arrived = arrived && to::have_arrived(word);
          sum_adder::add_to(added[part], to::sums_of(word), false);
        }
        if (--peers == 0) continue;
        block.shared.epi_full[group_][writing_.stage].arrive();
        writing_.template advance<config.epilogue_buffers>();
      }
      // All lanes have now read the words that the results overwrite.
      arrived = __all_sync(0xffffffffU, arrived ? 1 : 0) != 0;
      __syncwarp();
      if (arrived) {
        auto* const rows = reinterpret_cast<std::byte*>(words_in<config>(block) - lane);
#pragma unroll
        for (int part = 0; part < parts; part += 2)
          write_results<T>(rows, part, added[part], added[part + 1]);
      } else if (reserved_) {
        deferred_.add();
        uint2* const mine = place_at<to>(io_, io_.how.rank(), first, epoch_);
#pragma unroll
        for (int part = 0; part < parts; ++part)
          store_sum_words(mine + (subtile * parts + part) * sum_fragments::lanes,
                          to::of(own + 4 * part));
      }
      if (lane == 0) landed_in(block).added[group_][writing_.stage][first.warp] = arrived;
      hand_on(block);
    }
  }
  template <class T>
  [[nodiscard]] __device__ static float4 rounded(const float* sums) {
    const float2 first = two_floats(two_halves(sums[0], sums[1], T{}), T{});
    const float2 second = two_floats(two_halves(sums[2], sums[3], T{}), T{});
    return make_float4(first.x, first.y, second.x, second.y);
  }
  /// Writes two adjacent fragments of a sub-tile as TMA stores them; `rows` are this warp's rows.
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

  /// This lane's words in the next epilogue buffer to be written.
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
    return {io_.how.rotated(tile.row) / tile_m, tile.column / tile_n, group_,
            static_cast<int>(threadIdx.x) / 32 % sum_fragments::warps, 0};
  }

  template <class T, class Words, tile_config config>
  __device__ __forceinline__ void send(const sum_fragment& first,
                                       const float (&sums)[config.block_n / 2]) {
    const sum_fragments& how = io_.how;
    constexpr int parts = config.block_n / 8;
    // The nearest owner first. Usually one owner has all rows of a warp.
#pragma unroll 1
    for (int hop = 1; hop <= how.world() - (io_.own_in_registers ? 1 : 0); ++hop) {
      const int owner = receiver_at_hop(how.rank(), hop, how.world());
      const unsigned wanted = how.mask_of(how.first_row(owner), how.end_row(owner), first, parts);
      if (wanted == 0) continue;
      auto* const to = place_at<Words>(io_, owner, first, epoch_);
#pragma unroll
      for (int part = 0; part < parts; ++part) {
        if ((wanted >> part & 1U) != 0)
          store_sum_words(to + part * sum_fragments::lanes, Words::of(sums + 4 * part));
      }
    }
    if constexpr (sizeof(typename Words::words) == 8) {
      if (io_.own_in_registers && !sum_adder(io_, epoch_, slot_of_warp())
                                       .try_with_own<T, Words, config.swap_ab, parts>(first, sums))
        deferred_.add();
    }
  }

  const sums_run& io_;
  std::uint64_t epoch_;
  int group_;
  bool reserved_ = true;
  deferred_tiles deferred_;
  ring_cursor writing_;
};

template <class Io>
class owner_sums::view {
 public:
  using results = sums_sender;

  __device__ view(const Io& io, const gemm_arguments& /*given*/) : io_(io), copies_(io.c) {}
  __device__ void begin(std::uint64_t epoch) { epoch_ = epoch; }

  /// The object that takes the sums of an MMA warp of this group.
  [[nodiscard]] __device__ sums_sender results_of(int group) const { return {io_, epoch_, group}; }
  /// Called by an MMA warp after its last tile: adds what is deferred.
  template <tile_config config>
  __device__ void after_results(const block_view<config>& block, int group,
                                const handed_over& sums) const {
    if (!io_.mma_ctas_add || sums.failed) return;
    if (sums.deferred.none()) return end_sums(io_, epoch_, slot_of_warp());
    const sums_list left(io_, block.arguments.schedule, block.cluster, config.cluster,
                         static_cast<int>(block.m_place), group, sums.deferred);
    add_sums(io_, left, epoch_, slot_of_warp());
  }

  /// Called by an epilogue warp: runs `sums_epilogue`, if words pass through the buffers.
  template <tile_config config>
  __device__ void send_buffered(const block_view<config>& block, int group) const {
    if constexpr (can_stage(config)) {
      if (!io_.sends_by_tma && !io_.lands_by_tma) return;
      const bool reserved = reserve_slabs(io_.moved.run, io_.how, epoch_, slot_of_warp());
      clear(landed_in(block));
      if (threadIdx.x % 32 == 0)
        sums_epilogue<config>(block, io_, copies_, epoch_, group, reserved).run();
    }
  }

 private:
  const sums_run& io_;
  const CUtensorMap* copies_;
  std::uint64_t epoch_ = 0;
};

template <class Io>
class sum_adders::view {
 public:
  static constexpr std::size_t comm_smem_bytes = 0;

  explicit __device__ view(const Io& io) : io_(io) {}
  __device__ void begin(std::uint64_t epoch) { epoch_ = epoch; }
  __device__ void prepare_comm() {}
  __device__ void prepare_beside(int /*warp*/) {}

  /// All warps of a communication CTA add.
  __device__ void run_comm(std::byte* /*shared*/) {
    const int me = slot_of_warp();
    add_sums(io_, {io_, me}, epoch_, me);
  }
  __device__ void beside(int /*warp*/, const epilogue_smem& /*own*/) {}

 private:
  const sums_run& io_;
  std::uint64_t epoch_ = 0;
};

}  // namespace untax::gpu
