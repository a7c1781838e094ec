#pragma once

#include <cstdint>
#include <vector>

#include <untax/tile/protocol.hpp>

#include "engines/schedule/plan.hpp"

namespace untax::test {

/// How the two jobs of `exchange` are assigned.
enum class layout {
  one_worker,   ///< sends everything, then computes
  two_workers,  ///< one sends while the other computes
  two_stages    ///< as two workers, one after the other
};

/// The smallest protocol that has everything: every rank holds one row of A; the ranks below
/// `senders` send theirs to all others, and each rank multiplies what it has with its weights, two
/// columns of k one after the other. Rooms lie in `sets` sets by epoch.
class exchange {
 public:
  static constexpr std::int64_t depth = 2;
  static constexpr std::int64_t columns = 2;

  exchange(int world, int rank, int senders, int sets, layout how)
      : world_(world), rank_(rank), senders_(senders), sets_{sets}, how_(how) {}

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int world() const { return world_; }
  /// Ready counters by (set, source), then free counters by (set, consumer).
  [[nodiscard]] int counters() const { return 2 * sets_.sets * world_; }
  [[nodiscard]] extent inbox() const { return {sets_.sets * world_, depth}; }
  [[nodiscard]] static extent outbox() { return {}; }
  [[nodiscard]] static extent tile_extent() { return {1, columns}; }
  [[nodiscard]] int kernels() const { return how_ == layout::two_stages ? 2 : 1; }
  [[nodiscard]] kernel kernel_at(int i) const {
    if (how_ != layout::two_stages) return {"exchange", 0, how_ == layout::one_worker ? 1 : 2};
    return i == 0 ? kernel{"send", 0, 1} : kernel{"compute", 1, 1};
  }

  template <class Emit>
  void program(int kernel_index, int worker, std::uint64_t epoch, Emit&& emit) const {
    const bool alone = how_ == layout::one_worker;
    if (alone || kernel_index + worker == 0) send(epoch, emit);
    if (alone || kernel_index + worker == 1) compute(epoch, emit);
  }

  /// The rows of A that this rank multiplies, in the order of the rows of its c.
  [[nodiscard]] std::vector<int> sources() const {
    std::vector<int> ranks;
    for (int source = 0; source < world_; ++source) {
      if (source < senders_ || source == rank_) ranks.push_back(source);
    }
    return ranks;
  }
  [[nodiscard]] schedule::operand_extents operands() const {
    return {{1, depth}, {columns, depth}, {static_cast<std::int64_t>(sources().size()), columns}};
  }

 private:
  [[nodiscard]] room room_at(int source, int consumer, std::uint64_t epoch) const {
    const int set = sets_.set_of(epoch) * world_;
    const int ready = set + source;
    return {.producer = source,
            .consumer = consumer,
            .number = ready,
            .ready = ready,
            .free = sets_.sets * world_ + set + consumer,
            .use = sets_.use_of(epoch)};
  }
  [[nodiscard]] place row_at(int source, int consumer, std::uint64_t epoch) const {
    return {operand::inbox, consumer, sets_.set_of(epoch) * world_ + source, 0};
  }

  template <class Emit>
  void send(std::uint64_t epoch, Emit&& emit) const {
    if (rank_ >= senders_) return;
    for (int hop = 1; hop < world_; ++hop) {
      const int peer = (rank_ + hop) % world_;
      const room r = room_at(rank_, peer, epoch);
      emit(step{.what = action::copy,
                .rows = 1,
                .cols = depth,
                .from = {operand::a, rank_, 0, 0},
                .to = row_at(rank_, peer, epoch),
                .reserve = r,
                .publish = r});
    }
  }

  template <class Emit>
  void compute(std::uint64_t epoch, Emit&& emit) const {
    const auto sources_of_rank = sources();
    for (std::size_t row = 0; row < sources_of_rank.size(); ++row) {
      const int source = sources_of_rank[row];
      const bool own = source == rank_;
      const room r = own ? room{} : room_at(source, rank_, epoch);
      for (std::int64_t k = 0; k < depth; ++k) {
        place from = own ? place{operand::a, rank_, 0, 0} : row_at(source, rank_, epoch);
        from.col = k;
        emit(step{.what = action::multiply,
                  .first = k == 0,
                  .last = k + 1 == depth,
                  .rows = 1,
                  .cols = columns,
                  .depth = 1,
                  .from = from,
                  .weights = {operand::b, rank_, 0, k},
                  .to = {operand::c, rank_, static_cast<std::int64_t>(row), 0},
                  .acquire = r,
                  .retire = k + 1 == depth ? r : room{}});
      }
    }
  }

  int world_;
  int rank_;
  int senders_;
  room_sets sets_;
  layout how_;
};

static_assert(protocol<exchange>);

/// The plans of all ranks.
inline std::vector<schedule::rank_plan> exchange_plans(int world, int senders, int sets, layout how,
                                                       std::uint64_t epochs = 3) {
  std::vector<schedule::rank_plan> plans;
  for (int rank = 0; rank < world; ++rank) {
    const exchange p(world, rank, senders, sets, how);
    plans.emplace_back(program(p), p.operands(), epochs);
  }
  return plans;
}

}  // namespace untax::test
