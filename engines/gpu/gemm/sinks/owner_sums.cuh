#pragma once

#include "engines/gpu/channel/peer_slabs.cuh"
#include "engines/gpu/gemm/block.cuh"
#include "engines/gpu/gemm/io.cuh"
#include "engines/gpu/gemm/sinks/owner_sums.hpp"
#include "engines/gpu/gemm/sinks/partial_words.cuh"
#include "engines/gpu/gemm/sinks/strip_adder.cuh"
#include "engines/gpu/gemm/sinks/sum_adder.cuh"
#include "engines/gpu/gemm/store_throttle.cuh"
#include "engines/gpu/sm90/ptx/cluster.cuh"
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

/// The rank whose rows of C are all those of a group in a tile; -1 if there is no such rank, or
/// these sums cannot pass through shared memory. All ranks say the same of a tile.
template <tile_config config>
[[nodiscard]] __device__ int owner_of_all(const sums_run& io, const tile_place& tile, int group) {
  const sum_fragments& how = io.how;
  if (!can_stage_sums(config) || !io.stages) return -1;
  const int first = how.turned(tile.row) + group * warpgroup_rows;
  const int last = min(first + warpgroup_rows, how.m) - 1;
  if (first > last || tile.column + config.block_n > how.n) return -1;
  if (how.everywhere) return how.rank();
  const int owner = first / how.full_rows();
  return last / how.full_rows() == owner ? owner : -1;
}
/// Whether an MMA warpgroup and its epilogue warp tell each other at the end what they have left.
template <tile_config config>
[[nodiscard]] __device__ bool share_what_is_left(const sums_run& io) {
  return can_stage_sums(config) && io.stages && io.adds_itself;
}
/// Whether any of these two says so, which meet. By all threads of both.
[[nodiscard]] __device__ inline bool any_of_group(int group, bool says) {
  return any_of_those_who_meet(2 + group, warpgroup_threads + 32, says);
}

/// The first fragment of what a warp of a group has of a tile.
template <tile_config config>
[[nodiscard]] __device__ sum_fragment first_fragment(const sum_fragments& how,
                                                     const tile_place& tile, int group, int warp) {
  constexpr int tile_m = config.swap_ab ? config.block_n : tile_rows(config);
  constexpr int tile_n = config.swap_ab ? tile_rows(config) : config.block_n;
  return {how.turned(tile.row) / tile_m, tile.column / tile_n, group, warp, 0};
}
/// What has become of the sums of all tiles of a warp. After a wait that ended badly, which the
/// host reports, nobody is told anything.
enum class handed_over : std::uint8_t { added, some_left, given_up };

/// A warp of an MMA warpgroup, which sends its partial sums, own ones too. Where no CTA does
/// nothing but add, it or its epilogue warp adds what of its tiles is for this rank: behind each
/// tile what has come by then from all ranks, and the rest at the end. So nobody waits before
/// everything is sent, and no cycle of waits can arise, in whatever order ranks multiply.
class sums_sender {
 public:
  static constexpr bool takes = true;

  __device__ sums_sender(const sums_run& io, std::uint64_t epoch, int group)
      : t_(io), epoch_(epoch), group_(group) {}

  __device__ void begin() {
    going_ = !t_.how.asks() || reserve_slabs(t_.moved.run, t_.how, epoch_, slot_of_warp());
  }

