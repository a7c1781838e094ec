#include "ops/merge_partial_attention/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engines/host/convert.hpp"
#include "ops/common/deviation.hpp"
#include "ops/common/random_matrix.hpp"
#include "ops/merge_partial_attention/planning.hpp"

namespace untax {
namespace {

constexpr float empty = -std::numeric_limits<float>::infinity();
constexpr double log_of_2 = 0.69314718055994530942;
/// A logarithm of a sum is up to 64 in base 2, where half of the last bit is 2^-19; two roundings,
/// and the error of log2f, which is as large.
constexpr double logarithm_share = 0x1p-16;
/// Weights are powers of differences of such logarithms, so that they are off by 2^-17 at most, and
/// the sum of the sizes of a rank's weighted elements is up to six times their root mean square.
constexpr double weights_share = 0x1p-14;

/// Whether a rank has nothing for a row: one in four. For some rows no rank has anything.
bool is_empty(std::uint64_t seed, int rank, std::int64_t row) {
  const auto drawn = [&](std::uint64_t of) {
    return random_matrix{seed * 64 + 60}.at(row, static_cast<std::int64_t>(of));
  };
  return drawn(0) < -1.5F || drawn(1 + static_cast<std::uint64_t>(rank)) < -0.67F;
}

}  // namespace

merge_workload::merge_workload(world& w, const merge_partial_attention_problem& problem,
                               const merge_partial_attention_options& options, std::uint64_t seed)
    : problem_(problem),
      world_(w.size()),
      rank_(w.rank()),
      tokens_(problem.tokens),
      heads_(merge_partial_attention::heads_of(problem, w.size(), w.rank())),
      out_(static_cast<std::size_t>(problem.tokens * heads_.size * problem.head_dim) *
           size_of(problem.type)),
      lse_(static_cast<std::size_t>(problem.tokens * heads_.size)),
      op_(w, problem, options) {
  if (w.memory() == memory_kind::cuda) {
    const auto rows = static_cast<std::size_t>(problem.tokens * problem.heads);
    const auto row = static_cast<std::size_t>(problem.head_dim) * size_of(problem.type);
    gpu_.emplace(gpu_memory{bulk::scratch(rows * row), bulk::scratch(rows * sizeof(float)),
                            bulk::scratch(out_.size()),
                            bulk::scratch(lse_.size() * sizeof(float))});
  }
  refresh(seed);
  poison_result();
  // No rank may run while another one still allocates GPU memory.
  if (gpu_) w.barrier();
}

matrix merge_workload::rows_in(void* memory, std::int64_t rows) const {
  return {memory, problem_.type, rows, problem_.head_dim};
}

merge_workload::inputs merge_workload::inputs_of(int rank) const {
  const std::int64_t rows = problem_.tokens * problem_.heads;
  inputs made;
  made.partial_o.resize(static_cast<std::size_t>(rows * problem_.head_dim) *
                        size_of(problem_.type));
  const random_matrix elements{seed_ * 64 + static_cast<std::uint64_t>(rank)};
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto bytes = static_cast<std::int64_t>(size_of(problem_.type)) * problem_.head_dim;
    const matrix line{made.partial_o.data() + row * bytes, problem_.type, 1, problem_.head_dim};
    if (is_empty(seed_, rank, row)) {
      poison(line);
      made.partial_lse.push_back(empty);
      continue;
    }
    elements.fill(line, {row, 1}, {0, problem_.head_dim});
    made.partial_lse.push_back(20 + 4 * elements.at(row, problem_.head_dim));
  }
  return made;
}

void merge_workload::refresh(std::uint64_t seed) {
  seed_ = seed;
  own_ = inputs_of(rank_);
  if (!gpu_) return;
  bulk::copy_and_wait(gpu_->partial_o.data(), own_.partial_o.data(), own_.partial_o.size());
  bulk::copy_and_wait(gpu_->partial_lse.data(), own_.partial_lse.data(),
                      own_.partial_lse.size() * sizeof(float));
}

void merge_workload::poison_result() {
  poison(rows_in(out_.data(), problem_.tokens * heads_.size));
  std::ranges::fill(lse_, std::numeric_limits<float>::quiet_NaN());
  if (!gpu_) return;
  bulk::copy_and_wait(gpu_->out.data(), out_.data(), out_.size());
  bulk::copy_and_wait(gpu_->lse.data(), lse_.data(), lse_.size() * sizeof(float));
}

void merge_workload::run() { run(problem_.tokens); }

void merge_workload::run(std::int64_t tokens, stream_ref stream) {
  tokens_ = tokens;
  op_.run(as_const(rows_in(gpu_ ? gpu_->partial_o.data() : own_.partial_o.data(),
                           tokens * problem_.heads)),
          {gpu_ ? gpu_->partial_lse.data() : own_.partial_lse.data(), dtype::f32, tokens,
           problem_.heads},
          rows_in(gpu_ ? gpu_->out.data() : out_.data(), tokens * heads_.size),
          {gpu_ ? gpu_->lse.data() : lse_.data(), dtype::f32, tokens, heads_.size}, stream);
}

