#include <untax/flow/wait_graph.hpp>

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace untax {
namespace {

constexpr std::size_t columns = 100;
constexpr std::size_t lines_per_rank = 3;
constexpr std::size_t ranks_shown = 16;

std::string shortened(std::string line) {
  if (line.size() > columns) line.replace(columns - 3, std::string::npos, "...");
  return line;
}

double seconds_between(std::uint64_t since, std::uint64_t now) {
  return now > since ? static_cast<double>(now - since) * 1e-9 : 0.0;
}

}  // namespace

rank_state state_of(const control& world, const liveness* alive, int rank) noexcept {
  // Liveness is read first: a process that finished and then ended must not be taken for a lost
  // one.
  const bool lives = alive == nullptr || alive->alive(rank);
  switch (world.status(rank)) {
    case rank_status::finished:
      return rank_state::finished;
    case rank_status::failed:
      return rank_state::failed;
    case rank_status::running:
      return lives ? rank_state::running : rank_state::gone;
    case rank_status::joining:
      return lives ? rank_state::joining : rank_state::gone;
  }
  return rank_state::gone;
}

std::string describe(const wait_snapshot& wait) {
  const std::string room = wait.room >= 0 ? fmt::format(", room {}", wait.room) : "";
  return fmt::format("{} {}{}, needs {}, has {}", wait.operator_name, name_of(wait.what), room,
                     wait.expected, wait.seen);
}

wait_graph wait_graph::of(const control& world, const liveness* alive) {
  std::vector<rank_state> states;
  std::vector<waiter> waiters;
  for (int rank = 0; rank < world.ranks(); ++rank) {
    rank_state state = state_of(world, alive, rank);
    if (state == rank_state::running && alive != nullptr && alive->halted(rank))
      state = rank_state::halted;
    states.push_back(state);
    for (int slot = 0; slot < wait_slots; ++slot) {
      if (auto wait = world.wait_at(rank, slot)) waiters.push_back({rank, std::move(*wait)});
    }
  }
  return {std::move(states), std::move(waiters)};
}

wait_graph::wait_graph(std::vector<rank_state> states, std::vector<waiter> waiters)
    : states_(std::move(states)), waiters_(std::move(waiters)), waits_for_(states_.size()) {
  const int ranks = static_cast<int>(states_.size());
  for (const waiter& w : waiters_) {
    // A rank that has ended waits for no rank, whatever its records say.
    if (states_[w.rank] != rank_state::running && states_[w.rank] != rank_state::joining) continue;
    auto& peers = waits_for_[w.rank];
    const bool usable = w.wait.peer >= 0 && w.wait.peer < ranks && w.wait.peer != w.rank;
    if (usable && std::find(peers.begin(), peers.end(), w.wait.peer) == peers.end())
      peers.push_back(w.wait.peer);
  }
}

std::vector<int> wait_graph::cycle(int from) const {
  enum class mark : std::uint8_t { fresh, open, closed };
  std::vector<mark> marks(states_.size(), mark::fresh);
  std::vector<int> path;
  std::vector<std::size_t> tried;  // the number of followed edges of each rank on the path
  const auto enter = [&](int rank) {
    marks[rank] = mark::open;
    path.push_back(rank);
    tried.push_back(0);
  };
  enter(from);
  while (!path.empty()) {
    const auto& peers = waits_for_[path.back()];
    if (tried.back() == peers.size()) {
      marks[path.back()] = mark::closed;
      path.pop_back();
      tried.pop_back();
      continue;
    }
    const int next = peers[tried.back()++];
    if (marks[next] == mark::open) return {std::find(path.begin(), path.end(), next), path.end()};
    if (marks[next] == mark::fresh) enter(next);
  }
  return {};
}

std::vector<int> wait_graph::reachable(int from) const {
  std::vector<int> reached = {from};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const int next : waits_for_[reached[i]]) {
      if (std::find(reached.begin(), reached.end(), next) == reached.end()) reached.push_back(next);
    }
  }
  return reached;
}

// The peer of the candidates' wait with the least progress, or -1. Waits among the workers of one
// rank are skipped, since they follow from the waits of the rank for others.
int wait_graph::awaited_farthest_behind(const std::vector<int>& candidates) const {
  int peer = -1;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const waiter& w : waiters_) {
    const bool counts = w.wait.progress > 0 && w.wait.progress < least &&
                        std::find(candidates.begin(), candidates.end(), w.rank) != candidates.end();
    const bool elsewhere =
        w.wait.peer >= 0 && w.wait.peer < static_cast<int>(states_.size()) && w.wait.peer != w.rank;
    if (!counts || !elsewhere) continue;
    least = w.wait.progress;
    peer = w.wait.peer;
  }
  return peer;
}

