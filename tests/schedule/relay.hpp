#pragma once

#include <cstdint>
#include <vector>

#include <untax/tile/protocol.hpp>

#include "engines/schedule/plan.hpp"

namespace untax::test {

/// The rank that sends to rank 2, in each of two epochs.
struct relay_senders {
  int first = 0;
  int second = 1;

  [[nodiscard]] constexpr int of(std::uint64_t epoch) const { return epoch == 1 ? first : second; }
};

/// Ranks 0 and 1 take turns at a room of rank 2, and raise the same counter for it. If it
/// `hands_over`, the first sender tells the second one that it has sent, before that one sends.
class relay {
 public:
  constexpr relay(int rank, relay_senders senders, bool hands_over)
      : rank_(rank), senders_(senders), hands_over_(hands_over) {}

  [[nodiscard]] constexpr int rank() const { return rank_; }
  [[nodiscard]] static constexpr int world() { return 3; }
  [[nodiscard]] static constexpr int counters() { return 2; }
  [[nodiscard]] static constexpr int kernels() { return 1; }
  [[nodiscard]] static constexpr kernel kernel_at(int) { return {"relay", 0, 1}; }
  [[nodiscard]] static constexpr extent inbox() { return {2, 1}; }
  [[nodiscard]] static constexpr extent outbox() { return {}; }
  [[nodiscard]] static constexpr extent tile_extent() { return {1, 1}; }

  template <class Emit>
  constexpr void program(int, int, std::uint64_t epoch, Emit&& emit) const {
    const int sender = senders_.of(epoch);
    const room filled{
        .producer = sender, .consumer = 2, .number = 0, .ready = 0, .free = -1, .use = epoch};
    const room handed_over{.producer = senders_.first,
                           .consumer = senders_.second,
                           .number = 1,
                           .ready = 1,
                           .free = -1,
                           .use = 1};
    const place at{operand::inbox, 2, static_cast<std::int64_t>(epoch) - 1, 0};
    if (hands_over_ && epoch == 2 && rank_ == sender) emit(step{.acquire = handed_over});
    if (rank_ == sender) {
      emit(step{.what = action::copy,
                .rows = 1,
                .cols = 1,
                .from = {operand::a, rank_, 0, 0},
                .to = at,
                .publish = filled});
    }
    if (hands_over_ && epoch == 1 && rank_ == sender) emit(step{.publish = handed_over});
    if (rank_ == 2) {
      emit(step{.what = action::copy,
                .rows = 1,
                .cols = 1,
                .from = at,
                .to = {operand::c, 2, 0, 0},
                .acquire = filled});
    }
  }

 private:
  int rank_;
  relay_senders senders_;
  bool hands_over_;
};

static_assert(protocol<relay>);

/// The plans of all ranks.
inline std::vector<schedule::rank_plan> relay_plans(relay_senders senders, bool hands_over) {
  std::vector<schedule::rank_plan> plans;
  for (int rank = 0; rank < relay::world(); ++rank) {
    const extent result{rank == 2 ? 1 : 0, 1};
    plans.emplace_back(program(relay(rank, senders, hands_over)),
                       schedule::operand_extents{{1, 1}, {}, result}, 2,
                       std::vector<extent>(2, result));
  }
  return plans;
}

}  // namespace untax::test
