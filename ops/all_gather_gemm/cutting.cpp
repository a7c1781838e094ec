#include "ops/all_gather_gemm/cutting.hpp"

#include <algorithm>

#include "engines/sm90/gemm/config.hpp"
#include "engines/sm90/transfer/block_share.hpp"
#include "engines/sm90/transfer/mover_warps.hpp"

namespace untax {
namespace {

/// Who looks himself hears of the first rows a microsecond earlier than by a scout: with few rows
/// that is more than a scout saves. With gather = k there are several sources to look for, one by
/// one.
constexpr std::int64_t few_rows = 16;
/// A warp that moves has time to look if it has sent its part when the first rows may come.
constexpr std::int64_t most_rows_of_scouts_that_move = 64;

/// Pieces that blocks and warps move: several for each of them.
constexpr std::int64_t pieces_of_mover = 4;
constexpr std::int64_t least_piece_bytes = std::int64_t{1} << 10;
constexpr std::int64_t most_piece_bytes = std::int64_t{256} << 10;
/// Copy engines take some microseconds to begin, so their pieces are large.
constexpr std::int64_t least_copy_bytes = std::int64_t{4} << 20;
constexpr std::int64_t most_copy_bytes = std::int64_t{16} << 20;
/// A shard of so many bytes goes in small pieces, by columns.
constexpr std::int64_t most_small_bytes = std::int64_t{8} << 20;
constexpr std::int64_t least_small_bytes = std::int64_t{4} << 10;
constexpr std::int64_t most_warp_bytes = std::int64_t{8} << 10;
/// What a warp of a block that moves sends at a time: less of rows for tall tiles, of which a block
/// has several portions, and which all begin with the first.
constexpr std::int64_t most_portion_bytes = std::int64_t{32} << 10;
constexpr std::int64_t most_tall_portion_bytes = std::int64_t{16} << 10;
constexpr std::int64_t least_small_columns = 128;
constexpr std::int64_t most_small_rows = 32;
/// What storers move, in bytes a nanosecond. They have to end with the first tile, and what its
/// tiles wait for themselves has to come sooner. No faster than that: what fills the link, or the
/// memory, holds up the first pieces, and the tiles.
constexpr double most_pace = 300;
constexpr double least_pace = 200;
constexpr double over_need_awaited = 2;
/// Of the time that the first tiles take.
constexpr double most_busy = 0.8;
/// A box takes a storer so long, most of it until it may be told.
constexpr double box_nanoseconds = 5000;
constexpr double cycles_in_a_nanosecond = 1.755;  // as plans count them

class cutter {
 public:
  cutter(gather_plan& plan, const all_gather_gemm_problem& problem, const operator_options& options)
      : plan_(plan),
        p_(plan.protocol),
        config_(plan.gemm.config),
        order_(plan.gemm.schedule),
        problem_(problem),
        options_(options),
        shard_(shard_extent::of(problem, plan.protocol.world)) {}

  void cut() {
    if (plan_.who == gather_movers::warps && storers_are_done_in_time()) {
      plan_.who = gather_movers::storers;
      plan_.boxes = true;
    }
    p_.movers = movers();
    plan_.scouts = has_scouts();
    p_.tile_n = config_.swapped ? tile_rows(config_) : config_.columns;
    if (at_once()) return cut_at_once();
    const bool small =
        plan_.streams == 0 && p_.move == direction::push && shard_.bytes() <= most_small_bytes;
    const bool from_the_start = small || plan_.who == gather_movers::storers;
    p_.spread = from_the_start && !begin_in_turn();
    if (plan_.who == gather_movers::storers) {
      cut_for_storers();
    } else if (plan_.boxes) {
      cut_into_boxes(box_columns);
      p_.band = band_of_tiles();
    } else if (small) {
      cut_small();
    } else {
      cut_wide();
    }
  }

 private:
  [[nodiscard]] bool by_rows() const { return problem_.gather == gather_axis::rows; }
  [[nodiscard]] bool at_once() const { return options_.how == pattern::bulk_synchronous; }

  /// Unless fewer movers were asked for.
  [[nodiscard]] int at_most(int all) const {
    return options_.movers > 0 ? std::min(options_.movers, all) : all;
  }
  [[nodiscard]] int movers() const {
    const int blocks = plan_.gemm.blocks();
    switch (plan_.who) {
      case gather_movers::all_blocks:
        return 4 * blocks;
      case gather_movers::warps:
        return at_most(blocks);
      case gather_movers::storers:
        return storers();
      case gather_movers::leading_blocks:
      case gather_movers::elsewhere:
        break;
    }
    return plan_.streams > 0
               ? plan_.streams
               : (plan_.boxes ? 1 : sm90::mover_warps) * (plan_.leading + plan_.apart);
  }
  [[nodiscard]] bool has_scouts() const {
    if (at_once() || (by_rows() && problem_.m <= few_rows)) return false;
    return plan_.who != gather_movers::warps || problem_.m <= most_rows_of_scouts_that_move;
  }

