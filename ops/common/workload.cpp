#include "ops/common/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <thread>

#include "engines/host/openblas.hpp"
#include "ops/common/deviation.hpp"
#include "ops/common/device_reference.hpp"
#include "ops/common/gemm_inputs.hpp"
#include "ops/common/random_matrix.hpp"
#include "ops/common/summing_layout.hpp"

namespace untax {
namespace {

/// Columns of the reference that are computed at a time.
constexpr std::int64_t block_columns = 256;

/// A part of a matrix, rounded to a type.
std::vector<double> part_of(const random_matrix& whole, dtype type, range rows, range cols) {
  std::vector<std::byte> rounded(static_cast<std::size_t>(cols.size) * size_of(type));
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(rows.size * cols.size));
  for (std::int64_t i = 0; i < rows.size; ++i) {
    whole.fill({rounded.data(), type, 1, cols.size}, {rows.begin + i, 1}, cols);
    const std::vector<double> line = widened(rounded.data(), cols.size, type);
    values.insert(values.end(), line.begin(), line.end());
  }
  return values;
}

double area(const extent& size) {
  return static_cast<double>(size.rows) * static_cast<double>(size.cols);
}

int workers_of(const operator_options& options, int world) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return options.workers > 0 ? options.workers : std::max(cores / world, 1);
}

/// A plan of about the same tiles as the operator makes.
protocol_plan about(const operator_entry& entry, const gemm_problem& problem,
                    const operator_options& options, int world, int rank) {
  const auto chosen = [](std::int64_t asked, std::int64_t usual, std::int64_t most) {
    return std::clamp<std::int64_t>(asked > 0 ? asked : usual, 1, std::max<std::int64_t>(most, 1));
  };
  protocol_plan plan;
  plan.world = world;
  plan.rank = rank;
  plan.how = options.how == pattern::automatic ? pattern::fused_specialized : options.how;
  plan.move = options.move;
  plan.workers = workers_of(options, world);
  plan.senders = std::max(options.senders, 1);
  if (entry.phases)
    set_phases(plan, options.phases > 0 ? options.phases
                                        : entry.phases(problem, world, memory_kind::host));
  plan.tile_m = chosen(options.tile_m, 512, problem.m);
  plan.tile_n = chosen(options.tile_n, 2048, problem.n);
  plan.panel_k = options.panel_k > 0 ? options.panel_k : 2048;
  return plan;
}

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

/// The need of a rank on the host.
memory_need host_need(const operator_entry& entry, const gemm_problem& problem,
                      const operator_options& options, int ranks, int rank,
                      const std::vector<pattern>& patterns, bool verify) {
  memory_need need;
  for (const pattern how : patterns) {
    operator_options chosen = options;
    chosen.how = how;
    need += operands_need(entry, problem, ranks, rank);
    need += operator_need(entry, problem, chosen, ranks, rank);
  }
  if (verify) need.work_space += check_bytes(problem, entry.share(problem, ranks, rank));
  return need;
}

/// The need of a rank on its GPU, for one pattern.
memory_need device_need(const operator_entry& entry, const gemm_problem& problem, int ranks,
                        int rank) {
  memory_need need = operands_need(entry, problem, ranks, rank);
  const gemm_share share = entry.share(problem, ranks, rank);
  const auto rows = static_cast<double>(share.c_rows.size);
  const auto cols = static_cast<double>(share.c_cols.size);
  // The operands and the result of the reference, which is one GEMM.
  need.work_space =
      (rows + cols) * static_cast<double>(problem.k) * static_cast<double>(size_of(problem.type)) +
      rows * cols * sizeof(float);
  need.heaps = need.heap_of_rank = static_cast<double>(device_heap_for(entry, problem, ranks));
  return need;
}

}  // namespace

gemm_shards::gemm_shards(const operator_entry& entry, const gemm_problem& problem, int world,
                         int rank, memory_kind memory)
    : entry_(&entry),
      problem_(problem),
      share_(entry.share(problem, world, rank)),
      world_(world),
      right_(memory == memory_kind::cuda
                 ? std::make_unique<device_reference>(entry, problem, world, rank)
                 : nullptr) {}

