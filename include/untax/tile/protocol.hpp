#pragma once

#include <concepts>
#include <cstdint>

#include <untax/tile/step.hpp>

namespace untax {

/// Ignores steps. In the concept `protocol` it stands for any consumer of a program.
struct step_sink {
  constexpr void operator()(const step&) const noexcept {}
};

/// The rows and columns of a symmetric matrix of an operator; every rank has one of this size.
struct extent {
  std::int64_t rows = 0;
  std::int64_t cols = 0;

  [[nodiscard]] constexpr std::int64_t elements() const noexcept { return rows * cols; }
};

/// A protocol describes for one rank the transfers, their order, the signals between ranks, and the
/// reuse of rooms. It is a pure description without state or side effects: equal calls have equal
/// results.
///
/// * `kernels()`, `kernel_at(i)`: the kernels of a run;
/// * `program(i, worker, epoch, emit)`: calls `emit(step)` for each step of a worker of kernel i,
///   in order;
/// * `counters()`: the number of counters of a rank; all indices of rooms are below it;
/// * `inbox()`, `outbox()`: the sizes of the matrices of the operator, in elements, with all room
///   sets;
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
