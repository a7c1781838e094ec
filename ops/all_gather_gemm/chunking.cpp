#include "ops/all_gather_gemm/device_plan.hpp"

#include <algorithm>

#include "engines/gpu/comm/placement.hpp"
#include "engines/gpu/copy/block_share.hpp"
#include "engines/gpu/gemm/config.hpp"
#include "ops/all_gather_gemm/layout.hpp"

namespace untax {
namespace {

/// With few rows there is no flag poller. A consumer that polls by itself sees the first rows a
/// microsecond earlier, which is then more than a flag poller saves. With gather = k a consumer
/// would have to poll several sources, one by one.
constexpr std::int64_t few_rows = 16;
/// Up to this many rows, a warp that sends has sent its part before the first rows can arrive.
constexpr std::int64_t most_rows_of_pollers_that_send = 64;

/// Blocks and warps that send get several chunks each.
constexpr std::int64_t chunks_of_sender = 4;
constexpr std::int64_t least_chunk_bytes = std::int64_t{1} << 10;
constexpr std::int64_t most_chunk_bytes = std::int64_t{256} << 10;
/// Copy engines take some microseconds to begin, so their chunks are large.
constexpr std::int64_t least_copy_bytes = std::int64_t{4} << 20;
constexpr std::int64_t most_copy_bytes = std::int64_t{16} << 20;
/// A shard of at most this many bytes is sent in small chunks, by columns.
constexpr std::int64_t most_small_bytes = std::int64_t{8} << 20;
constexpr std::int64_t least_small_bytes = std::int64_t{4} << 10;
constexpr std::int64_t most_warp_bytes = std::int64_t{8} << 10;
/// The bytes that a warp of a sending block sends at a time. Portions of rows for tall tiles are
/// smaller: a block has several of them, and all tiles begin with the first ones.
constexpr std::int64_t most_portion_bytes = std::int64_t{32} << 10;
constexpr std::int64_t most_tall_portion_bytes = std::int64_t{16} << 10;
constexpr std::int64_t least_small_columns = 128;
constexpr std::int64_t most_small_rows = 32;
/// The highest rate at which epilogue warps send, in bytes a nanosecond. They have to end with the
/// first tile, and the data that the first tiles wait for have to come sooner. A higher rate would
/// saturate the link or the memory, and delay the first chunks and the tiles.
constexpr double most_rate = 300;
constexpr double least_rate = 200;
constexpr double over_need_awaited = 2;
/// The part of the time of the first tiles in which epilogue warps may be busy.
constexpr double most_busy = 0.8;
/// The time that a TMA tile takes an epilogue warp, most of it until it may be signalled.
constexpr double tma_tile_nanoseconds = 5000;
constexpr double cycles_in_a_nanosecond = 1.755;  // the clock in which plans count cycles

class chunker {
 public:
  chunker(gather_plan& plan, const all_gather_gemm_problem& problem,
          const operator_options& options)
      : plan_(plan),
        p_(plan.protocol),
        config_(plan.gemm.config),
        order_(plan.gemm.schedule),
        problem_(problem),
        options_(options),
        shard_(a_shard_of(problem, plan.protocol.world, 0)) {}

  void cut() {
    if (plan_.who == gather_senders::warps && epilogue_warps_are_done_in_time()) {
      plan_.who = gather_senders::epilogue_warps;
      plan_.tma_tiles = true;
    }
    p_.senders = senders();
    plan_.polls = has_poller();
    p_.tile_n = config_.swap_ab ? tile_rows(config_) : config_.block_n;
    if (bulk()) return chunk_bulk();
    const bool small =
        plan_.streams == 0 && p_.move == direction::push && shard_bytes() <= most_small_bytes;
    const bool from_the_start = small || plan_.who == gather_senders::epilogue_warps;
    p_.fan_out = from_the_start && !begin_in_turn();
    if (plan_.who == gather_senders::epilogue_warps) {
      chunk_for_epilogue();
    } else if (plan_.tma_tiles) {
      chunk_into_tma_tiles(tma_tile_columns);
      p_.raster_rows = raster_rows_of_tiles();
    } else if (small) {
      chunk_small();
    } else {
      chunk_rows();
    }
  }

