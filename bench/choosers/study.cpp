#include "bench/choosers/study.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>
#include <untax/select/training.hpp>

#include "bench/choosers/lessons.hpp"
#include "bench/suites/tune.hpp"
#include "src/core/json.hpp"

namespace untax::bench {
namespace {

using tables = std::vector<tuning_table>;

/// The loss at each problem at which a rule was judged.
struct account {
  std::vector<std::pair<double, tuned_problem>> ratios;

  void add(const tuning_entry& at, pattern chosen) {
    const auto least =
        std::ranges::min_element(at.seconds, {}, [](const auto& entry) { return entry.second; });
    const auto match = at.seconds.find(chosen);
    // A refused pattern counts as slow as the slowest one.
    const double cost = match != at.seconds.end()
                            ? match->second
                            : std::ranges::max_element(at.seconds, {}, [](const auto& entry) {
                                return entry.second;
                              })->second;
    ratios.emplace_back(cost / least->second, at.problem);
  }

  [[nodiscard]] chooser_figure finish() {
    std::ranges::sort(ratios, {}, [](const auto& entry) { return entry.first; });
    chooser_figure f;
    f.problems = static_cast<int>(ratios.size());
    double logarithms = 0;
    double good = 0;
    for (const auto& [ratio, problem] : ratios) {
      logarithms += std::log(ratio);
      good += ratio <= 1 + tune_check::most_loss ? 1 : 0;
    }
    const auto count = static_cast<double>(ratios.size());
    f.within = good / count;
    f.mean_ratio = std::exp(logarithms / count);
    f.p95_ratio = ratios[static_cast<std::size_t>(std::ceil(0.95 * count)) - 1].first;
    f.worst_ratio = ratios.back().first;
    f.worst = family_text(ratios.back().second) + ", " + shape_text(ratios.back().second);
    return f;
  }
};

bool by_rows(const tuned_problem& p) { return p.gathers() && p.gather == gather_axis::rows; }

/// A part of a split: the tables to learn from, and the problems to judge.
struct fold {
  tables learned;
  std::vector<tuning_entry> judged;
};

void judge(const std::string& split, int ranks, const std::vector<way>& ways,
           const std::vector<fold>& folds, std::vector<chooser_figure>& into) {
  for (const way& w : ways) {
    account total;
    account rows;
    for (const fold& part : folds) {
      const chooser choose = w.learn(part.learned);
      for (const tuning_entry& at : part.judged) {
        if (at.problem.ranks != ranks || (w.rows_only && !by_rows(at.problem))) continue;
        const pattern chosen = choose(at);
        total.add(at, chosen);
        if (by_rows(at.problem)) rows.add(at, chosen);
      }
    }
    const auto put = [&](account& from, const char* group) {
      if (from.ratios.empty()) return;
      chooser_figure f = from.finish();
      f.split = split;
      f.of = group;
      f.ranks = ranks;
      f.way = w.name;
      into.push_back(std::move(f));
    };
    if (!w.rows_only) put(total, "all");
    put(rows, "all_gather_gemm by rows");
  }
}

std::vector<tuning_entry> entries_of(const tables& from) {
  std::vector<tuning_entry> entries;
  for (const tuning_table& table : from)
    entries.insert(entries.end(), table.entries.begin(), table.entries.end());
  return entries;
}

/// Five folds of the held-out problems. Each fold is judged by rules that also learnt the other
/// folds.
std::vector<fold> with_other_problems(const tables& measured,
                                      const std::vector<tuning_entry>& held_out) {
  constexpr int folds = 5;
  const std::vector<int> fold_of = select::deal_folds(held_out.size(), folds, 1);
  std::vector<fold> parts;
  for (int number = 0; number < folds; ++number) {
    fold part{measured, {}};
    for (std::size_t i = 0; i < held_out.size(); ++i) {
      if (fold_of[i] == number) {
        part.judged.push_back(held_out[i]);
        continue;
      }
      for (tuning_table& table : part.learned) {
        if (table.entries.front().problem.ranks == held_out[i].problem.ranks)
          table.entries.push_back(held_out[i]);
      }
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

double rounded(double value) { return std::round(value * 1000) / 1000; }

}  // namespace

std::vector<chooser_figure> study_choosers(const std::vector<tuning_table>& measured,
                                           const std::vector<tuning_entry>& held_out,
                                           const std::vector<way>& ways) {
  const std::vector<tuning_entry> entries = entries_of(measured);
  std::set<int> rank_counts;
  std::set<std::pair<std::int64_t, std::int64_t>> shapes;
  for (const tuning_entry& e : entries) {
    rank_counts.insert(e.problem.ranks);
    shapes.insert({e.problem.n, e.problem.k});
  }
  std::vector<fold> by_shape;
  for (const auto& [n, k] : shapes) {
    tuned_problem like;
    like.n = n;
    like.k = k;
    fold part{without_shape(measured, like), entries};
    std::erase_if(part.judged, [n = n, k = k](const tuning_entry& e) {
      return e.problem.n != n || e.problem.k != k;
    });
    by_shape.push_back(std::move(part));
  }
  const std::vector<fold> by_problem = with_other_problems(measured, held_out);
  std::vector<chooser_figure> figures;
  for (const int ranks : rank_counts) {
    judge("other problems", ranks, ways, {{measured, held_out}}, figures);
    judge("other problems, learnt in part", ranks, ways, by_problem, figures);
    judge("leave one shape out", ranks, ways, by_shape, figures);
    fold others{measured, entries};
    for (tuning_table& t : others.learned)
      std::erase_if(t.entries, [&](const auto& e) { return e.problem.ranks == ranks; });
    std::erase_if(others.learned, [](const tuning_table& table) { return table.entries.empty(); });
    if (!others.learned.empty()) judge("leave one rank count out", ranks, ways, {others}, figures);
  }
  return figures;
}

std::vector<tuning_entry> read_check(std::string_view text, const std::string& origin) {
  const auto in = parse_json(text, origin);
  try {
    if (in.at("format") != "untax-bench-tune-check")
      throw error(errc::invalid_argument,
                  origin + " was not written by `untax bench tune --check --json`");
    std::vector<tuning_entry> entries;
    for (const auto& problem : in.at("problems")) {
      tuning_entry entry;
      entry.problem = {problem.at("operator"),
                       problem.value("gather", "rows") == name_of(gather_axis::k)
                           ? gather_axis::k
                           : gather_axis::rows,
                       problem.at("ranks"),
                       problem.at("m"),
                       problem.at("n"),
                       problem.at("k")};
      for (const pattern how : lessons::candidates()) {
        const std::string name(name_of(how));
        if (problem.at("seconds").contains(name))
          entry.seconds[how] = problem.at("seconds").at(name);
      }
      entries.push_back(std::move(entry));
    }
    return entries;
  } catch (const nlohmann::json::exception& wrong) {
    throw error(errc::invalid_argument, fmt::format("{}: {}", origin, wrong.what()));
  }
}

std::string to_json(const std::vector<chooser_figure>& figures) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const chooser_figure& f : figures) {
    out.push_back({{"split", f.split},
                   {"of", f.of},
                   {"ranks", f.ranks},
                   {"way", f.way},
                   {"problems", f.problems},
                   {"within_3_percent", rounded(f.within)},
                   {"mean_ratio", rounded(f.mean_ratio)},
                   {"p95_ratio", rounded(f.p95_ratio)},
                   {"worst_ratio", rounded(f.worst_ratio)},
                   {"worst", f.worst}});
  }
  return out.dump(1) + "\n";
}

}  // namespace untax::bench
