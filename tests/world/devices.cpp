// The host's part of worlds of GPUs, on arenas that only pretend to be in device memory: the test
// plays the kernels. tests/gpu has real ones.
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include <untax/memory/host_memory.hpp>
#include <untax/symmetric/heap.hpp>

#include "src/world/device_monitor.hpp"
#include "support.hpp"

namespace {

using namespace std::chrono_literals;
using untax::control;
using untax::errc;
using untax::host_memory;
using untax::rank_status;
using untax::segment;
using untax::segment_layout;
using untax::verb;
using world_test::error_of;
using world_test::expect_error;

class pretended_arenas final : public untax::device_arenas {
 public:
  explicit pretended_arenas(std::size_t bytes) : memory_(bytes) {}

  [[nodiscard]] std::byte* base() const noexcept override { return memory_.data(); }
  [[nodiscard]] int device_of(int rank) const noexcept override { return rank; }
  void use(int /*rank*/) const override {}
  void finish(int /*rank*/) const noexcept override {}
  void fill(int /*rank*/, std::byte* at, std::byte value, std::size_t bytes) const override {
    std::memset(at, std::to_integer<int>(value), bytes);
  }
  void read(int /*rank*/, std::byte* to, const std::byte* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
  bool send_word(int /*rank*/, std::uint64_t* to,
                 const std::uint64_t* from) const noexcept override {
    host_memory::raise_release(*to, host_memory::load_acquire(*from));
    return true;
  }
  [[nodiscard]] void* address_on_device(int /*rank*/, const void* host) const override {
    return const_cast<void*>(host);
  }
  [[nodiscard]] std::int64_t clock_offset(int /*rank*/) const noexcept override { return 0; }

 private:
  mutable std::vector<std::byte> memory_;
};

std::shared_ptr<segment> pretended_gpus(int ranks) {
  const segment_layout layout{ranks, control::bytes(ranks), 10000, untax::memory_kind::cuda, 8192};
  auto memory = std::make_shared<segment>(segment::anonymous(layout));
  memory->put_arenas(std::make_unique<pretended_arenas>(layout.all_arenas()));
  const control state(memory->control(), ranks);
  for (int rank = 0; rank < ranks; ++rank) state.set_status(rank, rank_status::running);
  return memory;
}

/// Writes the wait record of a kernel of `rank` that waits for `peer`.
int wait_in_kernel(const control& state, int rank, int peer) {
  const int slot = untax::first_kernel_slot + 3;
  state.publish_wait(rank, slot, {"never", verb::wait_until, peer, 7, 5}, 2, host_memory::now());
  return slot;
}

std::uint64_t stop_word(const segment& memory, int rank) {
  return host_memory::load_acquire(*memory.stop_word(rank));
}

TEST(devices, arenas_lie_side_by_side_with_a_stop_word_before_each) {
  const auto memory = pretended_gpus(3);
  EXPECT_EQ(memory->layout().arena_span(), 16384U);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(memory->arena(rank), memory->devices()->base() + 512 + 16384 * rank);
    EXPECT_EQ(memory->owner_of(memory->arena(rank), 10000), rank);
    EXPECT_EQ(memory->owner_of(memory->stop_word(rank)), -1) << "nobody may allocate it";
    EXPECT_EQ(stop_word(*memory, rank), 0U);
  }
  EXPECT_EQ(memory->translate(memory->arena(0) + 5, 2), memory->arena(2) + 5);
}

TEST(devices, arenas_that_grow_have_whole_pages_at_first) {
  segment_layout layout{2, 100, 100000, untax::memory_kind::cuda, 8192, 10000};
  EXPECT_EQ(layout.first_span(), 16384U);
  EXPECT_EQ(layout.first_arena(), 16384U - 512);
  EXPECT_EQ(layout.arena_span(), 106496U);
  layout.first_bytes = 100000;
  EXPECT_EQ(layout.first_span(), layout.arena_span());
  EXPECT_EQ(layout.first_arena(), 100000U);
  layout.first_bytes = 0;
  EXPECT_EQ(layout.first_arena(), 100000U) << "nothing is said of growth";
  const segment_layout on_host{2, 100, 100000};
  EXPECT_EQ(on_host.first_arena(), 100000U);
}

TEST(devices, arenas_go_where_their_segment_goes) {
  const auto memory = pretended_gpus(2);
  const auto* const arenas = memory->devices();
  segment moved = std::move(*memory);
  EXPECT_EQ(moved.devices(), arenas);
  EXPECT_EQ(memory->devices(), nullptr);
  segment other = segment::anonymous({3, 100, 5000});
  const std::byte* const control = other.control();
  const std::byte* const first = other.arena(0);
  other = std::move(moved);
  EXPECT_EQ(other.devices(), arenas);
  EXPECT_EQ(other.ranks(), 2);
  EXPECT_EQ(other.arena(1), arenas->base() + 512 + other.layout().arena_span());
  // `moved` holds the former segment of `other`, and ends it.
  EXPECT_EQ(moved.devices(), nullptr);
  EXPECT_EQ(moved.ranks(), 3);
  EXPECT_EQ(moved.control(), control);
  EXPECT_EQ(moved.arena(0), first);
}

TEST(devices, guards_work_without_following_addresses) {
  const auto memory = pretended_gpus(1);
  untax::symmetric_heap heap(*memory, 0, true);
  const auto field = heap.allocate<char>(5000, "field");
  heap.check();
  field.local()[5010] = 'x';
  expect_error(error_of([&] { heap.check(); }), errc::internal, {"\"field\"", "at byte 5010"});
}

TEST(devices, a_kernel_that_gave_up_stops_the_world) {
  const auto memory = pretended_gpus(3);
  const control state(memory->control(), 3);
  untax::device_monitor monitor(memory, {0, 1, 2}, 500ms, nullptr);
  monitor.settle(0);
  EXPECT_FALSE(state.stopped());
  wait_in_kernel(state, 0, 1);
  const int slot = wait_in_kernel(state, 1, 2);
  host_memory::raise_release(state.kernel_view(1).outcome[0], 1U + static_cast<unsigned>(slot));
  monitor.settle(0);
  ASSERT_TRUE(state.stopped());
  const auto report = state.report();
  EXPECT_EQ(report->reporter, 1);
  EXPECT_EQ(report->suspect, 2);
  expect_error({report->code, report->text}, errc::timeout,
               {"waited 500 ms for rank 2: never wait_until, room 7, needs 5, has 2",
                "Suspect: rank 2 is running and waits for nobody", "rank 0 waits for rank 1"});
  for (int rank = 0; rank < 3; ++rank) EXPECT_NE(stop_word(*memory, rank), 0U);
}

TEST(devices, a_wait_beyond_the_table_is_reported_without_its_name) {
  const auto memory = pretended_gpus(2);
  const control state(memory->control(), 2);
  untax::device_monitor monitor(memory, {0}, 500ms, nullptr);
  host_memory::raise_release(state.kernel_view(0).outcome[0], 1000);
  monitor.settle(0);
  ASSERT_TRUE(state.stopped());
  EXPECT_EQ(state.report()->code, errc::timeout);
  EXPECT_NE(state.report()->text.find("a kernel"), std::string::npos);
  EXPECT_EQ(stop_word(*memory, 1), 0U) << "that is for the monitor of its process";
}

TEST(devices, a_stop_by_the_host_reaches_the_kernels) {
  const auto memory = pretended_gpus(2);
  const control state(memory->control(), 2);
  const untax::device_monitor monitor(memory, {0, 1}, 500ms, nullptr);
  state.stop({0, 0, errc::unsupported, "cannot do this"});
  for (int i = 0; i < 1000 && stop_word(*memory, 1) == 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_NE(stop_word(*memory, 0), 0U);
  EXPECT_NE(stop_word(*memory, 1), 0U);
}

TEST(devices, a_rank_that_left_is_missed_by_a_kernel) {
  const auto memory = pretended_gpus(2);
  const control state(memory->control(), 2);
  const untax::device_monitor monitor(memory, {0}, 20s, nullptr);
  wait_in_kernel(state, 0, 1);
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(state.stopped()) << "it may still come";
  state.set_status(1, rank_status::finished);
  for (int i = 0; i < 1000 && !state.stopped(); ++i) std::this_thread::sleep_for(10ms);
  ASSERT_TRUE(state.stopped());
  const auto report = state.report();
  EXPECT_EQ(report->reporter, 0);
  expect_error({report->code, report->text}, errc::peer_lost,
               {"rank 1 finished without signalling, while rank 0 waited for rank 1: never"});
}

TEST(devices, a_rank_that_left_after_its_signal_is_not_missed) {
  const auto memory = pretended_gpus(2);
  const control state(memory->control(), 2);
  const untax::device_monitor monitor(memory, {0}, 20s, nullptr);
  const int slot = wait_in_kernel(state, 0, 1);
  state.clear_wait(0, slot);
  state.set_status(1, rank_status::finished);
  std::this_thread::sleep_for(100ms);
  EXPECT_FALSE(state.stopped());
}

TEST(devices, a_stopped_kernel_waits_for_the_reason) {
  const auto memory = pretended_gpus(2);
  const control state(memory->control(), 2);
  untax::device_monitor monitor(memory, {0}, 20s, nullptr);
  host_memory::raise_release(state.kernel_view(0).outcome[1], 1);
  std::atomic<bool> started = false;
  std::thread other([&] {
    started = true;
    std::this_thread::sleep_for(20ms);
    state.stop({1, 1, errc::aborted, "the other process says why"});
  });
  // A thread may take long to start, and the monitor waits for a second only.
  while (!started) std::this_thread::yield();
  monitor.settle(0);
  EXPECT_TRUE(state.stopped());
  other.join();
}

TEST(devices, a_stopped_kernel_does_not_wait_for_ever) {
  const auto memory = pretended_gpus(2);
  const control state(memory->control(), 2);
  untax::device_monitor monitor(memory, {0}, 20s, nullptr);
  host_memory::raise_release(state.kernel_view(0).outcome[1], 1);
  const auto begin = std::chrono::steady_clock::now();
  monitor.settle(0);
  EXPECT_FALSE(state.stopped());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 1s);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
}

}  // namespace