int wait_graph::suspect(int from) const {
  const std::vector<int> candidates = reachable(from);
  for (const rank_state state :
       {rank_state::gone, rank_state::failed, rank_state::finished, rank_state::halted}) {
    for (const int rank : candidates) {
      if (states_[rank] == state) return rank;
    }
  }
  for (const int rank : candidates) {
    if (waits_for_[rank].empty()) return rank;
  }
  if (const int awaited = awaited_farthest_behind(candidates); awaited >= 0) return awaited;
  const std::vector<int> ring = cycle(from);
  const auto start = std::find(ring.begin(), ring.end(), from);
  if (start == ring.end()) return ring.front();
  return std::next(start) == ring.end() ? ring.front() : *std::next(start);
}

std::string wait_graph::describe(int rank) const {
  switch (states_[rank]) {
    case rank_state::gone:
      return fmt::format("rank {} is gone (its process ended)", rank);
    case rank_state::failed:
      return fmt::format("rank {} failed", rank);
    case rank_state::finished:
      return fmt::format("rank {} finished", rank);
    case rank_state::halted:
      return fmt::format("rank {} is halted (by SIGSTOP or a debugger)", rank);
    case rank_state::joining:
      return fmt::format("rank {} has not started yet", rank);
    case rank_state::running:
      break;
  }
  if (!waits_for_[rank].empty()) {
    return fmt::format("rank {} waits for rank {}", rank,
                       fmt::join(waits_for_[rank], " and rank "));
  }
  const bool inside = std::any_of(waiters_.begin(), waiters_.end(),
                                  [rank](const waiter& w) { return w.rank == rank; });
  if (inside) return fmt::format("rank {} is running; its workers wait for each other", rank);
  return fmt::format("rank {} is running and waits for nobody", rank);
}

std::vector<std::string> wait_graph::lines_of(int rank, std::uint64_t now) const {
  struct group {
    std::string what;
    double longest = 0;
    int workers = 0;
  };
  std::vector<group> groups;
  for (const waiter& w : waiters_) {
    if (w.rank != rank) continue;
    std::string what =
        fmt::format("  rank {} waits for rank {}: {}", rank, w.wait.peer, untax::describe(w.wait));
    auto same =
        std::find_if(groups.begin(), groups.end(), [&](const group& g) { return g.what == what; });
    if (same == groups.end()) same = groups.insert(same, {std::move(what), 0, 0});
    same->longest = std::max(same->longest, seconds_between(w.wait.since, now));
    ++same->workers;
  }
  const bool ended = states_[rank] != rank_state::running && states_[rank] != rank_state::joining;
  if (groups.empty() || ended) return {fmt::format("  {}", describe(rank))};
  std::stable_sort(groups.begin(), groups.end(),
                   [](const group& a, const group& b) { return a.longest > b.longest; });
  std::vector<std::string> lines;
  for (const group& g : groups) {
    if (lines.size() == lines_per_rank) {
      lines.push_back(
          fmt::format("    and {} other waits of rank {}", groups.size() - lines_per_rank, rank));
      break;
    }
    const std::string workers = g.workers > 1 ? fmt::format(" ({} workers)", g.workers) : "";
    lines.push_back(fmt::format("{}, {:.1f} s{}", g.what, g.longest, workers));
  }
  return lines;
}

std::string wait_graph::text(int from, std::uint64_t now) const {
  std::string text = "Who waits for whom:";
  const std::size_t shown = std::min(states_.size(), ranks_shown);
  for (std::size_t rank = 0; rank < shown; ++rank) {
    for (const std::string& line : lines_of(static_cast<int>(rank), now))
      text += "\n" + shortened(line);
  }
  if (shown < states_.size()) text += fmt::format("\n  and {} other ranks", states_.size() - shown);
  const std::vector<int> ring = cycle(from);
  if (!ring.empty()) {
    text += "\n" + shortened(fmt::format("Cycle: rank {} -> rank {}", fmt::join(ring, " -> rank "),
                                         ring.front()));
  }
  return text;
}

}  // namespace untax
