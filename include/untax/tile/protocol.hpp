#pragma once

#include <concepts>
#include <cstdint>

#include <untax/tile/step.hpp>

namespace untax {

/// Swallows steps; stands for any consumer of a program in the concept below.
struct step_sink {
  constexpr void operator()(const step&) const noexcept {}
};

/// Rows and columns of an operator-owned symmetric matrix; every rank has one of this size.
struct extent {
  std::int64_t rows = 0;
  std::int64_t cols = 0;

  [[nodiscard]] constexpr std::int64_t elements() const noexcept { return rows * cols; }
};

/// A protocol says what moves where, in which order, who signals whom and when room is reused, for
/// one rank. It is a pure description: no state, no side effects, the same answer for the same
/// question.
///
/// * `kernels()`, `kernel_at(i)`: what is launched;
/// * `program(i, worker, epoch, emit)`: calls `emit(step)` for each step of a worker of kernel i,
/// in order;
/// * `counters()`: how many counters a rank needs; all indices of rooms are below it;
/// * `inbox()`, `outbox()`: sizes of the operator-owned matrices, in elements, all room sets
/// included;
/// * `tile_extent()`: the largest rectangle that a worker accumulates.
template <class P>
concept protocol = requires(const P& p, int i, int worker, std::uint64_t epoch, step_sink sink) {
  { p.rank() } -> std::convertible_to<int>;
  { p.world() } -> std::convertible_to<int>;
  { p.kernels() } -> std::convertible_to<int>;
  { p.kernel_at(i) } -> std::convertible_to<kernel>;
  p.program(i, worker, epoch, sink);
  { p.counters() } -> std::convertible_to<int>;
  { p.inbox() } -> std::convertible_to<extent>;
  { p.outbox() } -> std::convertible_to<extent>;
  { p.tile_extent() } -> std::convertible_to<extent>;
};

}  // namespace untax