gemm_shards::gemm_shards(gemm_shards&&) noexcept = default;
gemm_shards::~gemm_shards() = default;

std::vector<trial_operand> gemm_shards::operands() const {
  const std::size_t element = size_of(problem_.type);
  return {{"a", operand_role::input, share_.a_rows.size, share_.a_cols.size, element},
          {"weights", operand_role::weight, share_.b_rows.size, share_.b_cols.size, element},
          {.name = "c",
           .role = operand_role::result,
           .rows = share_.c_rows.size,
           .cols = share_.c_cols.size,
           .element_bytes = element,
           .in_operator = entry_->result_in_heap}};
}

void gemm_shards::place_results(const runnable& op, operand_set& set) {
  if (const matrix own = op.result(); own.data != nullptr) set[c].lie_at(own.data);
}

void gemm_shards::fill(std::uint64_t seed, operand_set& set) const {
  if (set.on_gpu()) {
    fill_on(set.stream().get(), seed, set);
    return set.stream().wait("making inputs failed");
  }
  whole_a(seed).fill(elements(set[a]), share_.a_rows, share_.a_cols);
  whole_b(seed, share_).fill(elements(set[weights]), share_.b_rows, share_.b_cols);
}

void gemm_shards::fill_on(stream_ref stream, std::uint64_t seed, operand_set& set) const {
  fill_device_inputs(share_, seed, elements(set[a]), elements(set[weights]), stream);
}

void gemm_shards::run(runnable& op, operand_set& set, stream_ref stream) const {
  op.run(as_const(elements(set[a])), as_const(elements(set[weights])), elements(set[c]), stream);
}

double gemm_shards::relative_error(std::uint64_t seed, operand_set& set) const {
  if (set.on_gpu()) {
    right_->compute(seed, set.stream().get());
    return right_->error_of(as_const(elements(set[c])), set.stream().get());
  }
  const std::int64_t k = problem_.k;
  const std::int64_t m = share_.c_rows.size;
  const double share = element_share_of(*entry_, problem_, world_);
  const auto rows_of_a = part_of(whole_a(seed), problem_.type, share_.c_rows, {0, k});
  const matrix result = elements(set[c]);
  std::vector<double> reference(static_cast<std::size_t>(m * block_columns));
  deviation found(tolerance_of(*entry_, problem_));
  const pieces blocks{share_.c_cols, block_columns};
  for (int i = 0; m > 0 && i < blocks.count(); ++i) {
    const range cols = blocks.at(i);
    const auto rows_of_b = part_of(whole_b(seed, share_), problem_.type, cols, {0, k});
    host::blas().dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<blasint>(m),
                       static_cast<blasint>(cols.size), static_cast<blasint>(k), 1.0,
                       rows_of_a.data(), static_cast<blasint>(k), rows_of_b.data(),
                       static_cast<blasint>(k), 0.0, reference.data(),
                       static_cast<blasint>(cols.size));
    const auto count = static_cast<std::size_t>(cols.size);
    for (std::int64_t row = 0; row < m; ++row) {
      const auto* line = static_cast<const std::byte*>(row_of(result, row).data);
      const auto first = static_cast<std::size_t>(cols.begin - share_.c_cols.begin);
      const std::vector<double> elements =
          widened(line + first * size_of(result.type), cols.size, result.type);
      // With N(0, 1) inputs a square is expected to be k.
      found.add_row(
          std::span<const double>(elements),
          std::span<const double>(reference).subspan(static_cast<std::size_t>(row) * count, count),
          share, static_cast<double>(k));
    }
  }
  return found.relative_error();
}

double tolerance_of(const operator_entry& entry, const gemm_problem& problem) noexcept {
  const auto type_bytes = [](dtype type) {
    return type == dtype::f32 ? 1e-5 : type == dtype::f16 ? 6e-4 : 4e-3;
  };
  if (!entry.sums_to) return type_bytes(problem.type);
  return std::max(type_bytes(problem.type), 1.5 * type_bytes(partials_type(problem)));
}

