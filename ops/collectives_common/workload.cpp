#include "ops/collectives_common/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <span>
#include <string_view>

#include <untax/core/error.hpp>
#include <untax/core/half.hpp>

#include "ops/common/deviation.hpp"
#include "ops/common/random_matrix.hpp"

namespace untax {
namespace {

float rounded(dtype type, float value) {
  switch (type) {
    case dtype::f16:
      return static_cast<float>(f16(value));
    case dtype::bf16:
      return static_cast<float>(bf16(value));
    default:
      return value;
  }
}

using count_of_rank = std::function<std::int64_t(const collective_problem&, int world, int rank)>;

/// The number of elements of the largest input or result of any rank.
std::int64_t largest_of(const count_of_rank& count, const collective_problem& problem, int ranks) {
  std::int64_t most = 1;
  for (int rank = 0; rank < ranks; ++rank) most = std::max(most, count(problem, ranks, rank));
  return most;
}

/// Bytes of symmetric heap that a plan takes, on the host or on GPUs.
std::size_t heap_of(const collective_entry& entry, const collective_problem& problem,
                    collective_options options, pattern how, int ranks, memory_kind memory) {
  options.how = how;
  const auto& plan = memory == memory_kind::cuda ? entry.device_plan : entry.plan;
  return heap_for(plan(problem, ranks, 0, options), problem.type);
}

/// The largest relative error of a correct result; only sums are rounded.
double tolerance_of(const collective_entry& entry, const collective_problem& problem) {
  if (!entry.combines || problem.how != reduction::sum) return 0;
  return problem.type == dtype::f32 ? 1e-5 : problem.type == dtype::f16 ? 6e-4 : 4e-3;
}

}  // namespace

std::vector<trial_operand> collective_operands::operands() const {
  const std::size_t element = size_of(problem_.type);
  const auto shape = [&](std::string_view name, operand_role role, const count_of_rank& count) {
    const auto most = static_cast<std::size_t>(largest_of(count, problem_, world_));
    return trial_operand{.name = name,
                         .role = role,
                         .rows = 1,
                         .cols = count(problem_, world_, rank_),
                         .element_bytes = element,
                         .symmetric_bytes = direct_ ? most * element : 0};
  };
  return {shape("in", operand_role::input, entry_->in_count),
          shape("out", operand_role::result, entry_->out_count)};
}

void collective_operands::fill(std::uint64_t seed, operand_set& set) const {
  const matrix to = set[in].host_elements(problem_.type);
  random_matrix{seed}.fill(to, {rank_, 1}, {0, to.cols});
}

std::vector<float> collective_operands::result(operand_set& set) const {
  const std::vector<double> values =
      widened(set[out].fetched(), set[out].shape().cols, problem_.type);
  return {values.begin(), values.end()};
}

template <class T>
T collective_operands::reference(std::uint64_t seed, std::int64_t i) const {
  const auto input = [&](int rank, std::int64_t index) {
    return static_cast<T>(rounded(problem_.type, random_matrix{seed}.at(rank, index)));
  };
  const origin source = entry_->origin_of(problem_, world_, rank_, i);
  if (source.from >= 0) return input(source.from, source.index);
  T value = input(0, source.index);
  for (int rank = 1; rank < world_; ++rank)
    value = combined(problem_.how, value, input(rank, source.index));
  return value;
}

double collective_operands::relative_error(std::uint64_t seed, operand_set& set) const {
  constexpr std::int64_t row = 4096;
  // Sums are added in fp32 and rounded once.
  const double tolerance = tolerance_of(*entry_, problem_);
  const double share = tolerance > 0 ? roundoff_of(problem_.type) + addition_share(world_) : 0;
  const std::vector<float> elements = result(set);
  deviation found(tolerance);
  std::vector<double> right;
  const pieces rows{{0, static_cast<std::int64_t>(elements.size())}, row};
  for (int piece = 0; piece < rows.count(); ++piece) {
    const range part = rows.at(piece);
    right.clear();
    for (std::int64_t i = part.begin; i < part.begin + part.size; ++i)
      right.push_back(reference<double>(seed, i));
    found.add_row(std::span(elements).subspan(static_cast<std::size_t>(part.begin), right.size()),
                  right, share, entry_->combines ? world_ : 1);
  }
  return found.relative_error();
}

std::int64_t collective_operands::wrong_bits(std::uint64_t seed, operand_set& set) const {
  std::int64_t wrong = 0;
  std::int64_t i = 0;
  for (const float element : result(set)) {
    const float right = rounded(problem_.type, reference<float>(seed, i++));
    wrong += std::bit_cast<std::uint32_t>(right) == std::bit_cast<std::uint32_t>(element) ? 0 : 1;
  }
  return wrong;
}

std::string describe(const collective_entry& entry, const collective_problem& problem) {
  std::string text =
      fmt::format("{}, count {}, {}", entry.name, problem.count, name_of(problem.type));
  if (entry.combines) text += fmt::format(", {}", name_of(problem.how));
  if (entry.has_root) text += fmt::format(", root {}", problem.root);
  if (problem.uneven) text += ", unequal parts";
  return text;
}

trial_subject subject_of(const collective_entry& entry, const collective_problem& problem,
                         const collective_options& options, memory_kind memory) {
  trial_subject subject;
  subject.name = entry.name;
  subject.description = describe(entry, problem);
  subject.memory = memory;
  subject.facts = {{"count", problem.count}, {"dtype", std::string(name_of(problem.type))}};
  if (options.direct) {
    subject.patterns = {pattern::fused_sequential};
  } else {
    subject.patterns = {std::begin(collective_patterns), std::end(collective_patterns)};
  }
  subject.tolerance = tolerance_of(entry, problem);
  subject.work = [&entry, problem](int ranks) { return entry.bytes(problem, ranks); };
  if (entry.combines) subject.facts.emplace_back("reduction", std::string(name_of(problem.how)));
  if (entry.has_root) subject.facts.emplace_back("root", problem.root);
  if (entry.has_uneven) subject.facts.emplace_back("unequal parts", problem.uneven ? 1 : 0);
  subject.heap_bytes = [&entry, problem, options, memory, patterns = subject.patterns](int ranks) {
    std::size_t most = 0;
    for (const pattern how : patterns)
      most = std::max(most, heap_of(entry, problem, options, how, ranks, memory));
    if (!options.direct) return most;
    const auto elements = static_cast<std::size_t>(largest_of(entry.in_count, problem, ranks) +
                                                   largest_of(entry.out_count, problem, ranks));
    return most + elements * size_of(problem.type) + (std::size_t{1} << 16);
  };
  subject.need = need_of_ranks(
      memory, [&entry, problem, options, memory](
                  int ranks, int rank, const std::vector<pattern>& patterns, bool /*verify*/) {
        memory_need need;
        for (const pattern how : patterns) {
          memory_need own =
              need_of(collective_operands(entry, problem, options.direct, ranks, rank).operands());
          own.heaps = static_cast<double>(heap_of(entry, problem, options, how, ranks, memory));
          // On the host, the heaps of plans are an upper bound, and the elements in them a lower
          // bound.
          if (memory == memory_kind::cuda) own.heap_of_rank += own.heaps;
          need += own;
        }
        return need;
      });
  subject.make = maker_of_trials<collective_workload>(options, std::cref(entry), problem);
  return subject;
}

}  // namespace untax
