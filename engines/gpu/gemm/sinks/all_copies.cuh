#pragma once

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/comm/output_channel.cuh"
#include "engines/gpu/comm/tile_sender.cuh"
#include "engines/gpu/gemm/config.hpp"
#include "engines/gpu/gemm/io.cuh"
#include "engines/gpu/sm90/ptx/tile_copy.cuh"

namespace untax {

/// The part of a thread of a block in a scatter: see engines/gpu/gemm/io.cuh for the form.
template <class Protocol>
class all_copies<Protocol>::block_io {
 public:
  static constexpr bool moves = true;
  static constexpr std::size_t comm_smem_bytes = sizeof(typename tile_sender<Protocol>::memory);
  static constexpr bool waits = false;
  static constexpr bool brings = false;
  static constexpr bool retires = false;
  static constexpr bool signals = true;

  __device__ block_io(const all_copies& io, const CUtensorMap& a, const CUtensorMap& b,
                      const CUtensorMap& /*c*/, int k_blocks)
      : t_(io), a_(a), b_(b), k_blocks_(k_blocks) {}

  __device__ void begin() { epoch_ = t_.moved.run.epochs[blockIdx.x] + 1; }

  __device__ void prepare_comm() {}
  __device__ void prepare_beside(int /*warp*/) {}

  /// A communication CTA, of which one warp issues TMA copies.
  __device__ void run_comm(std::byte* shared) {
    if (threadIdx.x >= 32) return;
    const auto me = static_cast<int>(blockIdx.x);
    tile_sender<Protocol>::run(
        t_, *reinterpret_cast<typename tile_sender<Protocol>::memory*>(shared), me, epoch_, me);
  }
  /// One warp of the rank opens C for the others.
  __device__ void beside(int warp, const gpu::epilogue_smem& /*own*/) {
    if (t_.way == scatter_way::store_to_peers && number() == 0 && warp == 3) output().open();
  }

  [[nodiscard]] __device__ gpu::operand_window window_of(int row, int /*k_block*/) const {
    return {&a_, row, &b_, 0, k_blocks_};
  }
  [[nodiscard]] __device__ int copies() const {
    return t_.way == scatter_way::store_to_peers && going_ ? t_.how.world() : 1;
  }
  [[nodiscard]] __device__ gpu::destination copy_of(int row, int copy) const {
    return {&t_.c[copy], row};
  }
  /// Whether the stores of a tile have to end before its place is used again.
  [[nodiscard]] __device__ bool in_turn() const { return t_.in_turn; }

  /// By an epilogue warp. Peers' C is not touched before they have opened it; where that
  /// does not happen, it is not touched at all.
  __device__ void before_store() {
    if (t_.way == scatter_way::store_to_peers) going_ = output().reserve();
  }
  /// The last part of a tile to be stored says that the tile lies there.
  __device__ void after_tile(const gpu::tile_place& tile) {
    if (t_.way != scatter_way::tile_flags) return;
    if (!gpu::left_out(gpu::mutant::scatter_tma_wait)) gpu::tma_store_wait();
    const int index = t_.how.tile_at(tile.row, tile.column);
    if (index < 0 || count(t_.parts_done[index]) != epoch_ * static_cast<std::uint64_t>(t_.parts))
      return;
    const room flag = t_.how.tile_flag(index, epoch_);
    cuda_memory::raise_release(*t_.moved.run.counters.local(static_cast<std::size_t>(flag.ready)),
                               flag.use);
  }
  __device__ void after_all() {}

  /// The last block that has stored all it stores says so, and waits for what others store here.
  __device__ void finish() {
    // Where a peer has not opened its C nothing was stored, and so nobody is told that it was.
    const bool stored = __syncthreads_and(going_ ? 1 : 0) != 0;
    if (threadIdx.x >= 32) return;
    bool last = false;
    if (threadIdx.x == 0) {
      t_.moved.run.epochs[blockIdx.x] = epoch_;
      if (t_.way == scatter_way::store_to_peers && stored)
        last = count(*t_.done) == epoch_ * static_cast<std::uint64_t>(t_.multiplying);
    }
    const bool closes = __any_sync(0xffffffffU, last) != 0;
    __syncwarp();  // a vote orders no memory
    // The host reports failed waits.
    if (closes) (void)output().close();
  }

 private:
  /// The number of this block among those that multiply.
  [[nodiscard]] __device__ int number() const {
    return static_cast<int>(blockIdx.x) - t_.comm_ctas;
  }
  /// This warp, speaking for the blocks that multiply.
  [[nodiscard]] __device__ output_channel<Protocol> output() const {
    // The two epilogue warps wait at the same time, and have records of their own as far as there
    // are any.
    const unsigned second = threadIdx.x / 32 == 2 ? gridDim.x : 0;
    return {t_, 0, epoch_, static_cast<int>(blockIdx.x + second)};
  }
  /// Counts one more, after all that this thread has stored; acquires what the others did.
  [[nodiscard]] __device__ static std::uint64_t count(std::uint64_t& word) {
    return 1 + cuda::atomic_ref<std::uint64_t, cuda::thread_scope_device>(word).fetch_add(
                   1, cuda::memory_order_acq_rel);
  }

  const all_copies& t_;
  const CUtensorMap& a_;
  const CUtensorMap& b_;
  int k_blocks_;
  std::uint64_t epoch_ = 0;
  bool going_ = true;
};

}  // namespace untax
