// The symmetric heap: one allocation, the same offset at every rank, and an address for each copy.
// docs/tutorials/01-symmetric-heap.md explains it.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <untax/untax.hpp>

namespace {

void expect(bool holds, const char* what) {
  if (!holds) throw untax::error(untax::errc::internal, std::string("wrong: ") + what);
}

/// The value of element `i` at rank `rank`.
std::int64_t value_of(int rank, std::size_t i) {
  return rank * 100 + static_cast<std::int64_t>(i * i);
}

void tour(untax::world& world) {
  constexpr std::size_t width = 8;
  const int right = (world.rank() + 1) % world.size();

  // Collective: every rank allocates the same, in the same order, and no rank waits.
  const auto squares = world.allocate<std::int64_t>(width, "squares");
  for (std::size_t i = 0; i < width; ++i) *squares.local(i) = value_of(world.rank(), i);
  world.barrier();

  // The copy at another rank has an address of its own.
  std::vector<std::int64_t> seen(width);
  untax::block block(world);
  untax::get(block, seen.data(), squares.at(right), width);
  for (std::size_t i = 0; i < width; ++i)
    expect(seen[i] == value_of(right, i), "the neighbour's squares");

  // Any address in the heap can be translated, also into the middle of an allocation.
  std::int64_t* const fourth = world.translate(squares.local(3), right);
  expect(fourth == squares.at(right, 3), "translate and at give the same address");
  expect(world.owner_of(fourth) == right, "the owner of the translated address");

  // Memory that is not symmetric is refused.
  std::int64_t local = 0;
  try {
    static_cast<void>(world.translate(&local, right));
    expect(false, "an address on the stack has no copy elsewhere");
  } catch (const untax::error& e) {
    expect(e.code() == untax::errc::not_symmetric, "the error says not_symmetric");
  }

  // The heap can say what lies in it; memory that was given back is used again.
  if (world.rank() == 0) std::printf("%s\n", world.heap().report().c_str());
  const std::size_t used = world.heap().used();
  world.barrier();  // no rank reads the squares any more
  world.free(squares);
  expect(world.heap().used() < used, "the squares were given back");
  if (world.rank() == 0) std::printf("every rank read its neighbour's copy\n");
}

}  // namespace

int main() {
  try {
    untax::world_options options;
    options.heap_bytes = std::size_t{1} << 20;
    untax::run_threads(4, tour, options);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
