#pragma once

#include <cstdint>

#include <untax/ops/options.hpp>
#include <untax/ops/problems.hpp>
#include <untax/tile/barrier_steps.hpp>
#include <untax/tile/counter_layout.hpp>
#include <untax/tile/order.hpp>
#include <untax/tile/protocol.hpp>
#include <untax/tile/shard.hpp>

namespace untax {

/// The sharding of the rows or of the columns of A.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr sharding a_sharding(
    const all_gather_gemm_problem& problem, int world) noexcept {
  return problem.gather == gather_axis::rows ? sharding{problem.m, world}
                                             : sharding{problem.k, world, shard_granularity};
}

/// Rows and columns of a rank's shard; that of rank 0 is full.
[[nodiscard]] constexpr extent a_shard_of(const all_gather_gemm_problem& problem, int world,
                                          int rank) noexcept {
  const std::int64_t part = a_sharding(problem, world).of(rank).size;
  return problem.gather == gather_axis::rows ? extent{part, problem.k} : extent{problem.m, part};
}

/// The parts of A that move, the places where they lie, and the counters that guard them.
class all_gather_gemm_layout {
 public:
  constexpr all_gather_gemm_layout(const all_gather_gemm_problem& problem,
                                   const protocol_plan& plan)
      : problem_(problem), plan_(plan), shards_(a_sharding(problem, plan.world)), sets_{plan.sets} {
    const int peers = plan.world;
    counter_layout layout;
    const int rooms = peers * listed_rows(0) * col_chunks(0).count();
    ready_ = layout.take(sets_.sets, 1, rooms);
    free_ = layout.take(sets_.sets, peers, plan.workers);
    offered_ = layout.take(sets_.sets, 1, rooms);
    withdrawn_ = layout.take(sets_.sets, peers, plan.senders);
    barrier_ = {plan.rank, plan.world, layout.take(1, peers, 1)};
    counters_ = layout.size();
  }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int rank() const noexcept { return plan_.rank; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int world() const noexcept { return plan_.world; }
  [[nodiscard]] constexpr int counters() const noexcept { return counters_; }
  [[nodiscard]] constexpr extent inbox() const noexcept {
    return {sets_.sets * set_rows(), problem_.k};
  }
  [[nodiscard]] constexpr std::int64_t rows() const noexcept { return problem_.m; }
  /// The rows of a set of rooms, enough for any run.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t set_rows() const noexcept {
    return plan_.capacity > 0 ? plan_.capacity : problem_.m;
  }
  [[nodiscard]] constexpr extent outbox() const noexcept {
    if (!pulls()) return {};
    return by_rows() ? extent{sets_.sets * shards_.full(), problem_.k}
                     : extent{sets_.sets * set_rows(), shards_.full()};
  }
  [[nodiscard]] constexpr extent tile_extent() const noexcept {
    return library() ? extent{problem_.m, problem_.n} : extent{plan_.tile_m, plan_.tile_n};
  }

