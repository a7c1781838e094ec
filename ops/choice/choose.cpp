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

/// Whether a table with entries of `ranks` ranks is better than `best`.
bool serves_better(const tuning_table& table, int ranks, const source& best, const tuned_problem& p,
                   std::string_view kernels) {
  if (ranks != best.ranks) return nearer_ranks(ranks, best.ranks, p.ranks);
  return table.kernels == kernels && best.table->kernels != kernels;
}

std::optional<source> source_for(const tuned_problem& p, const choice_sources& from) {
  const tuning_table* const own = from.own;
  if (own != nullptr && nearest_ranks(*own, p) == p.ranks) return source{own, p.ranks, {}};
  std::optional<source> own_source;
  std::optional<source> elsewhere;
  for (const tuning_table& table : from.tables) {
    const int ranks = nearest_ranks(table, p);
    if (ranks == 0) continue;
    std::optional<source>& best = table.device == from.device ? own_source : elsewhere;
    if (!best || serves_better(table, ranks, *best, p, from.kernels)) best = {&table, ranks, {}};
  }
  if (own_source && own_source->ranks == p.ranks) return own_source;
  if (own != nullptr && nearest_ranks(*own, p) > 0) own_source = {own, nearest_ranks(*own, p), {}};
  if (own_source) {
    own_source->caveat = fmt::format(
        "no measurements with {} ranks, so times over the bound are those of "
        "{} ranks",
        p.ranks, own_source->ranks);
    return own_source;
  }
  if (elsewhere) {
    elsewhere->caveat = fmt::format(
        "no measurements on {}, so times over the bound are those on {} with {} "
        "ranks",
        from.device, elsewhere->table->device, elsewhere->ranks);
  }
  return elsewhere;
}

std::string reason_of(const prediction& predicted, const source& from, std::string_view kernels) {
  std::string nearest;
  for (std::size_t i = 0; i < std::min(predicted.from.size(), most_named); ++i) {
    nearest += fmt::format("{}{}", i > 0 ? "; " : "", shape_text(predicted.from[i]->problem));
  }
  return fmt::format("chosen by {}{}{}: {} {}; {} {}{}", from.table->text(),
                     from.table->kernels == kernels ? "" : ", which is of other kernels",
                     from.caveat.empty() ? "" : " (" + from.caveat + ")",
                     predicted.exact ? "measured" : "expected", text_of(predicted.times),
                     predicted.exact ? "the problem itself is there, as" : "nearest are", nearest,
                     predicted.from.size() > most_named && !predicted.exact
                         ? fmt::format(" and {} more", predicted.from.size() - most_named)
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

/// The likely patterns according to a table alone.
std::vector<pattern> likely_by_table(const prediction& predicted, const source& from,
                                     const choice_sources& sources) {
  const bool trusted = from.caveat.empty();
  const bool of_these_kernels = from.table->kernels == sources.kernels;
  if (predicted.exact && trusted && of_these_kernels && !sources.rows_vary)
    return {predicted.times.front().how};
  std::vector<pattern> likely;
  for (const auto& [how, seconds] : predicted.times) {
    const bool near = seconds <= likely_within * predicted.times.front().seconds;
    if (!trusted || near || likely.size() < least_likely) likely.push_back(how);
  }
  if (!trusted || !of_these_kernels)
    append_others(likely, sources.usual.first(std::min<std::size_t>(sources.usual.size(), 1)));
  else if (!sources.rows_vary)
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
  choice result;
  if (const auto source = source_for(problem, from)) {
    const prediction predicted = predict(*source->table, problem, source->ranks);
    for (const auto& expected : predicted.times) result.order.push_back(expected.how);
    result.likely = likely_by_table(predicted, *source, from);
    append_others(result.likely, lacking_in(problem, *source->table, from.usual));
    result.times = predicted.times;
    result.reason = reason_of(predicted, *source, from.kernels);
  } else {
    result.order.assign(from.usual.begin(), from.usual.end());
    result.reason = fmt::format("chosen because no table has anything of {}", family_text(problem));
  }
  append_others(result.order, unmeasured);
  if (!result.likely.empty()) return result;
  if (from.usual.empty()) {
    result.likely = result.order;
    append_others(result.likely, all_patterns);
    std::erase(result.likely, pattern::automatic);
  } else {
    result.likely.assign(from.usual.begin(), from.usual.end());
    append_others(result.likely, std::array{pattern::bulk_library});
  }
  return result;
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
