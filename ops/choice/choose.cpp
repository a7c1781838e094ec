#include "ops/choice/choose.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax {
namespace {

constexpr std::size_t most_named = 3;  ///< entries that a reason names

/// For 60 problems that no table had, the expected time of the pattern that was best is within this
/// factor of the shortest expected time.
constexpr double likely_within = 1.5;
constexpr std::size_t least_likely = 2;  ///< the fewest patterns that are compared

/// Where no table has entries: the baseline, then the pattern that does most in one kernel.
constexpr pattern unmeasured[] = {pattern::bulk_library, pattern::fused_specialized};

struct source {
  const tuning_table* table;
  int ranks;           ///< the rank count of the entries
  std::string caveat;  ///< why entries do not match this device and rank count; empty if they do
};

/// Whether a table with entries of `ranks` ranks serves better than `best`.
bool serves_better(const tuning_table& table, int ranks, const source& best, const tuned_problem& p,
                   std::string_view kernels) {
  if (ranks != best.ranks) return nearer_ranks(ranks, best.ranks, p.ranks);
  return table.kernels == kernels && best.table->kernels != kernels;
}

std::optional<source> source_for(const tuned_problem& p, const choice_sources& from) {
  const tuning_table* const own = from.own;
  if (own != nullptr && nearest_ranks(*own, p) == p.ranks) return source{own, p.ranks, {}};
  std::optional<source> here;
  std::optional<source> elsewhere;
  for (const tuning_table& table : from.tables) {
    const int ranks = nearest_ranks(table, p);
    if (ranks == 0) continue;
    std::optional<source>& best = table.device == from.device ? here : elsewhere;
    if (!best || serves_better(table, ranks, *best, p, from.kernels)) best = {&table, ranks, {}};
  }
  if (here && here->ranks == p.ranks) return here;
  if (own != nullptr && nearest_ranks(*own, p) > 0) here = {own, nearest_ranks(*own, p), {}};
  if (here) {
    here->caveat = fmt::format(
        "no measurements with {} ranks, so times over the bound are those of "
        "{} ranks",
        p.ranks, here->ranks);
    return here;
  }
  if (elsewhere) {
    elsewhere->caveat = fmt::format(
        "no measurements on {}, so times over the bound are those on {} with {} "
        "ranks",
        from.device, elsewhere->table->device, elsewhere->ranks);
  }
  return elsewhere;
}

std::string reason_of(const prediction& found, const source& from, std::string_view kernels) {
  std::string nearest;
  for (std::size_t i = 0; i < std::min(found.from.size(), most_named); ++i) {
    nearest += fmt::format("{}{}", i > 0 ? "; " : "", shape_text(found.from[i]->problem));
  }
  return fmt::format("chosen by {}{}{}: {} {}; {} {}{}", from.table->text(),
                     from.table->kernels == kernels ? "" : ", which is of other kernels",
                     from.caveat.empty() ? "" : " (" + from.caveat + ")",
                     found.exact ? "measured" : "expected", text_of(found.times),
                     found.exact ? "the problem itself is there, as" : "nearest are", nearest,
                     found.from.size() > most_named && !found.exact
                         ? fmt::format(" and {} more", found.from.size() - most_named)
                         : "");
}

/// Usual patterns that no entry of the problem's family has, since they are newer than the table.
std::vector<pattern> lacking_in(const tuned_problem& problem, const tuning_table& table,
                                std::span<const pattern> usual) {
  std::vector<pattern> lacking;
  for (const pattern how : usual) {
    const auto has_it = [&](const tuning_entry& entry) {
      return same_family(entry.problem, problem) && entry.seconds.contains(how);
    };
    if (std::ranges::none_of(table.entries, has_it)) lacking.push_back(how);
  }
  return lacking;
}

/// By a table alone.
std::vector<pattern> likely_by_table(const prediction& found, const source& from,
                                     const choice_sources& all) {
  const bool here = from.caveat.empty();
  const bool of_these_kernels = from.table->kernels == all.kernels;
  if (found.exact && here && of_these_kernels && !all.rows_vary) return {found.times.front().how};
  std::vector<pattern> likely;
  for (const auto& [how, seconds] : found.times) {
    const bool near = seconds <= likely_within * found.times.front().seconds;
    if (!here || near || likely.size() < least_likely) likely.push_back(how);
  }
  if (!here || !of_these_kernels)
    append_others(likely, all.usual.first(std::min<std::size_t>(all.usual.size(), 1)));
  else if (!all.rows_vary)
    return likely;
  append_others(likely, std::array{pattern::bulk_library});
  return likely;
}

}  // namespace

void append_others(std::vector<pattern>& order, std::span<const pattern> others) {
  for (const pattern how : others) {
    if (std::ranges::find(order, how) == order.end()) order.push_back(how);
  }
}

choice choose(const tuned_problem& problem, const choice_sources& from) {
  choice made;
  if (const auto source = source_for(problem, from)) {
    const prediction found = predict(*source->table, problem, source->ranks);
    for (const auto& expected : found.times) made.order.push_back(expected.how);
    made.likely = likely_by_table(found, *source, from);
    append_others(made.likely, lacking_in(problem, *source->table, from.usual));
    made.times = found.times;
    made.reason = reason_of(found, *source, from.kernels);
  } else {
    made.order.assign(from.usual.begin(), from.usual.end());
    made.reason = fmt::format("chosen because no table has anything of {}", family_text(problem));
  }
  append_others(made.order, unmeasured);
  if (!made.likely.empty()) return made;
  if (from.usual.empty()) {
    made.likely = made.order;
    append_others(made.likely, all_patterns);
    std::erase(made.likely, pattern::automatic);
  } else {
    made.likely.assign(from.usual.begin(), from.usual.end());
    append_others(made.likely, std::array{pattern::bulk_library});
  }
  return made;
}

std::optional<tuning_table> own_table(const environment& env) {
  const auto path = env.text(variable::tune_table);
  if (!path) return std::nullopt;
  try {
    return load_table(*path);
  } catch (const error& e) {
    throw error(e.code(), fmt::format("{}: {}", variable::tune_table.name, e.what()));
  }
}

}  // namespace untax
