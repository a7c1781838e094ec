// A ring of cells is distributed over four ranks and smoothed; in every step each rank puts its
// outer cells into its neighbours' memory. No barrier, no receive. docs/tutorials/02-put-signal.md
// explains it.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <vector>

#include <untax/untax.hpp>

namespace {

constexpr int ranks = 4;
constexpr std::size_t cells = 64;  // of each rank
constexpr std::uint64_t steps = 500;

float start_value(std::size_t cell) { return static_cast<float>(cell * 37 % 101); }
float smooth(float left, float middle, float right) {
  return 0.25F * left + 0.5F * middle + 0.25F * right;
}

/// The same without ranks, to compare with.
std::vector<float> reference() {
  constexpr std::size_t all = ranks * cells;
  std::vector<float> now(all);
  for (std::size_t i = 0; i < all; ++i) now[i] = start_value(i);
  for (std::uint64_t step = 0; step < steps; ++step) {
    const std::vector<float> old = now;
    for (std::size_t i = 0; i < all; ++i)
      now[i] = smooth(old[(i + all - 1) % all], old[i], old[(i + 1) % all]);
  }
  return now;
}

void smooth_ring(untax::world& world) {
  untax::block block(world);
  const int left = (world.rank() + ranks - 1) % ranks;
  const int right = (world.rank() + 1) % ranks;

  // Values from the left and the right neighbour: a cell each in two sets, and a signal each.
  const auto from_left = world.allocate_cleared<float>(2, "from left");
  const auto from_right = world.allocate_cleared<float>(2, "from right");
  const auto left_came = world.allocate_cleared<std::uint64_t>(1, "left came");
  const auto right_came = world.allocate_cleared<std::uint64_t>(1, "right came");

  const std::size_t first = static_cast<std::size_t>(world.rank()) * cells;
  std::vector<float> now(cells);
  for (std::size_t i = 0; i < cells; ++i) now[i] = start_value(first + i);

  for (std::uint64_t step = 1; step <= steps; ++step) {
    const std::size_t set = step % 2;
    // Write into the neighbours' memory; the signal says that the cell is there.
    untax::put_with_signal(block, from_right.at(left, set), &now.front(), 1, right_came.at(left),
                           step);
    untax::put_with_signal(block, from_left.at(right, set), &now.back(), 1, left_came.at(right),
                           step);

    // The inner cells need no neighbour; the neighbours' cells arrive meanwhile.
    std::vector<float> next(cells);
    for (std::size_t i = 1; i + 1 < cells; ++i) next[i] = smooth(now[i - 1], now[i], now[i + 1]);

    untax::wait_until(block, left_came.local(), step, {.name = "left", .peer = left});
    untax::wait_until(block, right_came.local(), step, {.name = "right", .peer = right});
    next.front() = smooth(*from_left.local(set), now[0], now[1]);
    next.back() = smooth(now[cells - 2], now[cells - 1], *from_right.local(set));
    now.swap(next);
  }

  const std::vector<float> wanted = reference();
  for (std::size_t i = 0; i < cells; ++i) {
    if (now[i] != wanted[first + i]) {
      throw untax::error(untax::errc::internal, "a cell differs from the reference");
    }
  }
  std::printf("rank %d: all of its %zu cells are right\n", world.rank(), cells);
}

}  // namespace

int main() {
  try {
    untax::run_threads(ranks, smooth_ring);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
