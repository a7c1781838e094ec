// The thread that looks after kernels, with memory of the host in the place of a GPU's.
#include "src/world/device_monitor.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include <untax/memory/host_memory.hpp>

#include "support.hpp"

namespace {

using untax::control;
using untax::device_monitor;
using untax::errc;
using untax::first_kernel_slot;
using untax::rank_status;
using untax::segment;
using untax::segment_layout;
using untax::verb;
using world_test::error_of;
using world_test::expect_error;
using namespace std::chrono_literals;

constexpr int ranks = 3;

segment_layout layout_on_devices() {
  return {.ranks = ranks,
          .control_bytes = control::bytes(ranks),
          .arena_bytes = 8192,
          .memory = untax::memory_kind::cuda};
}

/// Arenas that the host can follow.
class arenas_of_the_host final : public untax::device_arenas {
 public:
  explicit arenas_of_the_host(std::size_t bytes) : memory_(bytes / sizeof(std::uint64_t)) {}
  [[nodiscard]] std::byte* base() const noexcept override {
    return reinterpret_cast<std::byte*>(const_cast<std::uint64_t*>(memory_.data()));
  }
  [[nodiscard]] int device_of(int rank) const noexcept override { return rank; }
  void use(int /*rank*/) const override {}
  void finish(int /*rank*/) const noexcept override {}
  void fill(int /*rank*/, std::byte* at, std::byte value, std::size_t bytes) const override {
    std::memset(at, std::to_integer<int>(value), bytes);
  }
  void read(int /*rank*/, std::byte* to, const std::byte* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
  bool send_word(int rank, std::uint64_t* to, const std::uint64_t* from) const noexcept override {
    ++sent[static_cast<std::size_t>(rank)];
    std::atomic_ref<std::uint64_t>(*to).store(*from);
    return !refuses;
  }
  [[nodiscard]] void* address_on_device(int /*rank*/, const void* host) const override {
    return const_cast<void*>(host);
  }
  [[nodiscard]] std::int64_t clock_offset(int /*rank*/) const noexcept override { return 0; }

  mutable std::array<std::atomic<int>, ranks> sent{};
  std::atomic<bool> refuses{false};

 private:
  std::vector<std::uint64_t> memory_;
};

/// A world whose ranks 0 and 1 are of this process.
struct devices_of_two {
  std::shared_ptr<segment> memory =
      std::make_shared<segment>(segment::anonymous(layout_on_devices()));
  control state{memory->control(), ranks};
  arenas_of_the_host* arenas = nullptr;

  devices_of_two() {
    auto result = std::make_unique<arenas_of_the_host>(memory->layout().all_arenas());
    arenas = result.get();
    memory->put_arenas(std::move(result));
    for (int rank = 0; rank < ranks; ++rank) state.set_status(rank, rank_status::running);
  }
  [[nodiscard]] bool told(int rank) const {
    return std::atomic_ref<std::uint64_t>(*memory->stop_word(rank)).load() != 0;
  }
  /// Waits, long enough for a slow machine, until the monitor has done something.
  template <class Condition>
  [[nodiscard]] static bool comes(Condition&& condition) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }
  [[nodiscard]] std::uint64_t* outcome(int rank) const { return state.kernel_view(rank).outcome; }
  /// Writes an outcome as a kernel does.
  void put_outcome(int rank, int word, std::uint64_t value) const {
    std::atomic_ref<std::uint64_t>(outcome(rank)[word]).store(value);
  }
};

constexpr untax::wait_site site{"my_op", verb::acquire, 2, 5, 7};

TEST(device_monitor, says_why_a_kernel_gave_up) {
  devices_of_two d;
  device_monitor monitor(d.memory, {0, 1}, 1234ms, nullptr);
  d.state.publish_wait(1, first_kernel_slot + 3, site, 6, 1);
  d.put_outcome(1, 0, static_cast<std::uint64_t>(first_kernel_slot + 3 + 1));
  ASSERT_TRUE(d.comes([&] { return d.state.stopped() && d.told(0) && d.told(1); }));
  const auto report = d.state.report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->reporter, 1);
  EXPECT_EQ(report->suspect, 2);
  EXPECT_EQ(report->code, errc::timeout);
  EXPECT_EQ(report->text.find("waited 1234 ms for rank 2: my_op acquire, room 5, needs 7, has 6"),
            0U)
      << report->text;
  EXPECT_FALSE(d.told(2)) << "another process's";
}

