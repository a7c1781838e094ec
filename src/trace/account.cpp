#include <untax/trace/account.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "run_timeline.hpp"

namespace untax {
namespace {

/// The runs that count, sorted by time: all but the fastest and the slowest third.
std::vector<const run_account*> typical(const std::vector<run_account>& runs) {
  std::vector<const run_account*> sorted;
  for (const run_account& run : runs) sorted.push_back(&run);
  std::ranges::sort(sorted, {}, [](const run_account* run) { return run->wall(); });
  const std::size_t edge = sorted.size() / 3;
  return {sorted.begin() + static_cast<std::ptrdiff_t>(edge),
          sorted.end() - static_cast<std::ptrdiff_t>(edge)};
}

/// The causes of the time of some runs, the largest first, and at least one: a run that took no
/// time has none, so its cause is 0 seconds of idling.
std::vector<trace_cause> causes_of(const std::vector<const run_account*>& runs) {
  std::map<std::tuple<trace_part, int, int>, double> seconds;
  for (const run_account* run : runs) {
    for (const path_piece& piece : run->pieces) {
      seconds[{piece.part, piece.rank, piece.peer}] +=
          static_cast<double>(piece.end - piece.begin) * 1e-9 / static_cast<double>(runs.size());
    }
  }
  std::vector<trace_cause> causes;
  for (const auto& [what, time] : seconds)
    causes.push_back({std::get<0>(what), std::get<1>(what), std::get<2>(what), time});
  if (causes.empty()) causes.push_back({trace_part::idle});
  std::ranges::stable_sort(causes, std::greater<>(), &trace_cause::seconds);
  return causes;
}

void summarise(operator_account& account) {
  const auto runs = typical(account.runs);
  const double share = 1.0 / static_cast<double>(runs.size());
  account.ranks.resize(runs.front()->ranks.size());
  for (const run_account* run : runs) {
    account.wall += run->wall() * share;
    account.path.add(run->path, share);
    for (std::size_t r = 0; r < account.ranks.size(); ++r)
      account.ranks[r].add(run->ranks[r], share);
  }
  account.causes = causes_of(runs);
}

}  // namespace

std::vector<timeline_piece> typical_timeline(const trace_record& record,
                                             const operator_account& account) {
  std::vector<const run_account*> sorted = typical(account.runs);
  const run_account& middle = *sorted[sorted.size() / 2];
  return run_timelines(record, account.id).pieces(middle.epoch, signal_index(record));
}

std::string_view name_of(trace_part part) noexcept {
  constexpr std::string_view names[] = {"compute",      "launch", "late peer", "in flight",
                                        "own movement", "tail",   "idle",      "skew at entry"};
  return names[static_cast<std::size_t>(part)];
}

double trace_breakdown::total() const noexcept {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

void trace_breakdown::add(const trace_breakdown& other, double times) noexcept {
  for (std::size_t i = 0; i < trace_parts; ++i) seconds[i] += other.seconds[i] * times;
}

std::string trace_cause::text() const {
  if (part == trace_part::in_flight && peer >= 0)
    return fmt::format("in flight from rank {} to rank {}", peer, rank);
  if (part == trace_part::late_peer && peer >= 0)
    return fmt::format("rank {} waits for rank {}, whose signal is not recorded", rank, peer);
  return fmt::format("{} at rank {}", name_of(part), rank);
}

std::vector<operator_account> accounts_of(const trace_record& record) {
  const signal_index signals(record);
  std::vector<operator_account> accounts;
  std::vector<std::uint64_t> seen;
  for (const traced_operator& first : record.operators) {
    if (std::ranges::find(seen, first.id) != seen.end()) continue;
    seen.push_back(first.id);
    const run_timelines all(record, first.id);
    operator_account account{first.id, first.name, first.label, {}, 0, {}, {}, {}};
    for (const std::int64_t epoch : all.epochs())
      account.runs.push_back(all.account(epoch, signals));
    if (account.runs.empty()) continue;
    summarise(account);
    accounts.push_back(std::move(account));
  }
  return accounts;
}

}  // namespace untax
