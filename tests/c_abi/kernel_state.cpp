// What kernels of another language need to reach peers, and to bound their waits.
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "support.hpp"

namespace {

using namespace c_test;

TEST(c_kernel_state, describes_the_world_of_the_rank) {
  run_ranks(3, [](untax_world* world, int rank) {
    void* memory = nullptr;
    ASSERT_EQ(untax_world_allocate(world, 64, "memory", &memory), untax_ok);
    untax_kernel_state state{};
    expect_failure(untax_world_kernel_state(world, &state), untax_invalid_argument,
                   {"size of untax_kernel_state"});
    state.size = sizeof state;
    ASSERT_EQ(untax_world_kernel_state(world, &state), untax_ok);
    EXPECT_EQ(state.rank, rank);
    EXPECT_EQ(state.ranks, 3);
    EXPECT_EQ(state.limit_ns, small_world().wait_limit_ms * 1'000'000);
    for (int peer = 0; peer < 3; ++peer) {
      void* address = nullptr;
      EXPECT_OK(untax_world_translate(world, memory, peer, &address));
      EXPECT_EQ(address, static_cast<std::byte*>(memory) + (peer - rank) * state.span);
    }
    EXPECT_OK(untax_world_barrier(world));  // before a rank ends, and its memory with it
    untax_kernel_state prefix{};
    prefix.size = offsetof(untax_kernel_state, span);
    EXPECT_OK(untax_world_kernel_state(world, &prefix));
    EXPECT_EQ(prefix.ranks, 3);
    EXPECT_EQ(prefix.span, 0);
  });
}

void store(void* words, std::size_t word, std::uint64_t value) {
  std::atomic_ref(static_cast<std::uint64_t*>(words)[word]).store(value);
}

TEST(c_kernel_state, a_wait_that_an_interpreted_kernel_gave_up_is_reported_by_any_rank) {
  constexpr std::uint64_t wait_until = 2;
  constexpr std::uint64_t slot = 3;
  untax_world* worlds[2];
  const untax_world_options options = small_world();
  ASSERT_EQ(untax_world_threads(2, &options, worlds), untax_ok) << last_text();
  untax_kernel_state states[2]{};
  for (int rank = 0; rank < 2; ++rank) {
    states[rank].size = sizeof states[rank];
    EXPECT_OK(untax_world_kernel_state(worlds[rank], &states[rank]));
  }
  EXPECT_EQ(static_cast<std::byte*>(states[1].stop) - static_cast<std::byte*>(states[0].stop),
            states[0].stop_span);
  EXPECT_OK(untax_world_check(worlds[1]));

  // What a kernel of rank 0 writes, which waits for rank 1 in vain.
  void* const record = static_cast<std::byte*>(states[0].records) + slot * 64;
  store(record, 1, wait_until | 1U << 8U | std::uint64_t{0xffffffff} << 24U);
  store(record, 2, 7);
  store(record, 3, 5);
  store(record, 4, 0x656c6974);  // "tile"
  store(record, 0, 1);
  store(states[0].outcome, 0, 1 + static_cast<std::uint64_t>(states[0].first_slot) + slot);
  const std::string text = "waited 60000 ms for rank 1: tile wait_until, needs 7, has 5";
  expect_failure(untax_world_check(worlds[1]), untax_aborted, {"rank 0 reported", text});
  expect_failure(untax_world_check(worlds[0]), untax_timeout, {text, "Suspect: rank 1"});
  EXPECT_NE(*static_cast<std::uint64_t*>(states[0].host_stop), 0U);
  for (untax_world* world : worlds) EXPECT_OK(untax_world_destroy(world));
}

}  // namespace
