#include "ops/merge_partial_attention/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "ops/common/deviation.hpp"
#include "ops/common/random_matrix.hpp"
#include "ops/merge_partial_attention/planning.hpp"
#include "ops/merge_partial_attention/spec.hpp"

namespace untax {
namespace {

constexpr float lse_of_no_keys = -std::numeric_limits<float>::infinity();
constexpr double log_of_2 = 0.69314718055994530942;
/// A logarithm of a sum is up to 64 in base 2, where half of the last bit is 2^-19; two roundings,
/// and the error of log2f, which is as large.
constexpr double logarithm_share = 0x1p-16;
/// Weights are powers of differences of such logarithms, so that they are off by 2^-17 at most, and
/// the sum of the sizes of a rank's weighted elements is up to six times their root mean square.
constexpr double weights_share = 0x1p-14;

/// Whether a rank has no keys for a row: one row in four. For some rows no rank has keys.
bool is_empty(std::uint64_t seed, int rank, std::int64_t row) {
  const auto drawn = [&](std::uint64_t subject_number) {
    return random_matrix{seed * 64 + 60}.at(row, static_cast<std::int64_t>(subject_number));
  };
  return drawn(0) < -1.5F || drawn(1 + static_cast<std::uint64_t>(rank)) < -0.67F;
}

}  // namespace

merge_operands::merge_operands(const merge_partial_attention_problem& problem, int world, int rank)
    : tokens(problem.tokens),
      problem_(problem),
      world_(world),
      rank_(rank),
      heads_(merge_partial_attention::heads_of(problem, world, rank)) {}

std::vector<trial_operand> merge_operands::operands() const {
  return trial_operands(spec_of<merge_partial_attention>::operands(problem_, world_, rank_));
}

std::unique_ptr<merge_partial_attention> merge_operands::make(
    world& w, const merge_partial_attention_options& options) const {
  return std::make_unique<merge_partial_attention>(w, problem_, options);
}

void merge_operands::fill(std::uint64_t seed, int rank, const matrix& elements,
                          float* log_sums) const {
  const random_matrix values{seed * 64 + static_cast<std::uint64_t>(rank)};
  for (std::int64_t row = 0; row < elements.rows; ++row) {
    const matrix line = row_of(elements, row);
    if (is_empty(seed, rank, row)) {
      poison(line);
      log_sums[row] = lse_of_no_keys;
      continue;
    }
    values.fill(line, {row, 1}, {0, line.cols});
    log_sums[row] = 20 + 4 * values.at(row, line.cols);
  }
}

void merge_operands::fill(std::uint64_t seed, operand_set& set) const {
  fill(seed, rank_, set[partial_o].host_elements(problem_.type),
       static_cast<float*>(set[partial_lse].host()));
}

void merge_operands::run(merge_partial_attention& op, operand_set& set, stream_ref stream) const {
  const auto rows = [&](std::size_t i, std::int64_t heads) {
    return matrix(set[i].data(), problem_.type, tokens * heads, problem_.head_dim);
  };
  const auto logarithms = [&](std::size_t i, std::int64_t heads) {
    return matrix(set[i].data(), dtype::f32, tokens, heads);
  };
  op.run(as_const(rows(partial_o, problem_.heads)),
         as_const(logarithms(partial_lse, problem_.heads)), rows(out, heads_.size),
         logarithms(lse, heads_.size), stream);
}

double merge_operands::relative_error(std::uint64_t seed, operand_set& set) const {
  const std::int64_t rows = problem_.tokens * problem_.heads;
  std::vector<std::vector<double>> parts;
  std::vector<std::vector<float>> part_logs;
  std::vector<std::byte> part(static_cast<std::size_t>(rows * problem_.head_dim) *
                              size_of(problem_.type));
  for (int rank = 0; rank < world_; ++rank) {
    part_logs.emplace_back(static_cast<std::size_t>(rows));
    fill(seed, rank, {part.data(), problem_.type, rows, problem_.head_dim},
         part_logs.back().data());
    parts.push_back(widened(part.data(), rows * problem_.head_dim, problem_.type));
  }
  const double base = problem_.log2 ? log_of_2 : 1;
  const double tolerance = tolerance_of(problem_);
  deviation merged(tolerance);
  deviation logarithms(tolerance);
  const std::int64_t own_rows = tokens * heads_.size;
  const std::vector<double> elements =
      widened(set[out].fetched(), own_rows * problem_.head_dim, problem_.type);
  const auto log_sums = set[lse].values<float>();
  const auto width = static_cast<std::size_t>(problem_.head_dim);
  std::vector<double> right(width);
  for (std::int64_t i = 0; i < own_rows; ++i) {
    const auto row =
        static_cast<std::size_t>(i / heads_.size * problem_.heads + heads_.begin + i % heads_.size);
    std::vector<double> weights;
    double total = 0;
    double squares = 0;
    for (const std::vector<float>& logs : part_logs) {
      weights.push_back(std::exp(static_cast<double>(logs[row]) * base));
      total += weights.back();
      squares += weights.back() * weights.back();
    }
    for (std::size_t j = 0; j < width; ++j) {
      right[j] = 0;
      for (std::size_t r = 0; r < parts.size(); ++r)
        if (weights[r] > 0) right[j] += weights[r] / total * parts[r][row * width + j];
    }
    const auto index = static_cast<std::size_t>(i);
    // Weights are computed in fp32, and an element is rounded once.
    merged.add_row(std::span<const double>(elements).subspan(index * width, width), right,
                   roundoff_of(problem_.type) + weights_share,
                   total > 0 ? squares / (total * total) : 0);
    const double log_sum = std::log(total) / base;
    logarithms.add(static_cast<double>(log_sums[index]), log_sum,
                   logarithm_share * std::max(1.0, std::abs(log_sum)), 1);
  }
  return std::max(merged.relative_error(), logarithms.relative_error());
}

double tolerance_of(const merge_partial_attention_problem& problem) noexcept {
  return problem.type == dtype::f32 ? 2e-5 : problem.type == dtype::f16 ? 1e-3 : 5e-3;
}

trial_subject subject_of(const merge_partial_attention_problem& problem,
                         const merge_partial_attention_options& options, memory_kind memory) {
  trial_subject subject;
  subject.name = merge_partial_attention_name;
  subject.description = fmt::format("{}, {}", merge_partial_attention_name, describe(problem));
  subject.facts = {{"tokens", problem.tokens},
                   {"heads", problem.heads},
                   {"head_dim", problem.head_dim},
                   {"own heads", problem.get == merged_heads::own ? 1 : 0},
                   {"dtype", std::string(name_of(problem.type))}};
  subject.memory = memory;
  if (memory == memory_kind::cuda) {
    subject.patterns = {pattern::fused_sequential};
  } else {
    subject.patterns.assign(merge_patterns.begin(), merge_patterns.end());
  }
  subject.tolerance = tolerance_of(problem);
  const double rows = static_cast<double>(problem.tokens) * static_cast<double>(problem.heads);
  const double row =
      static_cast<double>(problem.head_dim) * static_cast<double>(size_of(problem.type)) +
      sizeof(float);
  // The bytes that all ranks pass to the operator.
  subject.work = [rows, row](int ranks) { return ranks * rows * row; };
  subject.heap_bytes = [problem](int ranks) { return heap_for(problem, ranks); };
  subject.need = need_of_ranks(
      memory, [=](int ranks, int rank, const std::vector<pattern>& patterns, bool verify) {
        const auto times = static_cast<double>(patterns.size());
        memory_need need = need_of(merge_operands(problem, ranks, rank).operands());
        const double packed = rows * static_cast<double>(problem.head_dim + 2) * sizeof(float);
        // On the host inputs and results are kept in fp32, too.
        if (memory == memory_kind::host) need.activations += 2 * packed;
        need.activations *= times;
        need.heaps = need.heap_of_rank = times * static_cast<double>(heap_for(problem, ranks));
        need.work_space = verify ? 2.0 * ranks * packed : 0;
        return need;
      });
  subject.make = maker_of_trials<merge_workload>(options, problem);
  return subject;
}

trial_subject spec_of<merge_partial_attention>::subject(const problem& p, const options& o,
                                                        memory_kind memory, bool /*uneven*/) {
  return subject_of(p, o, memory);
}

bool spec_of<merge_partial_attention>::has_gpu_kernel(const problem& p, const options& /*o*/) {
  return p.head_dim % chunk_elements(p.type) == 0;
}

}  // namespace untax
