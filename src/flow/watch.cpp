#include <untax/flow/watch.hpp>

#include <untax/flow/interrupt.hpp>
#include <untax/memory/host_memory.hpp>

#include "reports.hpp"

namespace untax {
namespace {

// The nanoseconds that the winner of the claim may take to write its report.
constexpr std::uint64_t report_grace = 1'000'000'000;

wait_snapshot snapshot_of(const wait_site& site, std::uint64_t seen, std::uint64_t since) {
  return {std::string(site.operator_name),
          site.what,
          site.peer,
          site.room,
          site.expected,
          seen,
          since,
          site.progress};
}

}  // namespace

wait_outcome watch::look(const wait_site& site, std::uint64_t seen) {
  const std::uint64_t now = host_memory::now();
  if (since_ == 0) {
    since_ = now;
    lost_before_ = -1;
    world_.publish_wait(rank_, slot_, site, seen, since_);
  } else {
    world_.update_wait(rank_, slot_, seen);
  }
  if (also_ != nullptr) also_->look();
  if (world_.stopped()) {
    since_ = 0;
    return wait_outcome::aborted;
  }
  if (interrupted()) {
    const wait_snapshot wait = snapshot_of(site, seen, since_);
    return stop(report_of_interrupt(rank_, wait), wait_outcome::aborted, now);
  }
  // A rank counts as lost only if two consecutive looks find it lost. Signals that it raised just
  // before it ended are read between them.
  const int lost = lost_rank(world_, alive_, rank_, site.peer);
  if (lost >= 0 && lost == lost_before_) {
    const wait_snapshot wait = snapshot_of(site, seen, since_);
    return stop(report_of_loss(world_, alive_, rank_, wait, lost, now), wait_outcome::peer_lost,
                now);
  }
  lost_before_ = lost;
  const auto waited = std::chrono::nanoseconds(now - since_);
  if (limit_.count() > 0 && waited >= limit_) {
    const wait_snapshot wait = snapshot_of(site, seen, since_);
    return stop(report_of_limit(world_, alive_, rank_, wait, limit_, now), wait_outcome::timeout,
                now);
  }
  return wait_outcome::ok;
}

void watch::leave() noexcept {
  since_ = 0;
  world_.clear_wait(rank_, slot_);
}

wait_outcome watch::stop(const stop_report& report, wait_outcome mine, std::uint64_t now) {
  wait_outcome outcome = mine;
  if (!world_.stop(report)) {
    if (beaten_ == 0) beaten_ = now;
    // This wait goes on until the winner has written its report. It ends after `report_grace`,
    // since the winner may have been killed meanwhile.
    if (!world_.stopped() && now - beaten_ < report_grace) return wait_outcome::ok;
    outcome = wait_outcome::aborted;
  }
  since_ = 0;
  return outcome;
}

}  // namespace untax
