#include <fmt/format.h>

#include "ops/common/device_workload.hpp"
#include "ops/common/workload.hpp"

namespace untax {
namespace {

/// "all_gather_gemm, m 512, n 1024, k 768, fp32, gather rows".
std::string describe(const operator_entry& entry, const gemm_problem& problem) {
  std::string text = fmt::format("{}, m {}, n {}, k {}, {}", entry.name, problem.m, problem.n,
                                 problem.k, name_of(problem.type));
  if (entry.gathers) text += fmt::format(", gather {}", name_of(problem.gather));
  if (entry.has_partials) text += fmt::format(", partials {}", name_of(problem.partials));
  return text;
}

/// Multiplications and additions of all ranks in one run.
double operations_of(const operator_entry& entry, const gemm_problem& problem, int ranks) {
  double operations = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const gemm_share share = entry.share(problem, ranks, rank);
    operations += 2.0 * static_cast<double>(problem.m) * static_cast<double>(share.b_rows.size) *
                  static_cast<double>(share.b_cols.size);
  }
  return operations;
}

}  // namespace

trial_subject subject_of(const operator_entry& entry, const gemm_problem& problem,
                         const operator_options& options, memory_kind memory) {
  const auto text = [](std::string_view name) { return std::string(name); };
  trial_subject subject;
  subject.name = entry.name;
  subject.description = describe(entry, problem);
  subject.facts = {
      {"m", problem.m}, {"n", problem.n}, {"k", problem.k}, {"dtype", text(name_of(problem.type))}};
  if (entry.gathers) subject.facts.emplace_back("gather", text(name_of(problem.gather)));
  if (entry.has_partials) subject.facts.emplace_back("partials", text(name_of(problem.partials)));
  subject.memory = memory;
  for (const pattern p : all_patterns) {
    if (p != pattern::automatic && (on_host(p) || memory == memory_kind::cuda))
      subject.patterns.push_back(p);
  }
  subject.tolerance = tolerance_of(problem);
  subject.rate_unit = "GFLOP/s";
  subject.rate_name = "flops_per_second";
  subject.work = [&entry, problem](int ranks) { return operations_of(entry, problem, ranks); };
  subject.heap_bytes = [problem](int ranks) { return heap_for(problem, ranks); };
  subject.make = [&entry, problem, options](world& w, pattern how,
                                            std::uint64_t seed) -> std::unique_ptr<trial> {
    operator_options chosen = options;
    chosen.how = how;
    if (w.memory() == memory_kind::cuda)
      return std::make_unique<device_workload>(w, entry, problem, chosen, seed);
    return std::make_unique<workload>(w, entry, problem, chosen, seed);
  };
  return subject;
}

}  // namespace untax