TEST(device_monitor, stops_the_world_for_a_kernel_without_a_record) {
  devices_of_two d;
  device_monitor monitor(d.memory, {0, 1}, 1000ms, nullptr);
  d.put_outcome(0, 0, static_cast<std::uint64_t>(first_kernel_slot + 1));
  ASSERT_TRUE(d.comes([&] { return d.state.stopped(); }));
  EXPECT_NE(d.state.report()->text.find("a kernel"), std::string::npos);
  EXPECT_EQ(d.state.report()->reporter, 0);
}

TEST(device_monitor, stops_the_world_without_memory_for_a_reason) {
  const devices_of_two d;
  const device_monitor monitor(d.memory, {0, 1}, 1000ms, nullptr);
  d.state.publish_wait(1, first_kernel_slot, site, 6, 1);
  world_test::refuse_memory(true);
  d.put_outcome(1, 0, static_cast<std::uint64_t>(first_kernel_slot + 1));
  const bool stopped = d.comes([&] { return d.state.stopped(); });
  world_test::refuse_memory(false);
  ASSERT_TRUE(stopped);
  const auto report = d.state.report();
  EXPECT_EQ(report->reporter, 0) << "the first rank of the process";
  EXPECT_EQ(report->suspect, -1);
  EXPECT_EQ(report->code, errc::aborted);
  EXPECT_EQ(report->text, "");
}

TEST(device_monitor, stops_kernels_that_wait_for_a_rank_that_is_lost) {
  devices_of_two d;
  device_monitor monitor(d.memory, {0, 1}, 1000ms, nullptr);
  d.state.publish_wait(0, untax::wait_slots - 1, site, 6, 1);
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(d.state.stopped()) << "rank 2 runs";
  d.state.set_status(2, rank_status::finished);
  ASSERT_TRUE(d.comes([&] { return d.told(0) && d.told(1); }));
  const auto report = d.state.report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->code, errc::peer_lost);
  EXPECT_EQ(report->reporter, 0);
  EXPECT_EQ(report->suspect, 2);
  EXPECT_NE(report->text.find("rank 2 finished without signalling, while rank 0 waited for rank 2: "
                              "my_op acquire"),
            std::string::npos)
      << report->text;
}

TEST(device_monitor, leaves_waits_of_the_host_to_the_host) {
  devices_of_two d;
  device_monitor monitor(d.memory, {0, 1}, 1000ms, nullptr);
  d.state.publish_wait(0, first_kernel_slot - 1, site, 6, 1);
  d.state.set_status(2, rank_status::finished);
  std::this_thread::sleep_for(100ms);
  EXPECT_FALSE(d.state.stopped());
}

TEST(device_monitor, forwards_a_stop_of_the_host_once) {
  devices_of_two d;
  {
    device_monitor monitor(d.memory, {0, 1}, 1000ms, nullptr);
    ASSERT_TRUE(d.state.stop({2, -1, errc::aborted, "enough"}));
    ASSERT_TRUE(d.comes([&] { return d.told(0) && d.told(1); }));
    std::this_thread::sleep_for(100ms);
  }
  EXPECT_EQ(d.arenas->sent[0], 1);
  EXPECT_EQ(d.arenas->sent[1], 1);
  EXPECT_EQ(d.arenas->sent[2], 0);
  EXPECT_EQ(d.state.report()->text, "enough");
}

TEST(device_monitor, retries_a_stop_that_could_not_be_forwarded) {
  devices_of_two d;
  d.arenas->refuses = true;
  device_monitor monitor(d.memory, {0, 1}, 1000ms, nullptr);
  ASSERT_TRUE(d.state.stop({2, -1, errc::aborted, "enough"}));
  EXPECT_TRUE(d.comes([&] { return d.arenas->sent[0] > 2 && d.arenas->sent[1] > 2; }));
}

TEST(device_monitor, waits_for_the_reason_if_a_kernel_was_stopped) {
  devices_of_two d;
  device_monitor monitor(d.memory, {0, 1}, 1000ms, nullptr);
  const std::uint64_t begin = untax::host_memory::now();
  monitor.settle(0);
  EXPECT_LT(untax::host_memory::now() - begin, 900'000'000U) << "nothing was stopped";
  d.put_outcome(0, 1, 1);
  std::jthread late([&] {
    std::this_thread::sleep_for(100ms);
    d.state.stop({1, -1, errc::timeout, "late"});
  });
  monitor.settle(0);
  EXPECT_TRUE(d.state.stopped());
}

TEST(device_monitor, does_not_wait_for_ever_for_a_reason) {
  devices_of_two d;
  device_monitor monitor(d.memory, {0, 1}, 1000ms, nullptr);
  d.put_outcome(1, 1, 1);
  const std::uint64_t begin = untax::host_memory::now();
  monitor.settle(1);
  EXPECT_GE(untax::host_memory::now() - begin, 1'000'000'000U);
  EXPECT_FALSE(d.state.stopped());
}

}  // namespace
