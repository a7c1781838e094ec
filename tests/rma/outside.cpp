// Where heaps have guards, verbs refuse what does not lie in one allocation of any rank.
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <untax/rma/atomic.hpp>
#include <untax/rma/copy.hpp>
#include <untax/rma/signal.hpp>
#include <untax/world/block.hpp>
#include <untax/world/launch.hpp>

#include "tests/errors.hpp"

namespace {

using untax::block;
using untax::errc;
using untax::tile_view;
using untax::world;
using untax_test::error_of;
using untax_test::expect_error;

constexpr std::int64_t count = 100;

void in_a_world(bool guards, const std::function<void(world&)>& body) {
  untax::world_options options;
  options.heap_bytes = std::size_t{1} << 20;
  options.heap_guards = guards;
  untax::run_threads(2, body, options);
}

/// One allocation between two others, and this rank's own memory.
struct memory {
  explicit memory(world& w)
      : before(w.allocate<float>(count, "before")),
        landing(w.allocate<float>(count, "landing")),
        after(w.allocate<float>(count, "after")),
        peer(1 - w.rank()) {}

  untax::symmetric<float> before, landing, after;
  int peer;
  std::vector<float> own = std::vector<float>(4 * count);
};

TEST(outside, a_single_heap_with_guards_is_enough) {
  untax::world_options options;
  options.heap_bytes = std::size_t{1} << 20;
  options.heap_guards = true;
  untax::run_threads(
      1,
      [](world& w) {
        const auto landing = w.allocate<float>(count, "landing");
        const std::vector<float> own(count + 1);
        EXPECT_EQ(landing.at(0, count), landing.local(count));
        expect_error(error_of([&] { (void)landing.at(1); }), errc::invalid_argument, {"no rank 1"});
        expect_error(error_of([&] { (void)landing.at(-1); }), errc::invalid_argument,
                     {"no rank -1"});
        expect_error(error_of([&] { (void)landing.at(0, count + 1); }), errc::invalid_argument,
                     {"element 101 of rank 0", "has 100"});
        expect_error(error_of([&] { put(block(w), landing.local(), own.data(), count + 1); }),
                     errc::invalid_argument, {"4 bytes past the end of \"landing\""});
      },
      options);
}

TEST(outside, puts_and_gets_past_the_end_are_refused_where_guards_are_on) {
  in_a_world(true, [](world& w) {
    memory m(w);
    const block me(w);
    float* const landing = m.landing.at(m.peer);
    put(me, landing, m.own.data(), count);
    get(me, m.own.data(), landing, count);
    put(me, m.landing.at(m.peer, 1), m.own.data(), count - 1);
    put(me, m.landing.at(m.peer, count), m.own.data(), 0);
    const std::vector<std::string> past = {"reaches 4 bytes past the end of \"landing\" of rank " +
                                           std::to_string(m.peer) + " (400 bytes)"};
    expect_error(error_of([&] { put(me, landing, m.own.data(), count + 1); }),
                 errc::invalid_argument, past);
    expect_error(error_of([&] { get(me, m.own.data(), landing, count + 1); }),
                 errc::invalid_argument, past);
    expect_error(error_of([&] { copy(me, m.own.data(), landing + 1, count); }),
                 errc::invalid_argument, past);
    expect_error(error_of([&] { put(me, landing - 1, m.own.data(), count); }),
                 errc::invalid_argument, {"destination", "where nothing is allocated"});
    expect_error(error_of([&] { put(me, m.landing.local() + count, m.own.data(), 1); }),
                 errc::invalid_argument, {"4 bytes past the end", std::to_string(w.rank())});
    w.barrier();
  });
}

TEST(outside, tiles_past_the_end_are_refused_where_guards_are_on) {
  in_a_world(true, [](world& w) {
    memory m(w);
    const block me(w);
    const auto tile = [&](std::int64_t rows) {
      return tile_view<float>(m.landing.at(m.peer), rows, 10, 20);
    };
    const auto mine = [&](std::int64_t rows) {
      return tile_view<const float>(m.own.data(), rows, 10);
    };
    copy(me, tile(5), mine(5));
    EXPECT_NO_THROW(copy(me, tile(0), mine(0))) << "nothing reaches nowhere";
    expect_error(error_of([&] { copy(me, tile(6), mine(6)); }), errc::invalid_argument,
                 {"destination tile", "past the end of \"landing\""});
    copy(me, tile(6), mine(6), untax::tile_bounds{5, 10});
    copy(me, tile(6), mine(6), [](std::int64_t row, std::int64_t) { return row < 5; });
    expect_error(error_of([&] {
                   copy(me, tile(6), mine(6), [](std::int64_t, std::int64_t) { return true; });
                 }),
                 errc::invalid_argument, {"element of the destination"});
    w.barrier();
  });
}

TEST(outside, signals_and_atomics_past_the_end_are_refused_where_guards_are_on) {
  in_a_world(true, [](world& w) {
    const auto counters = w.allocate_cleared<std::uint64_t>(2, "counters");
    const block me(w);
    std::uint64_t* const last = counters.at(1 - w.rank(), 1);
    signal(me, last, 1);
    signal_add(me, last, 1);
    (void)untax::atomic_add(last, 1);
    (void)untax::load(last);
    const auto expect_refused = [](const std::function<void()>& call) {
      expect_error(error_of(call), errc::invalid_argument,
                   {"8 bytes past the end of \"counters\""});
    };
    expect_refused([&] { signal(me, last + 1, 1); });
    expect_refused([&] { signal_add(me, last + 1, 1); });
    expect_refused([&] { (void)untax::atomic_add(last + 1, 1); });
    expect_refused([&] { (void)untax::load(last + 1); });
    expect_refused([&] { untax::store(last + 1, 1); });
    w.barrier();
  });
}

TEST(outside, memory_that_was_freed_is_refused) {
  in_a_world(true, [](world& w) {
    memory m(w);
    const block me(w);
    w.barrier();
    w.free(m.landing);
    w.barrier();
    expect_error(error_of([&] { put(me, m.landing.at(m.peer), m.own.data(), 1); }),
                 errc::invalid_argument, {"where nothing is allocated"});
    w.barrier();
  });
}

TEST(outside, unknown_ranks_and_elements_are_refused) {
  in_a_world(true, [](world& w) {
    const auto memory = w.allocate<int>(10, "memory");
    for (const int rank : {-1, 2, 1 << 30}) {
      expect_error(
          error_of([&] { (void)memory.at(rank); }), errc::invalid_argument,
          {"rank " + std::to_string(w.rank()), "no rank " + std::to_string(rank), "0 to 1"});
    }
    EXPECT_EQ(memory.at(1, 10), memory.at(1) + 10);
    expect_error(error_of([&] { (void)memory.at(1, 11); }), errc::invalid_argument,
                 {"element 11 of rank 1", "has 10"});
  });
}

TEST(outside, nothing_is_checked_without_guards) {
  in_a_world(false, [](world& w) {
    memory m(w);
    const block me(w);
    if (w.rank() == 0) put(me, m.landing.at(1), m.own.data(), count + 20);
    EXPECT_EQ(m.landing.at(w.size()), m.landing.local() + (w.size() - w.rank()) * m.landing.span() /
                                                              static_cast<int>(sizeof(float)));
    w.barrier();
  });
}

}  // namespace