 private:
  [[nodiscard]] std::int64_t shard_bytes() const { return shard_.elements() * 2; }
  [[nodiscard]] bool by_rows() const { return problem_.gather == gather_axis::rows; }
  [[nodiscard]] bool bulk() const { return options_.how == pattern::bulk_synchronous; }

  /// `all`, or the number that the options ask for if it is smaller.
  [[nodiscard]] int at_most(int all) const {
    return options_.senders > 0 ? std::min(options_.senders, all) : all;
  }
  [[nodiscard]] int senders() const {
    const int blocks = plan_.gemm.blocks();
    switch (plan_.who) {
      case gather_senders::all_ctas_first:
        return 4 * blocks;
      case gather_senders::warps:
        return at_most(blocks);
      case gather_senders::epilogue_warps:
        return epilogue_warps();
      case gather_senders::comm_ctas:
      case gather_senders::elsewhere:
        break;
    }
    return plan_.streams > 0
               ? plan_.streams
               : (plan_.tma_tiles ? 1 : gpu::sender_warps) * (plan_.comm_ctas + plan_.own_grid);
  }
  [[nodiscard]] bool has_poller() const {
    if (bulk() || (by_rows() && problem_.m <= few_rows)) return false;
    return plan_.who != gather_senders::warps || problem_.m <= most_rows_of_pollers_that_send;
  }

  /// Whether the tiles of a source begin when those of earlier sources have ended, while others
  /// still send. Then the rows of the last source may come last.
  [[nodiscard]] bool begin_in_turn() const {
    return order_.segments > 1 && order_.tiles() > order_.clusters &&
           plan_.who != gather_senders::all_ctas_first;
  }
  /// The time of the first tiles in nanoseconds.
  [[nodiscard]] double first_tile() const {
    return plan_.gemm.cycles / ceil_div(order_.tiles(), order_.clusters) / cycles_in_a_nanosecond;
  }
  /// The number of ranks that get a shard. The own rank is one of them where A is collected.
  [[nodiscard]] int readers() const { return p_.world - (p_.gather_own ? 0 : 1); }
  /// Bytes a nanosecond that a rank has to send while the first tiles are multiplied.
  [[nodiscard]] double need() const {
    return static_cast<double>(shard_bytes() * readers()) / first_tile();
  }
  /// The columns of a TMA tile that fills the memory of an epilogue warp.
  [[nodiscard]] std::int64_t epilogue_columns() const {
    return config_.epilogue_buffers * gpu::subtile_bytes(config_) / (tma_tile_rows * 2);
  }
  [[nodiscard]] int epilogue_warps() const {
    return at_most(gpu::storing_warpgroups(config_) * plan_.gemm.blocks());
  }
  [[nodiscard]] bool epilogue_warps_are_done_in_time() const {
    if (config_.swap_ab) return false;
    const std::int64_t tma_tiles =
        ceil_div(shard_.rows, tma_tile_rows) * ceil_div(shard_.cols, epilogue_columns());
    const auto each = static_cast<double>(ceil_div<std::int64_t>(tma_tiles, epilogue_warps()) *
                                          (begin_in_turn() ? readers() : 1));
    return need() <= most_busy * most_rate &&
           each * tma_tile_nanoseconds <= most_busy * first_tile();
  }

  void cut_into(std::int64_t rows, std::int64_t columns) {
    p_.tile_m = rows;
    p_.panel_k = columns;
    p_.chunk_cross = by_rows() ? columns : rows;
  }
  /// Chunks are TMA tiles with at most `columns` columns.
  void chunk_into_tma_tiles(std::int64_t columns) {
    cut_into(std::min(tma_tile_rows, shard_.rows), std::min(columns, shard_.cols));
  }
  /// The number of row chunks that are multiplied at the same time, as a raster group.
  [[nodiscard]] int raster_rows_of_tiles() const {
    const std::int64_t rows =
        std::int64_t{order_.raster_group} * tile_rows(config_) * config_.cluster;
    return static_cast<int>(std::max<std::int64_t>(rows / p_.tile_m, 1));
  }
  /// The number of row chunks of the whole shard.
  [[nodiscard]] int raster_rows_of_shard() const {
    return static_cast<int>(ceil_div(shard_.rows, p_.tile_m));
  }