void merge_workload::fetch() const {
  if (!gpu_) return;
  bulk::copy_and_wait(out_.data(), gpu_->out.data(), out_.size());
  bulk::copy_and_wait(lse_.data(), gpu_->lse.data(), lse_.size() * sizeof(float));
}

std::vector<float> merge_workload::found() const {
  fetch();
  std::vector<float> floats(static_cast<std::size_t>(tokens_ * heads_.size * problem_.head_dim));
  host::widen({out_.data(), problem_.head_dim, problem_.type}, tokens_ * heads_.size,
              problem_.head_dim, floats.data(), problem_.head_dim);
  return floats;
}

double merge_workload::relative_error() const {
  return error_of(found(), std::span<const float>(lse_));
}

double merge_workload::error_of(std::span<const float> elements,
                                std::span<const float> log_sums) const {
  std::vector<inputs> all;
  for (int rank = 0; rank < world_; ++rank) all.push_back(inputs_of(rank));
  std::vector<std::vector<float>> parts;
  for (inputs& of : all) {
    parts.emplace_back(static_cast<std::size_t>(tokens_ * problem_.heads * problem_.head_dim));
    host::widen({of.partial_o.data(), problem_.head_dim, problem_.type}, tokens_ * problem_.heads,
                problem_.head_dim, parts.back().data(), problem_.head_dim);
  }
  const double base = problem_.log2 ? log_of_2 : 1;
  const double tolerance = tolerance_of(problem_);
  deviation merged(tolerance);
  deviation logarithms(tolerance);
  const auto width = static_cast<std::size_t>(problem_.head_dim);
  std::vector<double> right(width);
  for (std::int64_t i = 0; i < tokens_ * heads_.size; ++i) {
    const std::int64_t row = i / heads_.size * problem_.heads + heads_.begin + i % heads_.size;
    std::vector<double> weights;
    double total = 0;
    double squares = 0;
    for (const inputs& of : all) {
      weights.push_back(
          std::exp(static_cast<double>(of.partial_lse[static_cast<std::size_t>(row)]) * base));
      total += weights.back();
      squares += weights.back() * weights.back();
    }
    for (std::size_t j = 0; j < width; ++j) {
      const std::size_t at = static_cast<std::size_t>(row) * width + j;
      right[j] = 0;
      for (std::size_t r = 0; r < all.size(); ++r)
        if (weights[r] > 0) right[j] += weights[r] / total * static_cast<double>(parts[r][at]);
    }
    const auto index = static_cast<std::size_t>(i);
    // Weights are computed in fp32, and an element is rounded once.
    merged.add_row(elements.subspan(index * width, width), right,
                   roundoff_of(problem_.type) + weights_share,
                   total > 0 ? squares / (total * total) : 0);
    const double log_sum = std::log(total) / base;
    logarithms.add(static_cast<double>(log_sums[index]), log_sum,
                   logarithm_share * std::max(1.0, std::abs(log_sum)), 1);
  }
  return std::max(merged.relative_error(), logarithms.relative_error());
}

std::vector<std::byte> merge_workload::bits() const {
  fetch();
  std::vector<std::byte> all = out_;
  const auto bytes = std::as_bytes(std::span(lse_));
  all.insert(all.end(), bytes.begin(), bytes.end());
  return all;
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
  subject.rate_unit = "GB/s";
  subject.rate_name = "bytes_per_second";
  const double rows = static_cast<double>(problem.tokens) * static_cast<double>(problem.heads);
  const double row =
      static_cast<double>(problem.head_dim) * static_cast<double>(size_of(problem.type)) +
      sizeof(float);
  // The bytes that all ranks pass.
  subject.work = [rows, row](int ranks) { return ranks * rows * row; };
  subject.heap_bytes = [problem](int ranks) { return heap_for(problem, ranks); };
  subject.need = [problem, rows, row, memory](int ranks, const std::vector<pattern>& patterns,
                                              bool verify) {
    const bool on_gpu = memory == memory_kind::cuda;
    const auto times = static_cast<double>(patterns.size()) * (on_gpu ? 1 : ranks);
    const double packed = rows * static_cast<double>(problem.head_dim + 2) * sizeof(float);
    memory_need need;
    // Inputs and results; on the host both in fp32, too.
    need.activations = times * 2 * (rows * row + (on_gpu ? 0 : packed));
    need.heaps = times * static_cast<double>(heap_for(problem, ranks));
    need.heap_of_rank = on_gpu ? need.heaps : need.heaps / ranks;
    need.work_space = verify ? 2.0 * ranks * ranks * packed : 0;
    return need;
  };
  subject.make = [problem, options](world& w, pattern how,
                                    std::uint64_t seed) -> std::unique_ptr<trial> {
    merge_partial_attention_options chosen = options;
    chosen.how = how;
    return std::make_unique<merge_workload>(w, problem, chosen, seed);
  };
  return subject;
}

}  // namespace untax
