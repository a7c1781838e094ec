#include "device_monitor.hpp"

#include <utility>

#include <untax/flow/wait.hpp>
#include <untax/memory/host_memory.hpp>

#include "src/core/start_threads.hpp"
#include "src/flow/reports.hpp"

namespace untax {
namespace {

constexpr auto interval = std::chrono::milliseconds(10);

/// Bounds the wait for a report that another rank is writing.
struct patience {
  static constexpr std::uint64_t longest = 1'000'000'000;
  std::uint64_t begin = host_memory::now();

  [[nodiscard]] static bool due(poll_count polls) noexcept { return polls % 64 == 63; }
  [[nodiscard]] wait_outcome look(const wait_site& /*site*/,
                                  std::uint64_t /*seen*/) const noexcept {
    return host_memory::now() - begin < longest ? wait_outcome::ok : wait_outcome::timeout;
  }
  static void leave() noexcept {}
};

}  // namespace

device_monitor::device_monitor(std::shared_ptr<const segment> memory, std::vector<int> ranks,
                               std::chrono::milliseconds limit, const liveness* alive)
    : memory_(std::move(memory)),
      state_(memory_->control(), memory_->ranks()),
      ranks_(std::move(ranks)),
      limit_(limit),
      alive_(alive),
      unstopped_(ranks_),
      thread_(start_thread("the monitor of kernels", [this] { run(); })) {}

device_monitor::~device_monitor() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void device_monitor::run() {
  std::unique_lock lock(mutex_);
  while (!leaving_) {
    look();
    changed_.wait_for(lock, interval);
  }
  look();
}

void device_monitor::settle(int rank) noexcept {
  {
    const std::lock_guard lock(mutex_);
    look();
  }
  if (!state_.kernel_stopped(rank)) return;
  patience guard;
  const wait_site site{"the world", verb::wait_until, -1, -1, 1};
  // If no report comes, the world is stopped nevertheless, and the caller reports that.
  static_cast<void>(wait_until<host_memory>(state_.stop_flag(), site, guard));
}

void device_monitor::look() noexcept {
  try {
    if (!state_.stopped()) report_limits();
    if (!state_.stopped()) report_losses();
  } catch (const std::exception& e) {
    // There was no memory for the report. Stopping the world without a text needs none.
    state_.stop({ranks_.front(), -1, errc::aborted, {}});
  }
  if (state_.stopped()) forward_stop();
}

void device_monitor::report_limits() {
  for (const int rank : ranks_) {
    if (report_kernel(state_, alive_, rank, limit_, host_memory::now())) return;
  }
}

void device_monitor::report_losses() {
  const std::optional<suspicion> loss = find_loss();
  if (loss && loss == suspected_) {
    if (const auto wait = state_.wait_at(loss->rank, loss->slot)) {
      state_.stop(
          report_of_loss(state_, alive_, loss->rank, *wait, loss->lost, host_memory::now()));
    }
  }
  suspected_ = loss;
}

std::optional<device_monitor::suspicion> device_monitor::find_loss() const {
  for (const int rank : ranks_) {
    for (int slot = first_kernel_slot; slot < wait_slots; ++slot) {
      const auto wait = state_.wait_at(rank, slot);
      if (!wait) continue;
      const int lost = lost_rank(state_, alive_, rank, wait->peer);
      if (lost >= 0) return suspicion{rank, slot, lost, wait->since};
    }
  }
  return std::nullopt;
}

void device_monitor::forward_stop() noexcept {
  std::erase_if(unstopped_, [this](int rank) {
    return memory_->devices()->send_word(rank, memory_->stop_word(rank), &state_.stop_flag());
  });
}

}  // namespace untax
