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

/// How the rows or the columns of A are dealt.
[[nodiscard]] constexpr sharding a_sharding(const all_gather_gemm_problem& problem,
                                            int world) noexcept {
  return problem.gather == gather_axis::rows ? sharding{problem.m, world}
                                             : sharding{problem.k, world, shard_granularity};
}

/// Which parts of A move, where they lie, and which counters guard them.
class all_gather_gemm_layout {
 public:
  constexpr all_gather_gemm_layout(const all_gather_gemm_problem& problem, const gemm_plan& plan)
      : problem_(problem), plan_(plan), shards_(a_sharding(problem, plan.world)) {
    const int peers = plan.world;
    counter_layout layout;
    ready_ = layout.take(sets_.sets, peers, pieces_of_full_shard());
    free_ = layout.take(sets_.sets, peers, plan.workers);
    offered_ = layout.take(sets_.sets, peers, pieces_of_full_shard());
    withdrawn_ = layout.take(sets_.sets, peers, plan.movers);
    barrier_ = {plan.rank, plan.world, layout.take(1, peers, 1)};
    counters_ = layout.size();
  }

  [[nodiscard]] constexpr int rank() const noexcept { return plan_.rank; }
  [[nodiscard]] constexpr int world() const noexcept { return plan_.world; }
  [[nodiscard]] constexpr int counters() const noexcept { return counters_; }
  [[nodiscard]] constexpr extent inbox() const noexcept {
    return {sets_.sets * problem_.m, problem_.k};
  }
  [[nodiscard]] constexpr extent outbox() const noexcept {
    if (!pulls()) return {};
    return by_rows() ? extent{sets_.sets * shards_.full(), problem_.k}
                     : extent{sets_.sets * problem_.m, shards_.full()};
  }
  [[nodiscard]] constexpr extent tile_extent() const noexcept {
    return library() ? extent{problem_.m, problem_.n} : extent{plan_.tile_m, plan_.tile_n};
  }

  /// A rectangle of the whole A: piece `index` of the shard of rank `source`.
  struct piece {
    int source = 0;
    int index = 0;
    range rows;
    range cols;
  };

  [[nodiscard]] constexpr bool by_rows() const noexcept {
    return problem_.gather == gather_axis::rows;
  }
  [[nodiscard]] constexpr bool library() const noexcept {
    return plan_.how == pattern::bulk_library;
  }
  [[nodiscard]] constexpr bool has_rooms() const noexcept { return !is_bulk(plan_.how); }
  [[nodiscard]] constexpr bool pulls() const noexcept {
    return plan_.move == direction::pull &&
           (plan_.how == pattern::producer_consumer || plan_.how == pattern::fused_specialized);
  }
  /// With very few rows a source the GEMM of one source alone would read all weights for little
  /// work: the rows of all sources are put together first.
  [[nodiscard]] constexpr bool together() const noexcept {
    return by_rows() && world() > 1 && shards_.full() <= few_rows && problem_.m <= plan_.tile_m;
  }
  [[nodiscard]] constexpr std::int64_t piece_size() const noexcept {
    return by_rows() ? plan_.tile_m : plan_.panel_k;
  }
  [[nodiscard]] constexpr pieces pieces_of(int source) const noexcept {
    return {shards_.of(source), piece_size()};
  }
  [[nodiscard]] constexpr int pieces_of_full_shard() const noexcept {
    return pieces{{0, shards_.full()}, piece_size()}.count();
  }
  [[nodiscard]] constexpr piece piece_at(int source, int index) const noexcept {
    const range part = pieces_of(source).at(index);
    return by_rows() ? piece{source, index, part, {0, problem_.k}}
                     : piece{source, index, {0, problem_.m}, part};
  }

  // Where a piece lies.

  [[nodiscard]] constexpr place in_own_shard(const piece& p) const noexcept {
    const std::int64_t begin = shards_.of(rank()).begin;
    return {operand::a, rank(), by_rows() ? p.rows.begin - begin : 0,
            by_rows() ? 0 : p.cols.begin - begin};
  }
  [[nodiscard]] constexpr place in_inbox(int at, const piece& p,
                                         std::uint64_t epoch) const noexcept {
    return {operand::inbox, at, sets_.set_of(epoch) * problem_.m + p.rows.begin, p.cols.begin};
  }
  [[nodiscard]] constexpr place in_outbox(const piece& p, std::uint64_t epoch) const noexcept {
    const std::int64_t begin = shards_.of(p.source).begin;
    const std::int64_t set = sets_.set_of(epoch);
    return by_rows()
               ? place{operand::outbox, p.source, set * shards_.full() + p.rows.begin - begin, 0}
               : place{operand::outbox, p.source, set * problem_.m, p.cols.begin - begin};
  }

  /// Where this rank reads a piece.
  [[nodiscard]] constexpr place place_of(const piece& p, std::uint64_t epoch) const noexcept {
    return p.source == rank() ? in_own_shard(p) : in_inbox(rank(), p, epoch);
  }

  // The rooms, and the counters that guard them.

  /// The room of a piece in the inbox of `consumer`. With pull it is the consumer itself that fills
  /// it; within a rank the end of the run orders the next use.
  [[nodiscard]] constexpr room inbox_room(int source, int consumer, int index,
                                          std::uint64_t epoch) const noexcept {
    if (!has_rooms()) return {};
    const int set = sets_.set_of(epoch);
    const int ready = ready_.at(set, source, index);
    return {.producer = pulls() ? consumer : source,
            .consumer = consumer,
            .number = ready,
            .ready = ready,
            .free = pulls() ? -1 : free_.at(set, consumer),
            .readers = plan_.workers,
            .use = sets_.use_of(epoch)};
  }
  /// The room of a piece in the outbox of `source`, which `reader` pulls from.
  [[nodiscard]] constexpr room offer_room(int source, int reader, int index,
                                          std::uint64_t epoch) const noexcept {
    const int set = sets_.set_of(epoch);
    const int ready = offered_.at(set, source, index);
    return {.producer = source,
            .consumer = reader,
            .number = ready,
            .ready = ready,
            .free = withdrawn_.at(set, reader),
            .readers = plan_.movers,
            .use = sets_.use_of(epoch)};
  }

  /// What has to be acquired before a piece is read; nothing for the rank's own.
  [[nodiscard]] constexpr room arrival_of(const piece& p, std::uint64_t epoch) const noexcept {
    return p.source == rank() ? room{} : inbox_room(p.source, rank(), p.index, epoch);
  }

 protected:
  static constexpr std::int64_t few_rows = 64;

  all_gather_gemm_problem problem_;
  gemm_plan plan_;
  sharding shards_;
  room_sets sets_{2};
  counter_block ready_;
  counter_block free_;
  counter_block offered_;
  counter_block withdrawn_;
  barrier_steps barrier_;
  int counters_ = 0;
};

}  // namespace untax
