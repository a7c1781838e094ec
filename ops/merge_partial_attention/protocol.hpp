#pragma once

#include <algorithm>
#include <cstdint>

#include <untax/ops/merge_partial_attention.hpp>
#include <untax/tile/barrier_steps.hpp>

#include "ops/attention_common/partial_exchange.hpp"

namespace untax {

/// Exchanges and merges partial results in a, elements and statistics side by side. An item is one
/// token: each rank sends every other rank the heads that the receiver merges. Results have the
/// same layout in c as partial results in a. README.md in this folder has a drawing.
class merge_partial_attention_protocol {
 public:
  constexpr merge_partial_attention_protocol(const merge_partial_attention_problem& problem,
                                             const merge_partial_attention_plan& plan)
      : problem_(problem), plan_(plan) {
    counter_layout layout;
    exchange_ = {layout, plan.rank, plan.world, items(), width(), !is_bulk(plan.how)};
    barrier_ = {plan.rank, plan.world, layout.take(1, plan.world, 1)};
    counters_ = layout.size();
  }

  [[nodiscard]] constexpr int rank() const noexcept { return plan_.rank; }
  [[nodiscard]] constexpr int world() const noexcept { return plan_.world; }
  [[nodiscard]] constexpr int counters() const noexcept { return counters_; }
  [[nodiscard]] constexpr extent inbox() const noexcept { return exchange_.inbox(most_heads()); }
  /// Merged partial results: [token, head].
  [[nodiscard]] constexpr extent outbox() const noexcept {
    return {items() * most_heads(), width()};
  }
  [[nodiscard]] static constexpr extent tile_extent() noexcept { return {1, 1}; }

  [[nodiscard]] constexpr int kernels() const noexcept { return is_bulk(plan_.how) ? 3 : 1; }
  [[nodiscard]] constexpr kernel kernel_at(int i) const noexcept {
    if (is_bulk(plan_.how)) {
      return i == 0   ? kernel{"send", 0, plan_.workers}
             : i == 1 ? kernel{"barrier", 1, 1}
                      : kernel{"merge", 2, plan_.workers};
    }
    return {"merge_partial_attention", 0, plan_.workers + senders_beside()};
  }

  template <class Emit>
  constexpr void program(int kernel_index, int worker, std::uint64_t epoch, Emit&& emit) const {
    switch (plan_.how) {
      case pattern::bulk_synchronous:
        if (kernel_index == 0) send({worker, plan_.workers}, epoch, emit);
        if (kernel_index == 1) barrier_.program(epoch, emit);
        if (kernel_index == 2) merge(worker, epoch, emit);
        return;
      case pattern::fused_sequential:
        send({worker, plan_.workers}, epoch, emit);
        merge(worker, epoch, emit);
        return;
      default:
        if (worker < plan_.senders) {
          send({worker, plan_.senders}, epoch, emit);
        } else {
          merge(worker - plan_.senders, epoch, emit);
        }
    }
  }

 private:
  [[nodiscard]] constexpr int items() const noexcept { return static_cast<int>(problem_.tokens); }
  [[nodiscard]] constexpr std::int64_t width() const noexcept {
    return problem_.head_dim + attention_statistics;
  }
  [[nodiscard]] constexpr range heads_of(int rank) const noexcept {
    if (problem_.get == merged_heads::all) return {0, problem_.heads};
    return sharding{problem_.heads, world()}.of(rank);
  }
  [[nodiscard]] constexpr std::int64_t most_heads() const noexcept { return heads_of(0).size; }
  [[nodiscard]] constexpr int senders_beside() const noexcept {
    return plan_.how == pattern::fused_specialized ? plan_.senders : 0;
  }

  /// This rank's part of a token for `peer`.
  [[nodiscard]] constexpr partial_exchange::part part_for(int peer, int token) const noexcept {
    const range heads = heads_of(peer);
    return {{operand::a, rank(), token * problem_.heads + heads.begin, 0}, heads.size};
  }

  template <class Emit>
  constexpr void send(strided share, std::uint64_t epoch, Emit&& emit) const {
    share.each(items(), [&](int token) {
      exchange_.push(
          token, epoch, [&](int peer) { return part_for(peer, token); }, emit);
    });
  }

  /// The rank's own part is copied beside the parts of its peers, so that all are merged in the
  /// same way.
  template <class Emit>
  constexpr void merge(int worker, std::uint64_t epoch, Emit&& emit) const {
    strided{worker, plan_.workers}.each(items(), [&](int token) {
      const partial_exchange::part own = part_for(rank(), token);
      if (own.rows > 0) {
        emit(step{.what = action::copy,
                  .rows = own.rows,
                  .cols = width(),
                  .from = own.from,
                  .to = exchange_.slot(rank(), own.rows, token, rank(), epoch)});
      }
      exchange_.await(token, epoch, emit);
      if (own.rows == 0) return;
      const place merged{operand::outbox, rank(), token * own.rows, 0};
      exchange_.merge(token, own.rows, merged, epoch, emit);
      emit(step{.what = action::copy,
                .rows = own.rows,
                .cols = width(),
                .from = merged,
                .to = {operand::c, rank(), token * own.rows, 0}});
    });
  }

  merge_partial_attention_problem problem_;
  merge_partial_attention_plan plan_;
  partial_exchange exchange_;
  barrier_steps barrier_;
  int counters_ = 0;
};

static_assert(protocol<merge_partial_attention_protocol>);

}  // namespace untax
