#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/flow/room.hpp>
#include <untax/ops/collective_problems.hpp>
#include <untax/tile/counter_layout.hpp>
#include <untax/tile/order.hpp>
#include <untax/tile/protocol.hpp>

#include "ops/collectives_common/inner_shares.hpp"

namespace untax {

/// The common part of the protocols of collectives between the callers' own memory. There are no
/// rooms: flags alone order accesses, with a counter for each (kind, lane, from, to). Every flag
/// that is raised is waited for in the same epoch, so that nothing arrives after the end of a run.
///
/// Worker l of each rank, its lane, has the l-th span of each range, and exchanges data with lane l
/// of peers only. Data that stays at a rank is copied by further workers, its keepers, if there are
/// any: while stores of a multiprocessor to peers wait for the link, its other stores wait, too.
class direct_layout {
 public:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int rank() const noexcept { return plan_.rank; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int world() const noexcept { return plan_.world; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int counters() const noexcept { return counters_; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr extent inbox() const noexcept { return {}; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr extent outbox() const noexcept { return {}; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr extent tile_extent() const noexcept { return {}; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int kernels() const noexcept { return 1; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr kernel kernel_at(int /*i*/) const noexcept {
    return {"direct", 0, plan_.workers + plan_.keepers};
  }

 protected:
  /// `first`: permission, before any access. `second`: the accesses have ended.
  enum flag_kind : int { first, second, kinds };

  UNTAX_HOST_DEVICE constexpr explicit direct_layout(const collective_plan& plan) noexcept
      : plan_(plan) {
    counter_layout layout;
    flags_ = layout.take(kinds, plan.workers, plan.world);
    counters_ = layout.size();
  }

  /// The length of spans of a range. It is kept, since most ranges have the same size and divisions
  /// are slow in kernels.
  struct span {
    std::int64_t of = -1;  ///< size of the range
    std::int64_t size = 0;
  };

  /// The span of a range for a lane. Spans have equal length, and begin at cache lines, or at
  /// vectors if chunks are smaller than cache lines.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr range share_of(const range& whole, int lane,
                                                           span& known) const noexcept {
    if (known.of != whole.size) known = {whole.size, span_for(whole.size, plan_.workers)};
    return span_of(whole, lane, known.size);
  }
  /// The length of spans if a range of `size` elements is split into `parts`.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t span_for(std::int64_t size,
                                                                  int parts) const noexcept {
    const std::int64_t full = ceil_div<std::int64_t>(size, parts);
    return round_up<std::int64_t>(full, smaller(plan_.chunk, full < 1024 ? 8 : line_elements));
  }
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr range span_of(const range& whole, int i,
                                                                 std::int64_t size) noexcept {
    const std::int64_t begin = smaller(whole.size, i * size);
    return {whole.begin + begin, smaller(size, whole.size - begin)};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr pieces chunks_of(const range& share) const noexcept {
    return {share, plan_.chunk};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int lanes() const noexcept { return plan_.workers; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool has_keepers() const noexcept {
    return plan_.keepers > 0;
  }
  /// Whether a worker is a keeper rather than a lane.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool keeps(int worker) const noexcept {
    return worker >= plan_.workers;
  }
  /// The span of a range for a keeper.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr range kept_by(int worker,
                                                          const range& whole) const noexcept {
    return span_of(whole, worker - plan_.workers, span_for(whole.size, plan_.keepers));
  }
  UNTAX_CALLS_ANY_SIDE
  template <class Visit>
  UNTAX_HOST_DEVICE constexpr void each_chunk(const range& share, Visit&& visit) const {
    for (std::int64_t at = share.begin; at < share.end(); at += plan_.chunk)
      visit(range{at, smaller(plan_.chunk, share.end() - at)});
  }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr room flag(flag_kind kind, int lane, int from, int to,
                                                      std::uint64_t use) const noexcept {
    const int index = flags_.at(kind, lane, from);
    return {.producer = from, .consumer = to, .number = index, .ready = index, .use = use};
  }

  /// The i-th of `count` hops. Each lane begins at another hop, so that the lanes of a rank use all
  /// of its links at the same time.
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr int turned(int i, int lane, int count) noexcept {
    return (i + lane) % count;
  }

  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE static constexpr void copy(const place& from, const place& to,
                                               std::int64_t size, const room& acquire,
                                               const room& publish, Emit&& emit) {
    emit(step{.what = action::copy,
              .rows = 1,
              .cols = size,
              .from = from,
              .to = to,
              .acquire = acquire,
              .publish = publish});
  }

 private:
  collective_plan plan_;
  counter_block flags_;
  int counters_ = 0;
};

}  // namespace untax
