// The end of operators of GPUs: no rank goes on before all have freed their memory, unless the
// world is stopped or an exception leaves.
#include "engines/gpu/launch/common_end.hpp"

#include <atomic>
#include <cstdint>
#include <stdexcept>

#include <gtest/gtest.h>

#include <untax/world/launch.hpp>

namespace {

using untax::errc;
using untax::run_threads;
using untax::world;
using untax::gpu::common_end;

/// Has a `common_end` as operators have it: its destructor comes after that of `memory`.
struct owner {
  struct counted {
    std::atomic<int>& freed;
    explicit counted(std::atomic<int>& count) : freed(count) {}
    counted(const counted&) = delete;
    counted& operator=(const counted&) = delete;
    ~counted() { ++freed; }
  };
  owner(world& w, std::atomic<int>& freed) : end(w), memory(freed) {}
  common_end end;
  counted memory;
};

TEST(common_end, waits_until_all_ranks_have_freed_their_memory) {
  constexpr int ranks = 3;
  std::atomic<int> freed = 0;
  run_threads(ranks, [&](world& w) {
    { const owner op(w, freed); }
    EXPECT_EQ(freed, ranks);
  });
}

TEST(common_end, does_not_wait_while_an_exception_leaves) {
  std::atomic<int> freed = 0;
  run_threads(2, [&](world& w) {
    const std::uint64_t before = w.state().posted(w.rank());
    try {
      const owner op(w, freed);
      throw std::runtime_error("enough");
    } catch (const std::runtime_error&) {
    }
    EXPECT_EQ(w.state().posted(w.rank()), before) << "no barrier was entered";
  });
  EXPECT_EQ(freed, 2);
}

TEST(common_end, does_not_wait_in_a_stopped_world) {
  std::atomic<int> freed = 0;
  run_threads(2, [&](world& w) {
    const std::uint64_t before = w.state().posted(w.rank());
    {
      const owner op(w, freed);
      w.fail(errc::aborted, "stopped by a test");
    }
    EXPECT_EQ(w.state().posted(w.rank()), before) << "no barrier was entered";
  });
  EXPECT_EQ(freed, 2);
}

}  // namespace
