#include <untax/flow/watch.hpp>

#include <fmt/format.h>

#include <untax/flow/wait_graph.hpp>
#include <untax/memory/host_memory.hpp>

namespace untax {
namespace {

// How long the winner of the claim may take to write its report.
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
  if (world_.stopped()) {
    since_ = 0;
    return wait_outcome::aborted;
  }
  // Lost only if two looks in a row say so: what a rank signalled just before it ended is read
  // between them.
  const int lost = lost_rank(site.peer);
  if (lost >= 0 && lost == lost_before_)
    return report_lost(snapshot_of(site, seen, since_), lost, now);
  lost_before_ = lost;
  const auto waited = std::chrono::nanoseconds(now - since_);
  if (limit_.count() > 0 && waited >= limit_)
    return report_limit(snapshot_of(site, seen, since_), now);
  return wait_outcome::ok;
}

void watch::leave() noexcept {
  since_ = 0;
  world_.clear_wait(rank_, slot_);
}

// The peer that has to signal must not have ended in any way; the others must not have ended badly.
int watch::lost_rank(int peer) const noexcept {
  const auto ended_badly = [this](int rank) {
    const rank_state state = state_of(world_, alive_, rank);
    return state == rank_state::gone || state == rank_state::failed;
  };
  const bool other_rank = peer >= 0 && peer < world_.ranks() && peer != rank_;
  if (other_rank && (ended_badly(peer) || world_.status(peer) == rank_status::finished))
    return peer;
  for (int rank = 0; rank < world_.ranks(); ++rank) {
    if (rank != rank_ && rank != peer && ended_badly(rank)) return rank;
  }
  return -1;
}

wait_outcome watch::report_lost(const wait_snapshot& wait, int lost, std::uint64_t now) {
  const wait_graph graph = wait_graph::of(world_, alive_);
  const std::string text =
      fmt::format("{} without signalling, while rank {} waited for rank {}: {}\n{}",
                  graph.describe(lost), rank_, wait.peer, describe(wait), graph.text(rank_, now));
  return stop(errc::peer_lost, lost, text, wait_outcome::peer_lost, now);
}

wait_outcome watch::report_limit(const wait_snapshot& wait, std::uint64_t now) {
  const wait_graph graph = wait_graph::of(world_, alive_);
  const int suspect = graph.suspect(rank_);
  const std::string text =
      fmt::format("waited {} ms for rank {}: {}. Suspect: {}\n{}", limit_.count(), wait.peer,
                  describe(wait), graph.describe(suspect), graph.text(rank_, now));
  return stop(errc::timeout, suspect, text, wait_outcome::timeout, now);
}

wait_outcome watch::stop(errc code, int suspect, const std::string& text, wait_outcome mine,
                         std::uint64_t now) {
  wait_outcome outcome = mine;
  if (!world_.stop({rank_, suspect, code, text})) {
    if (beaten_ == 0) beaten_ = now;
    // Until the winner has written its report this wait goes on, but not for ever: it may have been
    // killed meanwhile.
    if (!world_.stopped() && now - beaten_ < report_grace) return wait_outcome::ok;
    outcome = wait_outcome::aborted;
  }
  since_ = 0;
  return outcome;
}

}  // namespace untax