  /// Whether the tiles of one source begin when those of the sources before it have ended, and
  /// while others move: then the last source's rows may come last.
  [[nodiscard]] bool begin_in_turn() const {
    return order_.segments > 1 && order_.tiles() > order_.clusters &&
           plan_.who != gather_movers::all_blocks;
  }
  /// In nanoseconds.
  [[nodiscard]] double first_tile() const {
    return plan_.gemm.cycles / ceil_div(order_.tiles(), order_.clusters) / cycles_in_a_nanosecond;
  }
  /// To how many ranks a shard goes, the own one included where A is collected.
  [[nodiscard]] int readers() const { return p_.world - (p_.collect ? 0 : 1); }
  /// What a rank has to send while the first tiles are multiplied, in bytes a nanosecond.
  [[nodiscard]] double need() const {
    return static_cast<double>(shard_.bytes() * readers()) / first_tile();
  }
  /// As large as the memory of a storer.
  [[nodiscard]] std::int64_t storer_columns() const {
    return config_.staging * sm90::chunk_bytes(config_) / (box_rows * 2);
  }
  [[nodiscard]] int storers() const {
    return at_most(sm90::storing_groups(config_) * plan_.gemm.blocks());
  }
  [[nodiscard]] bool storers_are_done_in_time() const {
    if (config_.swapped) return false;
    const std::int64_t boxes =
        ceil_div(shard_.rows, box_rows) * ceil_div(shard_.columns, storer_columns());
    const auto each = static_cast<double>(ceil_div<std::int64_t>(boxes, storers()) *
                                          (begin_in_turn() ? readers() : 1));
    return need() <= most_busy * most_pace && each * box_nanoseconds <= most_busy * first_tile();
  }

  void cut_into(std::int64_t rows, std::int64_t columns) {
    p_.tile_m = rows;
    p_.panel_k = columns;
    p_.cross = by_rows() ? columns : rows;
  }
  /// As the copy engine of a multiprocessor takes them.
  void cut_into_boxes(std::int64_t columns) {
    cut_into(std::min(box_rows, shard_.rows), std::min(columns, shard_.columns));
  }
  /// Pieces of rows that are multiplied at the same time.
  [[nodiscard]] int band_of_tiles() const {
    const std::int64_t rows = std::int64_t{order_.band} * tile_rows(config_) * config_.cluster;
    return static_cast<int>(std::max<std::int64_t>(rows / p_.tile_m, 1));
  }
  /// Of all rows of the shard.
  [[nodiscard]] int band_of_shard() const {
    return static_cast<int>(ceil_div(shard_.rows, p_.tile_m));
  }

  void cut_for_storers() {
    cut_into_boxes(storer_columns());
    p_.starts = config_.pieces;
    p_.band = p_.spread ? band_of_shard() : band_of_tiles();
    const double wanted = need() * (p_.spread ? over_need_awaited : 1 / most_busy);
    plan_.pace = static_cast<int>(std::clamp(wanted, least_pace, most_pace));
  }

  /// Nothing is read before everything has come, so a piece goes to all peers when it is read.
  /// Those that are no boxes are one for each block, and lie in one place if whole rows are large
  /// enough.
  void cut_at_once() {
    p_.spread = true;
    if (plan_.boxes) return cut_into_boxes(box_columns);
    const sm90::block_share share =
        sm90::share_of_block(shard_.rows, shard_.columns, plan_.apart, least_small_columns);
    cut_into(share.rows, share.columns);
    p_.movers = plan_.apart = share.count;
  }

  /// What tiles begin with comes first: few columns, and of the rows of a tile so many that there
  /// are not many pieces to ask for.
  void cut_small() {
    const std::int64_t tile = std::min<std::int64_t>(a_box_rows(plan_.gemm), problem_.m);
    // A copy engine of a multiprocessor moves more at once than a warp's registers hold.
    const bool by_warps =
        plan_.who == gather_movers::all_blocks || plan_.who == gather_movers::warps;
    // Of tall tiles that all begin at the same time, the fewer to look for the better.
    const bool tall_tile = tile >= tile_rows(sm90::tile_config{});
    const std::int64_t below = by_warps && by_rows() && tall_tile ? 4 : 8;
    const std::int64_t rows =
        std::clamp<std::int64_t>(tile / below, 1, std::min(shard_.rows, most_small_rows));
    const bool tall = by_rows() && !config_.swapped;
    const std::int64_t portion = tall ? most_tall_portion_bytes : most_portion_bytes;
    const std::int64_t bytes = by_warps ? most_warp_bytes : portion;
    const std::int64_t wanted = std::clamp(shard_.bytes() / p_.movers, least_small_bytes, bytes);
    const std::int64_t columns = std::max(
        round_up<std::int64_t>(wanted / 2 / rows, sm90::most_stage_slices * sm90::slice_depth),
        least_small_columns);
    cut_into(rows, std::min(columns, shard_.columns));
    p_.band = band_of_shard();
  }
  /// Whole rows: nothing between them, with gather = rows.
  void cut_wide() {
    const std::int64_t bytes = shard_.bytes();
    const std::int64_t wanted =
        plan_.streams > 0 ? std::clamp(bytes / plan_.streams, least_copy_bytes, most_copy_bytes)
                          : std::clamp(bytes / (p_.movers * pieces_of_mover), least_piece_bytes,
                                       most_piece_bytes);
    const std::int64_t rows =
        std::clamp<std::int64_t>(wanted / (shard_.columns * 2), 1, shard_.rows);
    cut_into(rows, shard_.columns);
  }

  gather_plan& plan_;
  gemm_plan& p_;
  const sm90::tile_config& config_;
  const sm90::tile_schedule& order_;
  const all_gather_gemm_problem& problem_;
  const operator_options& options_;
  shard_extent shard_;
};

}  // namespace

void cut_pieces(gather_plan& plan, const all_gather_gemm_problem& problem,
                const operator_options& options) {
  cutter(plan, problem, options).cut();
}

}  // namespace untax
