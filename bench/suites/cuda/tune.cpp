#include "bench/suites/tune.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <untax/core/build_info.hpp>
#include <untax/core/error.hpp>
#include <untax/core/version.hpp>
#include <untax/world/devices.hpp>

#include "ops/choice/measured_on.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"
#include "src/taxes/cuda/overlap_measurement.hpp"
#include "src/taxes/cuda/peak_rates.hpp"

namespace untax::bench {
namespace {

constexpr dtype tuned_type = dtype::bf16;

std::string now_iso8601() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

gemm_problem problem_of(const tuned_problem& p) {
  return {
      .m = p.m, .n = p.n, .k = p.k, .type = tuned_type, .gather = p.gather, .partials = p.partials};
}

std::vector<pattern> own_patterns() {
  std::vector<pattern> own;
  for (const pattern how : all_patterns) {
    if (how != pattern::automatic && how != pattern::bulk_library) own.push_back(how);
  }
  return own;
}

/// Measures the problems of one number of ranks.
class tuner {
 public:
  using clock = std::chrono::steady_clock;

  tuner(int ranks, const tune_options& options, clock::time_point end)
      : options_(options),
        end_(end),
        team_(ranks, heap_for_all(ranks, options) + link_bytes),
        link_rate_(link_rate(team_)),
        memory_rate_(memory_rate(team_)) {}

  void measure_into(tune_result& result) {
    tuning_table& table = result.table;
    table.device = team_.device_name();
    table.rates.link = std::max(table.rates.link, link_rate_);
    table.rates.memory = std::max(table.rates.memory, memory_rate_);
    for (const tuned_problem& p : options_.problems) {
      if (p.ranks != team_.size()) continue;
      if (clock::now() < end_) {
        measure_into(result, p);
      } else {
        ++result.left_out;
      }
      if (options_.progress) options_.progress();
    }
    result.wrong.insert(result.wrong.end(), wrong_.begin(), wrong_.end());
  }

 private:
  static std::size_t heap_for_all(int ranks, const tune_options& options) {
    std::vector<gemm_problem> problems;
    for (const tuned_problem& p : options.problems) {
      if (p.ranks == ranks) problems.push_back(problem_of(p));
    }
    // `automatic` may hold one more operator while it times patterns.
    return overlap_measurement::heap_for_any(problems, ranks,
                                             own_patterns().size() + (options.automatic ? 2 : 0));
  }

  std::vector<pattern> timed_patterns() const {
    std::vector<pattern> patterns = own_patterns();
    if (options_.automatic) patterns.push_back(pattern::automatic);
    return patterns;
  }

  void measure_into(tune_result& result, const tuned_problem& p) {
    auto& operator_tuner = by_operator_[p.operator_name];
    if (!operator_tuner) {
      operator_tuner =
          std::make_unique<overlap_measurement>(team_, operator_named(p.operator_name),
                                                overlap_settings{.patterns = timed_patterns(),
                                                                 .repeats = options_.repeats,
                                                                 .eager = false,
                                                                 .parts = false,
                                                                 .check_after = false});
    }
    const double tolerance = tolerance_of(operator_named(p.operator_name), problem_of(p));
    tuning_entry entry{p, {}};
    for (const pattern_figure& f : operator_tuner->measure(problem_of(p))) {
      if (f.asked == pattern::automatic) result.choices.push_back({*f.how, f.explanation});
      if (!f.time || f.asked == pattern::automatic) continue;
      if (!(f.error <= tolerance)) {
        wrong_.push_back(
            fmt::format("{}, {}, {}: the relative error is {:.1e}; right is at most "
                        "{:.1e}",
                        f.by, family_text(p), shape_text(p), f.error, tolerance));
        continue;
      }
      entry.seconds[*f.how] = f.time->median;
    }
    result.table.entries.push_back(std::move(entry));
  }

  const tune_options& options_;
  clock::time_point end_;
  gpu_team team_;
  double link_rate_;
  double memory_rate_;
  std::vector<std::string> wrong_;
  std::map<std::string, std::unique_ptr<overlap_measurement>> by_operator_;
};

/// Sorts entries as the grids are sorted, whatever order problems were measured in.
void sort_entries(std::vector<tuning_entry>& entries) {
  std::ranges::stable_sort(entries, {}, [](const tuning_entry& entry) {
    const tuned_problem& p = entry.problem;
    return std::tuple(p.ranks, family_text(p), p.n, p.k, p.m);
  });
}

/// The highest rate of any product, in FLOP per second.
double flops_of(const tuning_table& table) {
  double most = 0;
  for (const tuning_entry& entry : table.entries) {
    const tuned_problem& p = entry.problem;
    const operator_entry& op = operator_named(p.operator_name);
    const gemm_share share = op.share(problem_of(p), p.ranks, 0);
    const double flops =
        2.0 * static_cast<double>(p.m) * static_cast<double>(share.b_rows.size * share.b_cols.size);
    for (const auto& [how, seconds] : entry.seconds) most = std::max(most, flops / seconds);
  }
  return most;
}

}  // namespace

tune_result run_tuning(const tune_options& options) {
  tune_result result;
  tuning_table& table = result.table;
  table.type = tuned_type;
  table.date = now_iso8601();
  table.commit = build_commit();
  table.kernels = kernel_sources();
  table.version = version;
  table.driver = survey_devices(false).driver;
  table.library = bulk::blas().text + ", " + bulk::nccl().text;
  table.repeats = options.repeats;
  std::set<int> rank_counts;
  for (const tuned_problem& p : options.problems) rank_counts.insert(p.ranks);
  auto end = tuner::clock::time_point::max();
  if (options.seconds > 0) {
    end = tuner::clock::now() + std::chrono::duration_cast<tuner::clock::duration>(
                                    std::chrono::duration<double>(options.seconds));
  }
  for (const int ranks : rank_counts) tuner(ranks, options, end).measure_into(result);
  if (!options.automatic) sort_entries(table.entries);
  table.rates.flops = flops_of(table);
  return result;
}

}  // namespace untax::bench