  /// The sums of a tile.
  template <class T, tile_config config>
  __device__ __forceinline__ void take(const block_view<config>& block, const work_tile& w,
                                       const float (&sums)[config.block_n / 2]) {
    const tile_place tile = block.place(w);
    const sum_fragment first = first_fragment<config>(t_.how, tile, group_, warp());
    if constexpr (can_stage_sums(config)) {
      using words = partial_words<T, true>;
      const int owner = owner_of_all<config>(t_, tile, group_);
      const bool own = owner == t_.how.rank();
      const bool last = !block.next(w).valid();
      if (own && t_.adds_itself) {
        if (going_ && t_.how.everywhere)
          send<words, config>(first, tile.column, sums, t_.how.world() - 1);
        if (last) waiting_ = w.tile;
        stage<T>(block, sums, !last);
        return;
      }
      if (owner >= 0 && !own && !last) return stage<T>(block, sums, true);
    }
    if (!going_) return;
    if (t_.how.halves) {
      hand_out<T, partial_words<T, true>, config>(first, tile.column, sums);
    } else {
      hand_out<T, partial_words<T, false>, config>(first, tile.column, sums);
    }
  }
  /// When all tiles have been taken. Own strips of the block's last tile, behind which nothing is
  /// multiplied, are added here: four warps are quicker than one.
  template <class T, tile_config config>
  __device__ __forceinline__ void end(const block_view<config>& block) {
    if constexpr (can_stage_sums(config)) {
      if (waiting_ < 0 || !going_) return;
      __syncwarp();
      const sum_fragment first =
          first_fragment<config>(t_.how, block.place({waiting_, 0, 0}), group_, warp());
      // A tile takes all places, so its sub-tiles lie from the first one on.
      static_assert(config.epilogue_buffers == subtiles_of(config));
      const auto& places = block.shared.epilogue_buffers[group_];
      if (!strip_adder<T, subtile_side / 8>(t_, epoch_, first)
               .add_at_end(subtiles_of(config),
                           places[0].rows + warp() * (subtile_bytes(config) / sum_fragments::warps),
                           sizeof places[0]))
        owes_ = true;
    }
  }
  [[nodiscard]] __device__ handed_over left() const {
    return !going_ ? handed_over::given_up : owes_ ? handed_over::some_left : handed_over::added;
  }

 private:
  [[nodiscard]] __device__ static int warp() {
    return static_cast<int>(threadIdx.x) / 32 % sum_fragments::warps;
  }

  /// Into the places of the epilogue. Where it `tells` so, the epilogue warp goes on with them.
  /// Zeros change nothing in a slab that is free: where none is, nothing is sent.
  template <class T, tile_config config>
  __device__ __forceinline__ void stage(const block_view<config>& block,
                                        const float (&sums)[config.block_n / 2], bool tells) {
    using to = partial_words<T, true>;
    constexpr int parts = subtile_side / 8;
    const int at = warp() * parts * 32 + device_warp::thread_rank();
#pragma unroll
    for (int subtile = 0; subtile < subtiles_of(config); ++subtile) {
      block.shared.epi_empty[group_][writing_.stage].wait(writing_.parity);
      auto* const words =
          reinterpret_cast<uint2*>(block.shared.epilogue_buffers[group_][writing_.stage].rows) + at;
#pragma unroll
      for (int part = 0; part < parts; ++part)
        words[part * 32] = going_ ? to::of(sums + (subtile * parts + part) * 4) : to::nothing();
      if (!left_out(mutant::results_proxy)) cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
      if (tells) block.shared.epi_full[group_][writing_.stage].arrive();
      writing_.template advance<config.epilogue_buffers>();
    }
  }
  /// From registers to whoever wants some of it. What is this rank's is added if it can be.
  template <class T, class Words, tile_config config>
  __device__ __forceinline__ void hand_out(const sum_fragment& first, int column,
                                           const float (&sums)[config.block_n / 2]) {
    constexpr bool of_halves = sizeof(typename Words::words) == 8;
    constexpr bool may_keep = of_halves && !can_stage_sums(config);
    const int others = t_.how.world() - 1;
    if constexpr (may_keep) {
      if (t_.keeps) {
        send<Words, config>(first, column, sums, others);
        if (!sum_adder(t_, epoch_, slot_of_warp())
                 .try_kept<T, Words, config.block_n / 8>(first, sums))
          owes_ = true;
        return;
      }
    }
    send<Words, config>(first, column, sums, others + 1);
    if constexpr (of_halves && !may_keep) {
      // Few: rows of several owners.
      if (t_.how.touches(t_.how.rank(), t_.how.row_of(first), t_.how.fragment_rows())) owes_ = true;
    } else {
      if (t_.looks == 0 || !sum_adder(t_, epoch_, slot_of_warp()).try_strip<T, Words>(first))
        owes_ = true;
    }
  }