  void chunk_for_epilogue() {
    chunk_into_tma_tiles(epilogue_columns());
    p_.k_interleave = config_.cluster_split_k;
    p_.raster_rows = p_.fan_out ? raster_rows_of_shard() : raster_rows_of_tiles();
    const double wanted = need() * (p_.fan_out ? over_need_awaited : 1 / most_busy);
    plan_.rate_limit = static_cast<int>(std::clamp(wanted, least_rate, most_rate));
  }

  /// The GEMM begins when all chunks have arrived, so each chunk is read once and sent to all
  /// peers. If chunks are not TMA tiles, each block has one chunk, which is contiguous if whole
  /// rows are large enough.
  void chunk_bulk() {
    p_.fan_out = true;
    if (plan_.tma_tiles) return chunk_into_tma_tiles(tma_tile_columns);
    const gpu::block_share share =
        gpu::share_of_block(shard_.rows, shard_.cols, plan_.own_grid, least_small_columns);
    cut_into(share.rows, share.columns);
    p_.senders = plan_.own_grid = share.count;
  }

  /// The chunks with which tiles begin are sent first. A chunk has few columns, and so many rows
  /// that a tile does not wait for many chunks.
  void chunk_small() {
    const std::int64_t tile = std::min<std::int64_t>(a_tma_tile_rows(plan_.gemm), problem_.m);
    // TMA moves more at once than a warp's registers hold.
    const bool by_warps =
        plan_.who == gather_senders::all_ctas_first || plan_.who == gather_senders::warps;
    // Tall tiles begin at the same time: the fewer chunks they wait for, the better.
    const bool tall_tile = tile >= tile_rows(gpu::tile_config{});
    const std::int64_t below = by_warps && by_rows() && tall_tile ? 4 : 8;
    const std::int64_t rows =
        std::clamp<std::int64_t>(tile / below, 1, std::min(shard_.rows, most_small_rows));
    const bool tall = by_rows() && !config_.swap_ab;
    const std::int64_t portion = tall ? most_tall_portion_bytes : most_portion_bytes;
    const std::int64_t bytes = by_warps ? most_warp_bytes : portion;
    const std::int64_t wanted = std::clamp(shard_bytes() / p_.senders, least_small_bytes, bytes);
    const std::int64_t columns = std::max(
        round_up<std::int64_t>(wanted / 2 / rows, gpu::most_k_blocks_per_stage * gpu::block_k),
        least_small_columns);
    cut_into(rows, std::min(columns, shard_.cols));
    p_.raster_rows = raster_rows_of_shard();
  }
  /// Chunks of whole rows. With gather = rows a chunk is contiguous.
  void chunk_rows() {
    const std::int64_t bytes = shard_bytes();
    const std::int64_t wanted =
        plan_.streams > 0 ? std::clamp(bytes / plan_.streams, least_copy_bytes, most_copy_bytes)
                          : std::clamp(bytes / (p_.senders * chunks_of_sender), least_chunk_bytes,
                                       most_chunk_bytes);
    const std::int64_t rows = std::clamp<std::int64_t>(wanted / (shard_.cols * 2), 1, shard_.rows);
    cut_into(rows, shard_.cols);
  }

  gather_plan& plan_;
  protocol_plan& p_;
  const gpu::tile_config& config_;
  const gpu::tile_schedule& order_;
  const all_gather_gemm_problem& problem_;
  const operator_options& options_;
  extent shard_;  // of rank 0
};

}  // namespace

void cut_chunks(gather_plan& plan, const all_gather_gemm_problem& problem,
                const operator_options& options) {
  chunker(plan, problem, options).cut();
}

}  // namespace untax
