#include <algorithm>

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
  if (entry.sums_to) text += fmt::format(", partials {}", name_of(partials_type(problem)));
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

/// fp64 values of a check: all rows of the rank's part of the result, and a block of its columns.
double check_bytes(const gemm_problem& problem, const gemm_share& share) {
  constexpr double columns = 256;
  const auto rows = static_cast<double>(share.c_rows.size);
  return sizeof(double) * ((rows + columns) * static_cast<double>(problem.k) + rows * columns);
}

memory_need host_need(const operator_entry& entry, const gemm_problem& problem,
                      const operator_options& options, int ranks,
                      const std::vector<pattern>& patterns, bool verify) {
  memory_need all;
  double heap = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    memory_need mine;
    for (const pattern how : patterns) {
      operator_options chosen = options;
      chosen.how = how;
      mine += operands_need(entry, problem, ranks, rank);
      mine += operator_need(entry, problem, chosen, ranks, rank);
    }
    if (verify) mine.work_space += check_bytes(problem, entry.share(problem, ranks, rank));
    heap = std::max(heap, mine.heap_of_rank);
    all += mine;
  }
  all.heap_of_rank = heap;
  return all;
}

/// The need of the rank that takes most, which is rank 0: shards are rounded up.
memory_need device_need(const operator_entry& entry, const gemm_problem& problem, int ranks,
                        std::size_t patterns) {
  const auto times = static_cast<double>(patterns);
  memory_need need = operands_need(entry, problem, ranks, 0);
  const gemm_share share = entry.share(problem, ranks, 0);
  const auto rows = static_cast<double>(share.c_rows.size);
  const auto cols = static_cast<double>(share.c_cols.size);
  need.weights *= times;
  // A result that lies in the heap is part of it.
  need.activations *= times;
  // The operands and the result of the reference, which is one GEMM.
  need.work_space = times * ((rows + cols) * static_cast<double>(problem.k) *
                                 static_cast<double>(size_of(problem.type)) +
                             rows * cols * sizeof(float));
  need.heap_of_rank = static_cast<double>(device_heap_for(entry, problem, ranks)) * times;
  need.heaps = need.heap_of_rank;
  return need;
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
  if (entry.sums_to) subject.facts.emplace_back("partials", text(name_of(partials_type(problem))));
  subject.memory = memory;
  for (const pattern p : all_patterns) {
    if (p != pattern::automatic && (on_host(p) || memory == memory_kind::cuda))
      subject.patterns.push_back(p);
  }
  subject.tolerance = tolerance_of(entry, problem);
  subject.rate_unit = "GFLOP/s";
  subject.rate_name = "flops_per_second";
  subject.work = [&entry, problem](int ranks) { return operations_of(entry, problem, ranks); };
  subject.heap_bytes = [&entry, problem, phases = options.phases, memory](int ranks) {
    return memory == memory_kind::cuda ? device_heap_for(entry, problem, ranks, phases)
                                       : heap_for(problem, ranks, phases);
  };
  subject.need = [&entry, problem, options, memory](int ranks, const std::vector<pattern>& patterns,
                                                    bool verify) {
    return memory == memory_kind::cuda
               ? device_need(entry, problem, ranks, patterns.size())
               : host_need(entry, problem, options, ranks, patterns, verify);
  };
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