  /// To so many ranks, peers first, if they want some of it.
  template <class Words, tile_config config>
  __device__ __forceinline__ void send(const sum_fragment& first, int column,
                                       const float (&sums)[config.block_n / 2], int hops) {
    const sum_fragments& how = t_.how;
    constexpr int parts = config.block_n / 8;
    const int rows = config.swap_ab ? config.block_n : how.fragment_rows();
    const int first_row = how.row_of(first);
    if (first_row >= how.m || (config.swap_ab && how.col_of(first) >= how.n)) return;
    // With A and B exchanged, parts are rows of A, which may be another owner's each.
    const int all = config.swap_ab ? parts : (how.n - column) / 8;
    // Nearest first. Rows of a warp are mostly one owner's.
#pragma unroll 1
    for (int hop = 1; hop <= hops; ++hop) {
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
  }

  const sums_run& t_;
  std::uint64_t epoch_;
  int group_;
  bool going_ = true;
  bool owes_ = false;
  ring_cursor writing_;
  int waiting_ = -1;  // the last tile, if it is to be added at the end
};

template <class Io>
class owner_sums::view {
 public:
  using results = sums_sender;
  /// Shared memory behind that of the block.
  template <tile_config config>
  static constexpr std::size_t more_smem_bytes = can_stage_sums(config)
                                                     ? storing_warpgroups(config) *
                                                           sizeof(strip_landing)
                                                     : 0;

  __device__ view(const Io& io, const gemm_arguments& /*given*/) : t_(io) {}
  __device__ void begin(std::uint64_t epoch) { epoch_ = epoch; }

  /// For a warp of an MMA warpgroup.
  [[nodiscard]] __device__ sums_sender results_of(int group) const { return {t_, epoch_, group}; }
  /// The same, with what that has left.
  template <tile_config config>
  __device__ void after_results(const block_view<config>& block, int group,
                                handed_over sums) const {
    bool gives_up = sums == handed_over::given_up;
    bool some_left = sums == handed_over::some_left;
    if (share_what_is_left<config>(t_)) {
      gives_up = any_of_group(group, gives_up);
      some_left = any_of_group(group, some_left);
    }
    if (!t_.adds_itself || gives_up) return;
    if (!some_left) return end_sums(t_, epoch_, slot_of_warp());
    const sums_list left(t_, block.arguments.schedule, block.cluster, config.cluster,
                         static_cast<int>(block.m_place), group);
    add_sums(t_, left, epoch_, slot_of_warp());
  }

  /// What MMA warpgroups leave in the places of the epilogue, by a warp for each of them, over most
  /// of the time of the next tile: it goes to the peer whose rows these are, or is added.
  template <tile_config config>
  __device__ void send_buffered(const block_view<config>& block, int group) const {
    if constexpr (can_stage_sums(config)) {
      if (!t_.stages) return;
      const bool going =
          !t_.how.asks() || reserve_slabs(t_.moved.run, t_.how, epoch_, slot_of_warp());
      const bool leads = threadIdx.x % 32 == 0;
      if (leads) {
        for (stage_barrier& empty : block.shared.epi_empty[group]) empty.arrive();
      }
      cuda::ptx::fence_proxy_async();
      auto* const behind = reinterpret_cast<std::byte*>(&block.shared) + sizeof block.shared;
      strip_landing::view landing(reinterpret_cast<strip_landing*>(behind)[group]);
      store_throttle throttle;
      ring_cursor at;
      bool owes = false;
      block.each_tile([&](const work_tile& w) {
        throttle.count(w.end - w.begin);
        if (block.arguments.schedule.stores_partial(w)) return;
        const tile_place tile = block.place(w);
        const int owner = owner_of_all<config>(t_, tile, group);
        const work_tile next = block.next(w);
        // The block's last tile is left to the MMA warpgroup.
        if (owner < 0 || !next.valid()) return;
        const sum_fragment first = first_fragment<config>(t_.how, tile, group, 0);
        if (owner != t_.how.rank()) {
          if (leads) send(block, owner, first, at, going, throttle, next.end - next.begin);
          // Nobody looks for a phase of a place before the one ahead of it has ended.
          __syncwarp();
        } else if (t_.adds_itself) {
          const bool half = block.arguments.type == dtype::f16;
          if (!(half ? add_own<__half>(block, first, at, going, landing)
                     : add_own<__nv_bfloat16>(block, first, at, going, landing)))
            owes = true;
        } else {
          return;
        }
        for (int subtile = 0; subtile < subtiles_of(config); ++subtile)
          at.template advance<config.epilogue_buffers>();
      });
      if (leads) tma_store_wait();
      __syncwarp();
      if (!share_what_is_left<config>(t_)) return;
      (void)any_of_group(group, !going);
      (void)any_of_group(group, owes);
    }
  }

