// A two-rank pipeline by hand: rank 0 makes tiles, rank 1 uses them, through two rooms and four
// verbs. docs/tutorials/03-tile-pipeline.md explains it.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <untax/untax.hpp>

namespace {

constexpr int producer = 0;
constexpr int consumer = 1;
constexpr std::int64_t tile_rows = 32;
constexpr std::int64_t tile_cols = 48;
constexpr int tiles = 200;
constexpr const char* name = "tile pipeline";

/// The protocol: which room tile `t` goes through, and which counters guard it. Pure description.
struct pipeline {
  static constexpr untax::room_sets rooms{.sets = 2};
  static constexpr int counters = 4;  // at each rank: ready and free of two rooms

  static untax::room room_of(int tile) {
    const auto use = static_cast<std::uint64_t>(tile + 1);  // counted from 1, as epochs are
    const int number = rooms.set_of(use);
    untax::room r;
    r.producer = producer;
    r.consumer = consumer;
    r.number = number;
    r.ready = number;     // at the consumer: raised by publish, awaited by acquire
    r.free = 2 + number;  // at the producer: raised by retire, awaited by reserve
    r.use = rooms.use_of(use);
    return r;
  }
};

/// Finds a counter of any rank.
struct counter_table {
  untax::symmetric<std::uint64_t> counters;
  std::uint64_t& at(int rank, int index) const {
    return *counters.at(rank, static_cast<std::size_t>(index));
  }
};

using tile = untax::tile_view<float>;

float element(int number, std::int64_t row, std::int64_t col) {
  return static_cast<float>((number + 1) * (row - col));
}

void make(const tile& made, int number) {
  for (std::int64_t row = 0; row < made.rows; ++row) {
    for (std::int64_t col = 0; col < made.cols; ++col)
      *made.at(row, col) = element(number, row, col);
  }
}

void use(const tile& used, int number) {
  for (std::int64_t row = 0; row < used.rows; ++row) {
    for (std::int64_t col = 0; col < used.cols; ++col) {
      if (*used.at(row, col) == element(number, row, col)) continue;
      throw untax::error(untax::errc::internal, "tile " + std::to_string(number) + " is wrong");
    }
  }
}

void run(untax::world& world) {
  untax::block block(world);
  const auto inbox = world.allocate_cleared<float>(2 * tile_rows * tile_cols, "inbox");
  const counter_table counters{
      world.allocate_cleared<std::uint64_t>(pipeline::counters, "counters")};
  untax::channel<untax::host_memory, counter_table, untax::watch> channel(name, counters,
                                                                          block.guard());

  // Every verb that waits can fail: the peer may be gone, or too slow.
  const auto check = [&](untax::wait_outcome outcome) {
    if (outcome != untax::wait_outcome::ok) world.throw_failure(outcome, name);
  };
  // The room's tile in the consumer's memory.
  const auto place_of = [&](const untax::room& room) {
    return tile(inbox.at(consumer) + room.number * tile_rows * tile_cols, tile_rows, tile_cols);
  };

  if (world.rank() == producer) {
    std::vector<float> elements(tile_rows * tile_cols);
    const tile made(elements.data(), tile_rows, tile_cols);
    for (int t = 0; t < tiles; ++t) {
      make(made, t);  // needs no room, so it overlaps with the use of the tile before
      const untax::room room = pipeline::room_of(t);
      check(channel.reserve(room));
      untax::copy(block, place_of(room), made);
      channel.publish(room);
    }
  } else {
    for (int t = 0; t < tiles; ++t) {
      const untax::room room = pipeline::room_of(t);
      check(channel.acquire(room));
      use(place_of(room), t);
      channel.retire(room, 0);
    }
    std::printf("%d tiles went through two rooms, all of them right\n", tiles);
  }
}

}  // namespace

int main() {
  try {
    untax::run_threads(2, run);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
