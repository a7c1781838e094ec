#include "ops/flash_decode/workload.hpp"
#include "engines/gpu/attention/shape.hpp"

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include <algorithm>

#include "ops/flash_decode/planning.hpp"
#include "ops/flash_decode/spec.hpp"

namespace untax {
namespace {

/// An upper bound on the bytes of symmetric heap of a rank on GPUs, in any pattern.
std::size_t device_heap_for(const flash_decode_problem& p, int world) {
  // Two sets of packets, gathered partial results, and packets of an all_gather, which have twice
  // the bytes of their data.
  constexpr std::size_t copies = 8;
  constexpr std::size_t of_blocks = std::size_t{64} << 20U;
  const auto rows = static_cast<std::size_t>(p.batch * p.heads) * static_cast<std::size_t>(world);
  const auto row = static_cast<std::size_t>(p.head_dim + 2) * sizeof(float);
  return copies * rows * row + of_blocks;
}

/// A rank's need for one pattern.
memory_need need_of_rank(const flash_decode_problem& p, const flash_decode_options& options,
                         memory_kind memory, int ranks, bool verify) {
  memory_need need = operands_need(p);
  if (memory == memory_kind::cuda) {
    need.heaps = need.heap_of_rank = static_cast<double>(device_heap_for(p, ranks));
    return need;
  }
  const int splits = options.splits > 0 ? options.splits : usual_splits(p, ranks);
  need.heaps = static_cast<double>(heap_for(p, ranks, splits));
  const double elements = static_cast<double>(p.batch) * static_cast<double>(p.heads * p.head_dim);
  // A lower bound: one partial result of each rank.
  need.heap_of_rank = sizeof(float) * elements * ranks;
  // The reference has all of the result in fp64.
  if (verify) need.work_space = sizeof(double) * elements;
  return need;
}

}  // namespace

std::vector<trial_operand> attention_operands::operands() const {
  const flash_decode_problem& p = work_.problem;
  auto operands = trial_operands(spec_of<flash_decode>::operands(p, world_, rank_));
  operands[keys].role = operands[values].role = operand_role::weight;
  trial_operand& table = operands[page_table];
  if (table.cols == 0)
    table.rows = table.cols = 1;  // a table needs a place, even if it has no
                                  // pages
  return operands;
}

std::unique_ptr<flash_decode> attention_operands::make(world& w,
                                                       const flash_decode_options& options) const {
  return std::make_unique<flash_decode>(w, work_.problem, options);
}

void attention_operands::fill(std::uint64_t seed, operand_set& set) const {
  const dtype type = work_.problem.type;
  const attention_inputs inputs(work_, world_, seed);
  std::vector<std::int32_t> numbers;
  std::vector<std::int32_t> pages;
  inputs.fill_queries(set[q].host_elements(type));
  inputs.fill_cache(rank_, set[keys].host_elements(type), set[values].host_elements(type), numbers,
                    pages);
  std::ranges::copy(numbers, static_cast<std::int32_t*>(set[lengths].host()));
  std::ranges::copy(pages, static_cast<std::int32_t*>(set[page_table].host()));
}

void attention_operands::run(flash_decode& op, operand_set& set, stream_ref stream) const {
  const dtype type = work_.problem.type;
  const auto integers = [&](std::size_t i) {
    return static_cast<const std::int32_t*>(set[i].data());
  };
  const attention_shard shard{
      .keys = as_const(set[keys].elements(type)),
      .values = as_const(set[values].elements(type)),
      .lengths = integers(lengths),
      .page_table = work_.problem.page_size > 0 ? integers(page_table) : nullptr};
  op.run(as_const(set[q].elements(type)), shard, set[out].elements(type), stream);
}

double attention_operands::relative_error(std::uint64_t seed, operand_set& set) const {
  const trial_operand& shape = set[out].shape();
  return untax::relative_error({set[out].fetched(), work_.problem.type, shape.rows, shape.cols},
                               attention_inputs(work_, world_, seed).result());
}

trial_subject subject_of(const attention_work& work, const flash_decode_options& options,
                         memory_kind memory) {
  const flash_decode_problem& p = work.problem;
  trial_subject subject;
  subject.name = flash_decode_name;
  subject.description = fmt::format("{}, {}{}", flash_decode_name, describe(p),
                                    work.uneven ? ", unequal lengths" : "");
  subject.facts = {{"batch", p.batch},
                   {"heads", p.heads},
                   {"kv_heads", p.kv_heads},
                   {"head_dim", p.head_dim},
                   {"keys", p.keys},
                   {"page_size", p.page_size},
                   {"unequal lengths", work.uneven ? 1 : 0},
                   {"dtype", std::string(name_of(p.type))},
                   {"partials", std::string(name_of(p.partials))}};
  subject.memory = memory;
  for (const pattern how : host_patterns) {
    if (how != pattern::automatic && has_pattern(how, memory == memory_kind::cuda))
      subject.patterns.push_back(how);
  }
  subject.tolerance = tolerance_of(p);
  // The keys and values that all ranks read, if every sequence has its greatest length.
  subject.work = [p](int ranks) {
    return 2.0 * ranks * static_cast<double>(p.batch * p.keys) *
           static_cast<double>(p.kv_heads * p.head_dim) * static_cast<double>(size_of(p.type));
  };
  subject.heap_bytes = [p, options, memory](int ranks) {
    if (memory == memory_kind::cuda) return device_heap_for(p, ranks);
    return heap_for(p, ranks, std::max(options.splits, 64));
  };
  subject.need = need_of_ranks(
      memory, [=](int ranks, int /*rank*/, const std::vector<pattern>& patterns, bool verify) {
        memory_need need;
        for (std::size_t i = 0; i < patterns.size(); ++i)
          need += need_of_rank(work.problem, options, memory, ranks, verify && i == 0);
        return need;
      });
  subject.make = maker_of_trials<attention_workload>(options, work);
  return subject;
}

trial_subject spec_of<flash_decode>::subject(problem p, const options& o, memory_kind memory,
                                             bool uneven) {
  if (p.heads % p.kv_heads != 0) {
    throw error(errc::invalid_argument,
                fmt::format("--heads is {} and --kv-heads {}; the first has to be a multiple of "
                            "the second",
                            p.heads, p.kv_heads));
  }
  if (p.partials == dtype::f16) {
    throw error(errc::invalid_argument,
                "--partials is fp16; flash_decode sends partial results as fp32 or bf16");
  }
  // A few pages more than are needed, so that some pages of the cache are unused.
  if (p.page_size > 0 && p.pages == 0) p.pages = p.batch * pages_of_sequence(p) + 3;
  return subject_of(attention_work{.problem = p, .uneven = uneven}, o, memory);
}

bool spec_of<flash_decode>::has_gpu_kernel(const problem& p, const options& o) {
  return gpu::has_kernel_for(p.head_dim) && o.splits == 0 &&
         p.heads <= p.kv_heads * gpu::most_heads_of_group;
}

}  // namespace untax