 private:
  /// A tile to its owner, from places from `at` on, by one thread, while so many k-blocks are
  /// multiplied.
  template <tile_config config>
  __device__ void send(const block_view<config>& block, int owner, sum_fragment f, ring_cursor at,
                       bool going, store_throttle& throttle, int k_blocks) const {
    constexpr int bytes = subtile_bytes(config) / sum_fragments::warps;
    std::byte* const slab =
        t_.moved.run.inbox.at(owner) + t_.how.slab_of(t_.how.rank(), epoch_) * t_.slab_bytes;
    const tile_note noted(block, block.shared.epi_full[f.group][at.stage], at.parity, action::copy);
    const ring_cursor begin = at;
#pragma unroll 1
    for (int subtile = 0; subtile < subtiles_of(config); ++subtile) {
      block.shared.epi_full[f.group][at.stage].wait(at.parity);
      if (subtile == 0) throttle.begin_tile(subtiles_of(config), k_blocks);
      throttle.await();
      f.part = subtile * (subtile_side / 8);
      for (f.warp = 0; f.warp < sum_fragments::warps; ++f.warp) {
        if (!going || !t_.how.touches(owner, t_.how.row_of(f), t_.how.fragment_rows())) continue;
        cuda::ptx::cp_async_bulk(
            cuda::ptx::space_global, cuda::ptx::space_shared,
            slab + t_.how.slot_of(owner, f) * t_.how.fragment_bytes(),
            block.shared.epilogue_buffers[f.group][at.stage].rows + f.warp * bytes, bytes);
      }
      tma_store_commit();
      at.template advance<config.epilogue_buffers>();
    }
    tma_store_wait_read<0>();
    at = begin;
    for (int subtile = 0; subtile < subtiles_of(config); ++subtile) {
      block.shared.epi_empty[f.group][at.stage].arrive();
      at.template advance<config.epilogue_buffers>();
    }
  }

  /// Adds an own tile, which lies in places from `at` on, by all lanes. False if something is left.
  template <class T, tile_config config>
  [[nodiscard]] __device__ __forceinline__ bool add_own(const block_view<config>& block,
                                                        const sum_fragment& first, ring_cursor at,
                                                        bool going,
                                                        strip_landing::view& landing) const {
    const tile_note noted(block, block.shared.epi_full[first.group][at.stage], at.parity,
                          action::add);
    const auto own = [&](int /*subtile*/) {
      block.shared.epi_full[first.group][at.stage].wait(at.parity);
      return block.shared.epilogue_buffers[first.group][at.stage].rows;
    };
    const auto read = [&](int /*subtile*/) {
      __syncwarp();
      if (threadIdx.x % 32 == 0) block.shared.epi_empty[first.group][at.stage].arrive();
      at.template advance<config.epilogue_buffers>();
    };
    if (going)
      return strip_adder<T, strip_landing::parts>(t_, epoch_, first)
          .add_beside(subtiles_of(config), landing, own, read);
    for (int subtile = 0; subtile < subtiles_of(config); ++subtile) {
      (void)own(subtile);
      read(subtile);
    }
    return true;
  }

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
