#pragma once

#include <cstdint>

#include <untax/ops/all_reduce_norm.hpp>

#include "ops/common/summing_layout.hpp"

namespace untax {

/// Rows go to the ranks that add them: to all (one phase), or to their owner (two phases). A rank
/// that has added rows also adds the residual and normalises them. An owner writes both results to
/// all ranks.
///
/// For the checkers c has both results side by side: the first `hidden` columns are x.
class all_reduce_norm_protocol : public summing_layout {
 public:
  /// Tiles of the plan are whole rows.
  constexpr all_reduce_norm_protocol(const all_reduce_norm_problem& problem,
                                     const protocol_plan& plan)
      : summing_layout({problem.tokens, problem.hidden}, reduce_target::everywhere, plan,
                       plan.workers) {}

  [[nodiscard]] constexpr extent outbox() const noexcept { return {}; }
  [[nodiscard]] constexpr extent tile_extent() const noexcept {
    return {plan_.tile_m, result_.cols};
  }

  [[nodiscard]] constexpr int kernels() const noexcept {
    return !is_bulk(plan_.how) ? 1 : passes_on() ? 4 : 3;
  }
  [[nodiscard]] constexpr kernel kernel_at(int i) const noexcept {
    if (is_bulk(plan_.how)) {
      if (i % 2 == 1) return {"barrier", i, 1};
      return i == 0 ? kernel{"send", 0, plan_.senders} : kernel{"reduce", 2, plan_.workers};
    }
    const bool apart = plan_.how == pattern::fused_specialized;
    return {"all_reduce_norm", 0, plan_.workers + (apart ? plan_.senders : 0)};
  }

  template <class Emit>
  constexpr void program(int kernel_index, int worker, std::uint64_t epoch, Emit&& emit) const {
    switch (plan_.how) {
      case pattern::bulk_synchronous:
        if (kernel_index == 0) send({worker, plan_.senders}, epoch, emit);
        if (kernel_index == 1) barrier_.program(epoch, emit);
        if (kernel_index == 2) reduce(worker, epoch, emit);
        if (kernel_index == 3) closing_.program(epoch, emit);
        return;
      case pattern::fused_sequential:
        send({worker, plan_.workers}, epoch, emit);
        reduce(worker, epoch, emit);
        break;
      default:
        if (worker >= plan_.workers)
          return send({worker - plan_.workers, plan_.senders}, epoch, emit);
        reduce(worker, epoch, emit);
    }
    if (passes_on()) close(worker, epoch, emit);
  }

 private:
  /// Sends rows of the rank's input to the ranks that add them, the next rank first.
  template <class Emit>
  constexpr void send(strided share, std::uint64_t epoch, Emit&& emit) const {
    each_peer([&](int owner) {
      share.each(tiles_of(owner).count(), [&](int tile) {
        const range rows = rows_of(owner, tile);
        emit(step{.what = action::copy,
                  .rows = rows.size,
                  .cols = result_.cols,
                  .from = {operand::a, rank(), rows.begin, 0},
                  .to = in_inbox(rank(), owner, tile, epoch),
                  .publish = slab(rank(), owner, epoch, tile)});
      });
    });
  }

  template <class Emit>
  constexpr void reduce(int worker, std::uint64_t epoch, Emit&& emit) const {
    strided{worker, plan_.workers}.each(tiles_of(rank()).count(), [&](int tile) {
      const range rows = rows_of(rank(), tile);
      add_all(tile, {operand::a, rank(), rows.begin, 0}, epoch, emit);
      emit(step{.what = action::normalise,
                .rows = rows.size,
                .cols = result_.cols,
                .depth = world(),
                .from = {operand::sum, rank(), 0, 0},
                .to = {operand::c, rank(), rows.begin, 0},
                .everywhere = passes_on()});
    });
  }
};

static_assert(protocol<all_reduce_norm_protocol>);

}  // namespace untax
