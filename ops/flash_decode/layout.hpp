#pragma once

#include <cstdint>

#include <untax/ops/flash_decode_problem.hpp>
#include <untax/tile/barrier_steps.hpp>
#include <untax/tile/counter_layout.hpp>
#include <untax/tile/order.hpp>
#include <untax/tile/protocol.hpp>

#include "ops/attention_common/partial_exchange.hpp"

namespace untax {

/// The places of partial results, and the counters that guard them. An item is the work of one head
/// of the keys of one sequence: its group of query heads, `group()` rows of q and of the result.
class flash_decode_layout {
 public:
  constexpr flash_decode_layout(const flash_decode_problem& problem, const flash_decode_plan& plan)
      : problem_(problem), plan_(plan) {
    counter_layout layout;
    exchange_ = {layout, plan.rank, plan.world, items(), width(), !is_bulk(plan.how)};
    attended_ = layout.take(1, items(), plan.splits);
    merged_ = layout.take(1, items(), 1);
    barrier_ = {plan.rank, plan.world, layout.take(1, plan.world, 1)};
    counters_ = layout.size();
  }

  [[nodiscard]] constexpr int rank() const noexcept { return plan_.rank; }
  [[nodiscard]] constexpr int world() const noexcept { return plan_.world; }
  [[nodiscard]] constexpr int counters() const noexcept { return counters_; }
  /// Partial results that ranks send: [set, item, source, query head].
  [[nodiscard]] constexpr extent inbox() const noexcept { return exchange_.inbox(group()); }
  /// Partial results of splits: [item, split, query head].
  [[nodiscard]] constexpr extent outbox() const noexcept {
    if (plan_.splits == 1) return {};
    return {items() * plan_.splits * group(), width()};
  }
  [[nodiscard]] static constexpr extent tile_extent() noexcept { return {1, 1}; }

 protected:
  [[nodiscard]] constexpr int items() const noexcept {
    return static_cast<int>(problem_.batch * problem_.kv_heads);
  }
  [[nodiscard]] constexpr std::int64_t group() const noexcept {
    return problem_.heads / problem_.kv_heads;
  }
  [[nodiscard]] constexpr std::int64_t width() const noexcept {
    return problem_.head_dim + attention_statistics;
  }
  [[nodiscard]] constexpr bool has_senders() const noexcept {
    return plan_.how == pattern::producer_consumer || plan_.how == pattern::fused_specialized;
  }
  /// The number of workers that send and combine partial results. Sender i mod senders() of a rank
  /// sends item i, and the sender of that number at another rank combines it.
  [[nodiscard]] constexpr int senders() const noexcept {
    return has_senders() ? plan_.senders : plan_.workers;
  }
  [[nodiscard]] constexpr int worker_of(int item, int split) const noexcept {
    return (item * plan_.splits + split) % plan_.workers;
  }

  [[nodiscard]] constexpr place queries(int item) const noexcept {
    return {operand::a, rank(), item * group(), 0};
  }
  [[nodiscard]] constexpr place result(int item) const noexcept {
    return {operand::c, rank(), item * group(), 0};
  }
  /// The place of the partial result of `source` at rank `at`.
  [[nodiscard]] constexpr place slot(int at, int item, int source,
                                     std::uint64_t epoch) const noexcept {
    return exchange_.slot(at, group(), item, source, epoch);
  }
  [[nodiscard]] constexpr place of_split(int item, int split) const noexcept {
    return {operand::outbox, rank(),
            (static_cast<std::int64_t>(item) * plan_.splits + split) * group(), 0};
  }

  /// Signals that a split was attended to; no room if no other worker waits for it.
  [[nodiscard]] constexpr room attended(int item, int split, std::uint64_t epoch) const noexcept {
    if (plan_.how == pattern::bulk_synchronous || plan_.splits == 1) return {};
    if (worker_of(item, split) == item % plan_.workers) return {};
    return flag(attended_.at(0, item, split), epoch);
  }
  /// Signals that this rank's partial result of an item is complete, if there are senders.
  [[nodiscard]] constexpr room merged(int item, std::uint64_t epoch) const noexcept {
    return has_senders() ? flag(merged_.at(0, item), epoch) : room{};
  }

  flash_decode_problem problem_;
  flash_decode_plan plan_;
  partial_exchange exchange_;
  barrier_steps barrier_;

 private:
  /// Within a rank the end of the run orders the next use.
  [[nodiscard]] constexpr room flag(int index, std::uint64_t epoch) const noexcept {
    return {.producer = rank(), .consumer = rank(), .number = index, .ready = index, .use = epoch};
  }

  counter_block attended_;
  counter_block merged_;
  int counters_ = 0;
};

}  // namespace untax