  /// A rectangle of the whole A: chunk `index` of the shard of rank `source`.
  struct chunk {
    int source = 0;
    int index = 0;
    range rows;
    range cols;
  };

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool by_rows() const noexcept {
    return problem_.gather == gather_axis::rows;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool library() const noexcept {
    return plan_.how == pattern::bulk_library;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool has_rooms() const noexcept {
    return !is_bulk(plan_.how);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool pulls() const noexcept {
    return plan_.move == direction::pull &&
           (plan_.how == pattern::producer_consumer || plan_.how == pattern::fused_specialized);
  }
  /// Whether the rows of all sources are put together first. If a source has very few rows, its
  /// GEMM alone would read all weights for little work.
  [[nodiscard]] constexpr bool together() const noexcept {
    return by_rows() && world() > 1 && shards_.full() <= few_rows && problem_.m <= plan_.tile_m;
  }
  /// Whether a chunk is sent to all peers before the next one is.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool fans_out() const noexcept {
    return plan_.fan_out || !by_rows();
  }
  /// The number of row chunks in a raster group of a shard. A group is sent column by column, since
  /// the tiles that are multiplied at the same time begin with its first columns.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int raster_rows(int source) const noexcept {
    const int rows = listed_rows(source);
    return plan_.raster_rows < rows ? plan_.raster_rows : rows;
  }
  /// The number of equal parts of a row whose chunks are sent in turn, for split-K.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int k_interleave(int source) const noexcept {
    return col_chunks(source).count() % plan_.k_interleave == 0 ? plan_.k_interleave : 1;
  }
  /// Whether the rank's own shard is copied into its own inbox, too, so that all of A lies in one
  /// place.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool collected() const noexcept {
    return library() || plan_.gather_own;
  }
  /// The first hop to send at, or to read from: hop 0 is the rank itself.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int first_hop() const noexcept {
    return collected() ? 0 : 1;
  }

  // A shard is cut into chunks, numbered row by row.

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr pieces row_chunks(int source) const noexcept {
    return by_rows()
               ? pieces{shards_.of(source), plan_.tile_m}
               : pieces{{0, problem_.m}, plan_.chunk_cross > 0 ? plan_.chunk_cross : problem_.m};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr pieces col_chunks(int source) const noexcept {
    return by_rows()
               ? pieces{{0, problem_.k}, plan_.chunk_cross > 0 ? plan_.chunk_cross : problem_.k}
               : pieces{shards_.of(source), plan_.panel_k};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int chunks_of(int source) const noexcept {
    return row_chunks(source).count() * col_chunks(source).count();
  }
  /// The number of chunks of rank 0, whose shard is full.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int most_chunks() const noexcept {
    return chunks_of(0);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr chunk chunk_at(int source, int index) const noexcept {
    const pieces cols = col_chunks(source);
    return {source, index, row_chunks(source).at(index / cols.count()),
            cols.at(index % cols.count())};
  }

  /// Row chunks of a shard in the order of sending. Runs with different rows share the order for
  /// the capacity, and each leaves out the chunks that it does not have.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int listed_rows(int source) const noexcept {
    if (plan_.capacity == 0) return row_chunks(source).count();
    const std::int64_t rows = by_rows() ? sharding{plan_.capacity, world()}.full() : plan_.capacity;
    return static_cast<int>(ceil_div(rows, row_chunks(source).step));
  }
  /// The chunk of a shard that is sent as number i.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int chunk_in_turn(int source, int i) const noexcept {
    const int across = col_chunks(source).count();
    const auto at =
        raster_grid{listed_rows(source), across, raster_rows(source), k_interleave(source)}.at(i);
    return at.row * across + at.column;
  }

  /// The part of the sharded dimension that a rank has.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr range shard(int source) const noexcept {
    return shards_.of(source);
  }
  /// The last rank whose shard is not empty.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int last_source() const noexcept {
    return static_cast<int>((shards_.extent - 1) / shards_.full());
  }

  // The places of chunks.

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr place in_own_shard(const chunk& p) const noexcept {
    const std::int64_t begin = shards_.of(rank()).begin;
    return {operand::a, rank(), p.rows.begin - (by_rows() ? begin : 0),
            p.cols.begin - (by_rows() ? 0 : begin)};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr place in_inbox(int at, const chunk& p,
                                                           std::uint64_t epoch) const noexcept {
    return {operand::inbox, at, sets_.set_of(epoch) * set_rows() + p.rows.begin, p.cols.begin};
  }
  /// The row of the inbox at which the rows of a source begin; in set 0 or 1.
  [[nodiscard]] constexpr std::int64_t inbox_row(int source, int set) const noexcept {
    return set * set_rows() + (by_rows() ? shards_.of(source).begin : 0);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr const room_sets& sets() const noexcept { return sets_; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr place in_outbox(const chunk& p,
                                                            std::uint64_t epoch) const noexcept {
    const std::int64_t begin = shards_.of(p.source).begin;
    const std::int64_t set = sets_.set_of(epoch);
    return by_rows() ? place{operand::outbox, p.source, set * shards_.full() + p.rows.begin - begin,
                             p.cols.begin}
                     : place{operand::outbox, p.source, set * set_rows() + p.rows.begin,
                             p.cols.begin - begin};
  }

  /// The place where this rank reads a chunk.
  [[nodiscard]] constexpr place place_of(const chunk& p, std::uint64_t epoch) const noexcept {
    return p.source == rank() && !collected() ? in_own_shard(p) : in_inbox(rank(), p, epoch);
  }

  // The rooms, and the counters that guard them.

  /// Whether readers retire the rooms of an inbox. If every rank has a part of A, that is not
  /// needed: a source that fills a room again two epochs later has received the reader's chunks of
  /// the epoch between, which the reader sent after it had read the room. With pull the reader
  /// itself fills the room. If runs have different rows, the reader may have sent nothing in the
  /// epoch between.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool counts_readers() const noexcept {
    return !pulls() && (plan_.capacity > 0 || sets_.sets != 2 || last_source() < world() - 1);
  }

  /// Whether a rank retires the rooms of a source. If runs have different rows it does so even if
  /// the source sent nothing, since the source's next run reserves them.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool answers(int source) const noexcept {
    return plan_.capacity > 0 || chunks_of(source) > 0;
  }

  /// The ready counter of a chunk, in a set.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int ready_counter(int set, int source,
                                                              int index) const noexcept {
    return ready_.at(set, 0, source * most_chunks() + index);
  }
  /// The free counter of a consumer, at a source; with one worker each.
  [[nodiscard]] constexpr int free_counter(int set, int consumer) const noexcept {
    return free_.at(set, consumer);
  }

  /// The room of a chunk in the inbox of `consumer`. With pull, and for its own chunks, the
  /// consumer fills it itself; within a rank the end of the run orders the next use.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr room inbox_room(int source, int consumer, int index,
                                                            std::uint64_t epoch) const noexcept {
    if (!has_rooms()) return {};
    const int set = sets_.set_of(epoch);
    const int ready = ready_counter(set, source, index);
    return {.producer = pulls() ? consumer : source,
            .consumer = consumer,
            .number = ready,
            .ready = ready,
            .free = source == consumer || !counts_readers() ? -1 : free_.at(set, consumer),
            .readers = plan_.workers,
            .use = sets_.use_of(epoch)};
  }
  /// The room of a chunk in the outbox of `source`, which `reader` pulls from.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr room offer_room(int source, int reader, int index,
                                                            std::uint64_t epoch) const noexcept {
    const int set = sets_.set_of(epoch);
    const int ready = offered_.at(set, 0, source * most_chunks() + index);
    return {.producer = source,
            .consumer = reader,
            .number = ready,
            .ready = ready,
            .free = withdrawn_.at(set, reader),
            .readers = plan_.senders,
            .use = sets_.use_of(epoch)};
  }

  /// The room to acquire before a chunk is read; none for a chunk of the rank's own in its shard.
  [[nodiscard]] constexpr room arrival_of(const chunk& p, std::uint64_t epoch) const noexcept {
    const bool there = plan_.senders_acquire || (p.source == rank() && !collected());
    return there ? room{} : inbox_room(p.source, rank(), p.index, epoch);
  }

 protected:
  static constexpr std::int64_t few_rows = 64;

  all_gather_gemm_problem problem_;
  protocol_plan plan_;
  sharding shards_;
  room_sets sets_;
  counter_block ready_;
  counter_block free_;
  counter_block offered_;
  counter_block withdrawn_;
  barrier_steps barrier_;
  int counters_ = 0;
};

}  // namespace untax
