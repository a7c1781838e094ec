#pragma once

#include "engines/gpu/gemm/operand_load.cuh"

namespace untax::gpu {

/// The producer of a GEMM whose operands are ready from the start: loads k-blocks of both into the
/// ring, ahead of the consumers. Each block loads its own rows of the M operand, and its share of
/// the rows of the N operand for all blocks that share them. Of a tile that is not full it loads
/// only the rows that exist.
///
/// It locates the first tile, and prepares its first stages, before the previous kernels have
/// ended. After that, the first TMA load is only a few instructions away.
template <tile_config config, class Source>
class local_producer {
 public:
  __device__ local_producer(const block_view<config>& block, const Source& source)
      : block_(block), source_(source) {}

  /// Called by a warp before the previous kernels have ended: locates the first work.
  __device__ void locate_first() {
    work_ = block_.first();
    if (work_.valid()) locate(work_);
    begin_range(work_.begin);
  }
  /// Called by the same warp when barriers are initialised: arms the barriers of the first stages.
  /// If the M operand is weights that no kernel writes, loads the weights of the first stages, and
  /// prefetches those of further stages into L2.
  __device__ void open_first() {
    const int stages = (range_.end - range_.begin + per_stage - 1) / per_stage;
    open_ = stages < config.stages ? stages : config.stages;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane < open_) block_.shared.full[lane].arrive_and_expect(bytes_);
    __syncwarp();
    if constexpr (!reads_early(config)) return;
    static_assert(!reads_early(config) || config.cluster == 1, "a block may lie beyond the rows");
    early_ = min(block_.arguments.early_stages, open_);
    if (early_ == 0) return;
    if (!elect_one()) return;
    for (int stage = 0; stage < early_; ++stage) {
      for (int i = 0; i < per_stage; ++i)
        load_m_operand(block_, block_.shared.stages[stage].m_operand[i], *m_.map,
                       {column_of(range_.begin + stage * per_stage, i), m_.row},
                       block_.shared.full[stage]);
    }
    // Until the previous kernels have ended, memory has little else to do.
    const int more = min(stages, early_ + prefetched_stages(config));
    for (int stage = early_; stage < more; ++stage) {
      for (int i = 0; i < per_stage; ++i)
        tma_prefetch_once(*m_.map, {column_of(range_.begin + stage * per_stage, i), m_.row});
    }
  }

  /// Called by one thread when the previous kernels have ended.
  __device__ void run() {
    if (!work_.valid()) return;
    int k_block = range_.begin;
    for (; early_ > 0; --early_, --open_, k_block += per_stage) fetch(k_block, true);
    for (; open_ > 0; --open_, k_block += per_stage) fetch(k_block);
    for (;;) {
      for (; k_block < range_.end; k_block += per_stage) {
        block_.shared.empty[at_.stage].wait(at_.parity ^ 1);
        block_.shared.full[at_.stage].arrive_and_expect(bytes_);
        fetch(k_block);
      }
      if (range_.end == work_.end) {
        work_ = block_.next(work_);
        if (!work_.valid()) return;
        if (work_.tile != tile_) locate(work_);
        k_block = work_.begin;
      }
      begin_range(k_block);
    }
  }

 private:
  static constexpr int per_stage = k_blocks_per_stage(config);
  /// A stage may have one k-block of each of two ranges.
  static constexpr bool pairs_ranges = per_stage > 1;

  /// The rows of an operand that a block loads for a tile.
  struct part {
    const CUtensorMap* map;
    int row;
    int rows;
  };

  /// Begins the next part of the current work that is summed by itself, at a k-block.
  __device__ void begin_range(int begin) {
    range_ = work_;
    if constexpr (pairs_ranges) {
      range_.begin = begin;
      range_.end = block_.arguments.schedule.sums_end(begin, work_.end);
      stages_ = block_.arguments.schedule.stages_from(begin);
    }
  }
  /// The first column of k-block number `place` of a stage.
  [[nodiscard]] __device__ int column_of(int k_block, int place) const {
    return (pairs_ranges ? stages_.at(k_block, place) : k_block + place) * block_k;
  }

  __device__ void locate(const work_tile& w) {
    tile_ = w.tile;
    const tile_scheduler::coord at = block_.arguments.schedule.at(w.tile);
    const gemm_arguments& given = block_.arguments;
    const int m = block_.m_begin(at);
    const int n = block_.n_begin(at);
    m_ = {config.swap_ab ? &given.b : &given.a, config.swap_ab ? m : source_.rotated(m),
          tile_rows(config)};
    n_ = {config.swap_ab ? &given.a : &given.b, config.swap_ab ? source_.rotated(n) : n,
          given.multicast_rows};
    bytes_ = static_cast<std::uint32_t>(given.stage_bytes);
    const operand_tail& m_tail = given.m_tail;
    const operand_tail& n_tail = given.n_tail;
    const bool m_ends = m_.row >= m_tail.begin;
    const bool n_ends = n_.row >= n_tail.begin;
    // Blocks of a cluster that lie beyond the last rows load none.
    if (m_ends) m_ = {&m_tail.map, m_.row, m_.row == m_tail.begin ? m_tail.rows : 0};
    // The blocks of a cluster have smaller shares there, which lie closer together.
    if (n_ends) n_ = {&n_tail.map, n_.row, n_tail.rows};
    if (m_ends || n_ends)
      bytes_ = static_cast<std::uint32_t>(m_.rows + n_.rows * config.cluster) *
               (per_stage * block_k * 2);
    n_.row += static_cast<int>(block_.m_place) * n_.rows;
  }

  /// Loads the k-blocks of the next stage; with `has_weights` only those of the N operand, since
  /// the M operand is already loaded.
  __device__ void fetch(int k_block, bool has_weights = false) {
    auto& here = block_.shared.stages[at_.stage];
    stage_barrier& full = block_.shared.full[at_.stage];
#pragma unroll
    for (int i = 0; i < per_stage; ++i) {
      const int column = column_of(k_block, i);
      if (!has_weights && m_.rows > 0)
        load_m_operand(block_, here.m_operand[i], *m_.map, {column, m_.row}, full);
      load_n_operand(block_, here.n_operand[i], *n_.map, {column, n_.row}, n_.rows, full);
    }
    at_.template advance<config.stages>();
  }

  const block_view<config>& block_;
  const Source& source_;
  work_tile work_;
  work_tile range_;     // the part of the work that is loaded now
  stage_order stages_;  // of the k-blocks of `range_`
  int tile_ = -1;       // of the current work
  part m_{};
  part n_{};
  std::uint32_t bytes_ = 0;  // per stage
  ring_cursor at_;
  int open_ = 0;   // stages from here on whose barriers are armed
  int early_ = 0;  // armed stages that already have their weights
};

}  // namespace untax::gpu