double element_share_of(const operator_entry& entry, const gemm_problem& problem,
                        int ranks) noexcept {
  const double sent = entry.sums_to ? partials_share(partials_type(problem), ranks) : 0;
  return roundoff_of(problem.type) + addition_share(problem.k) + sent;
}

std::size_t heap_for(const gemm_problem& problem, int world, int phases) noexcept {
  // Two sets of the gathered A and of A as ranks offer it, or of all partial results, and C itself.
  // Shards are rounded up, so there are a few rows more.
  const auto rows = static_cast<double>(problem.m + world);
  const double gathered = rows * static_cast<double>(problem.k + shard_granularity * world) *
                          static_cast<double>(size_of(problem.type)) * 4;
  // In one phase every rank has the partial results of all ranks. untax chooses one phase if they
  // are small, or if there are fewer rows than ranks.
  const double sources = phases == 1 || (phases == 0 && problem.m < world) ? world : 1;
  const double partial = rows * static_cast<double>(problem.n) * 4 * (2 + 2 * sources);
  return whole_bytes(gathered + partial + 0x1p24);
}

std::size_t device_heap_for(const operator_entry& entry, const gemm_problem& problem, int world,
                            int phases) noexcept {
  const std::size_t usual = heap_for(problem, world, phases);
  if (!entry.sums_to) return usual;
  // Two sets of the partial results that every rank sends: the rows that one rank adds, or all
  // rows, and the rest of its tiles above and below them.
  constexpr double edge = 256;
  if (phases == 0 && entry.phases) phases = entry.phases(problem, world, memory_kind::cuda);
  const bool one_phase = entry.phases && phases == 1;
  const double rows = static_cast<double>(problem.m) / (one_phase ? 1 : world) + 2 * edge;
  const double cols = static_cast<double>(problem.n) + edge;
  const double sources = 2.0 * world;
  const double result = static_cast<double>(problem.m) * cols * sizeof(float);
  return std::max(usual, whole_bytes(rows * cols * sources * sizeof(float) + result + 0x1p24));
}

memory_need operands_need(const operator_entry& entry, const gemm_problem& problem, int world,
                          int rank) {
  return need_of(gemm_shards(entry, problem, world, rank).operands());
}

memory_need operator_need(const operator_entry& entry, const gemm_problem& problem,
                          const operator_options& options, int world, int rank) {
  memory_need need;
  if (operands_need(entry, problem, world, rank).total() > beyond_any_machine) return need;
  const protocol_plan plan = about(entry, problem, options, world, rank);
  const program steps = entry.protocol(problem, plan);
  const dtype moved = entry.sums_to ? partials_type(problem) : problem.type;
  need.heaps = (area(steps.inbox()) + area(steps.outbox())) * static_cast<double>(size_of(moved));
  need.heap_of_rank = need.heaps;
  if (problem.type != dtype::f32) {
    // A worker keeps a tile in fp32, and widened operands for it: of the weights as much as fits in
    // a cache.
    const extent tile = steps.tile_extent();
    const double widened = static_cast<double>(tile.rows) * static_cast<double>(problem.k);
    const double weights = static_cast<double>(problem.n) * static_cast<double>(problem.k);
    need.work_space = plan.workers * (sizeof(float) * (area(tile) + widened) +
                                      std::min(0x1p24, sizeof(float) * weights));
  }
  return need;
}

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
  subject.need = need_of_ranks(
      memory, [&entry, problem, options, memory](
                  int ranks, int rank, const std::vector<pattern>& patterns, bool verify) {
        if (memory == memory_kind::host)
          return host_need(entry, problem, options, ranks, rank, patterns, verify);
        memory_need need;
        for (std::size_t i = 0; i < patterns.size(); ++i)
          need += device_need(entry, problem, ranks, rank);
        return need;
      });
  subject.make = maker_of_trials<workload>(options, std::cref(entry), problem);
  return subject;
}

}  // namespace untax
