#include "bench/suites/overlap.hpp"

#include <algorithm>
#include <utility>

#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"
#include "src/taxes/cuda/overlap_measurement.hpp"
#include "src/taxes/cuda/peak_rates.hpp"

namespace untax::bench {
namespace {

constexpr double signal_seconds = 2.7e-6;  ///< of a round trip; part of the bound of decode

void set_bound(overlap_row& row, const operator_entry& entry, const overlap_report& report) {
  const gemm_problem& p = row.problem;
  const bool decode = row.shapes == overlap_shapes::decode;
  const auto size = static_cast<double>(size_of(p.type));
  const gemm_share share = entry.share(p, report.ranks, 0);
  const double weights =
      static_cast<double>(share.b_rows.size) * static_cast<double>(share.b_cols.size);
  double most = 0;
  for (int rank = 0; rank < report.ranks; ++rank)
    most = std::max(most, entry.bytes_sent(p, report.ranks, rank));
  row.compute_bound =
      decode ? weights * size / report.memory_rate : row.seconds_of(library_gemm_alone);
  row.link_bound = most / report.link_rate + (decode ? signal_seconds : 0);
}

}  // namespace

overlap_report run_overlap_suite(const overlap_options& options) {
  const int most_ranks = options.ranks == 0 ? 8 : options.ranks;
  const bool capacity = std::ranges::count(options.patterns, pattern::automatic) > 0;
  gpu_team team(options.ranks,
                overlap_measurement::heap_for_any(options.problems, most_ranks,
                                                  options.patterns.size(), capacity) +
                    link_bytes);
  overlap_report report;
  report.operator_name = options.operator_name;
  report.ranks = team.size();
  report.type = options.problems.front().type;
  report.device = team.device_name();
  report.library = bulk::blas().text + ", " + bulk::nccl().text;
  report.shapes = options.shapes;
  report.seed = options.seed;
  report.link_rate = link_rate(team);
  report.memory_rate = memory_rate(team);
  const operator_entry& entry = operator_named(options.operator_name);
  overlap_measurement measured(
      team, entry,
      {.patterns = options.patterns, .repeats = options.repeats, .capacity = capacity});
  for (const gemm_problem& problem : options.problems) {
    overlap_row row;
    row.problem = problem;
    row.shapes = options.shapes;
    row.tolerance = tolerance_of(entry, problem);
    row.figures = measured.measure(problem);
    set_bound(row, entry, report);
    report.rows.push_back(std::move(row));
    if (options.progress) options.progress();
  }
  return report;
}

}  // namespace untax::bench
