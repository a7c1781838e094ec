#include "ops/all_reduce_norm/workload.hpp"

#include <fmt/format.h>

#include "ops/all_reduce_norm/planning.hpp"
#include "ops/all_reduce_norm/spec.hpp"
#include "ops/common/random_matrix.hpp"

namespace untax {
namespace {

/// With this scale normalised elements, which are about 1, use most of the range of e4m3.
constexpr float usual_scale = 1.0F / 16;

/// The values that a rank adds; -1: the residual, -2: the weight.
random_matrix part_of(std::uint64_t seed, int rank) noexcept {
  return {seed * 1000 + 10 + static_cast<std::uint64_t>(rank)};
}

}  // namespace

std::vector<trial_operand> norm_operands::operands() const {
  auto operands = trial_operands(spec_of<all_reduce_norm>::operands(problem_, world_, rank_));
  operands.resize(scales + 1);  // the scale after these operands is passed by value
  for (const std::size_t own : {x, out, scales}) operands[own].in_operator = true;
  if (problem_.output != norm_output::e4m3_per_token) operands[scales].rows = 0;
  return operands;
}

std::unique_ptr<all_reduce_norm> norm_operands::make(world& w,
                                                     const operator_options& options) const {
  return std::make_unique<all_reduce_norm>(w, problem_, options);
}

void norm_operands::place_results(const all_reduce_norm& op, operand_set& set) {
  const norm_results own = op.result();
  set[x].lie_at(own.x);
  set[out].lie_at(own.out);
  set[scales].lie_at(own.scales);
}

void norm_operands::fill(std::uint64_t seed, operand_set& set) const {
  const auto fill = [&](std::size_t i, int part) {
    const matrix to = set[i].host_elements(problem_.type);
    part_of(seed, part).fill(to, {0, to.rows}, {0, to.cols});
  };
  fill(in, rank_);
  fill(residual, -1);
  fill(weight, -2);
}

void norm_operands::run(all_reduce_norm& op, operand_set& set, stream_ref stream) const {
  op.run({as_const(set[in].elements(problem_.type)),
          as_const(set[residual].elements(problem_.type)), set[weight].data(), usual_scale},
         stream);
}

double norm_operands::relative_error(std::uint64_t seed, operand_set& set) const {
  std::vector<std::byte> memory(static_cast<std::size_t>(problem_.hidden) * size_of(problem_.type));
  /// A row as it was passed.
  const auto passed = [&](int part, std::int64_t row) {
    part_of(seed, part)
        .fill({memory.data(), problem_.type, 1, problem_.hidden}, {row, 1}, {0, problem_.hidden});
    return widened(memory.data(), problem_.hidden, problem_.type);
  };
  norm_reference right(problem_, world_, passed(-2, 0));
  const std::size_t row_of_x = memory.size();
  const std::size_t row_of_out = static_cast<std::size_t>(problem_.hidden) * normed_size(problem_);
  const auto stored = set[x].values<std::byte>();
  const auto normed = set[out].values<std::byte>();
  const auto found_scales = set[scales].values<float>();
  for (std::int64_t token = 0; token < problem_.tokens; ++token) {
    std::vector<double> sum = passed(-1, token);
    for (int rank = 0; rank < world_; ++rank) {
      const std::vector<double> part = passed(rank, token);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    }
    const auto row = static_cast<std::size_t>(token);
    right.add_row(sum, {&stored[row * row_of_x], &normed[row * row_of_out],
                        found_scales.empty() ? usual_scale : found_scales[row]});
  }
  return right.relative_error();
}

trial_subject subject_of(const all_reduce_norm_problem& p, const operator_options& options,
                         memory_kind memory) {
  trial_subject subject;
  subject.name = all_reduce_norm_name;
  subject.description = fmt::format(
      "{}, tokens {}, hidden {}, {}{}", subject.name, p.tokens, p.hidden, name_of(p.type),
      p.output == norm_output::same ? "" : fmt::format(", out {}", name_of(p.output)));
  subject.facts = {{"tokens", p.tokens},
                   {"hidden", p.hidden},
                   {"dtype", std::string(name_of(p.type))},
                   {"out", std::string(name_of(p.output))}};
  const bool on_gpus = memory == memory_kind::cuda;
  subject.memory = memory;
  for (const pattern how : host_patterns) {
    if (on_gpus ? how == pattern::fused_sequential : norm_has_pattern(how))
      subject.patterns.push_back(how);
  }
  subject.tolerance = tolerance_of(p);
  // The fewest elements that a rank reads and writes: its input, the residual, and both results.
  const double elements = static_cast<double>(p.tokens) * static_cast<double>(p.hidden);
  const double element = static_cast<double>(size_of(p.type));
  subject.work = [=, normed = static_cast<double>(normed_size(p))](int ranks) {
    return ranks * elements * (3 * element + normed);
  };
  subject.heap_bytes = [p, phases = on_gpus ? 1 : options.phases](int ranks) {
    return heap_for(p, ranks, phases);
  };
  subject.need = need_of_ranks(
      memory, [p, heap_bytes = subject.heap_bytes](
                  int ranks, int rank, const std::vector<pattern>& patterns, bool verify) {
        const auto times = static_cast<double>(patterns.size());
        memory_need need = need_of(norm_operands(p, ranks, rank).operands());
        need.activations *= times;
        const auto heap = static_cast<double>(heap_bytes(ranks));
        need.heaps = times * (heap - need.heap_of_rank);
        need.heap_of_rank = times * heap;
        need.work_space = verify ? 64.0 * static_cast<double>(p.hidden) : 0;
        return need;
      });
  subject.make = maker_of_trials<norm_workload>(options, p);
  return subject;
}

trial_subject spec_of<all_reduce_norm>::subject(const problem& p, const options& o,
                                                memory_kind memory, bool /*uneven*/) {
  return subject_of(p, o, memory);
}

}  // namespace untax
