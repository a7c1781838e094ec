#include "ops/flash_decode/workload.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ops/flash_decode/device_workload.hpp"
#include "ops/flash_decode/planning.hpp"

namespace untax {

attention_workload::attention_workload(world& w, const attention_work& work,
                                       const flash_decode_options& options, std::uint64_t seed)
    : work_(work),
      world_(w.size()),
      rank_(w.rank()),
      inputs_(work, w.size(), seed),
      memory_(work.problem),
      op_(w, work.problem, options) {
  refresh(seed);
  poison_result();
}

void attention_workload::refresh(std::uint64_t seed) {
  inputs_ = attention_inputs(work_, world_, seed);
  memory_.fill(inputs_, rank_);
}

void attention_workload::poison_result() { memory_.poison_result(); }

void attention_workload::run() { memory_.run(op_); }

double attention_workload::relative_error() const {
  return untax::relative_error(memory_.result(), inputs_.result());
}

namespace {

memory_need attention_need(const flash_decode_problem& p, double heap, memory_kind memory,
                           int ranks, std::size_t patterns, bool verify) {
  const auto times = static_cast<double>(patterns);
  memory_need need = operands_need(p);
  need.weights *= times;
  need.activations *= times;
  need.heaps = need.heap_of_rank = heap * times;
  if (memory == memory_kind::cuda) return need;
  // A lower bound: one partial result of each rank.
  need.heap_of_rank = times * sizeof(float) * static_cast<double>(p.batch) *
                      static_cast<double>(p.heads * p.head_dim) * ranks;
  // The reference has all of the result in fp64.
  const double check = verify ? sizeof(double) * static_cast<double>(p.batch) *
                                    static_cast<double>(p.heads * p.head_dim)
                              : 0;
  need.weights *= ranks;
  need.activations *= ranks;
  need.heaps *= ranks;
  need.work_space = check * ranks;
  return need;
}

}  // namespace

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
  subject.rate_unit = "GB/s";
  subject.rate_name = "bytes_per_second";
  // The keys and values that all ranks read, if every sequence has its greatest length.
  subject.work = [p](int ranks) {
    return 2.0 * ranks * static_cast<double>(p.batch * p.keys) *
           static_cast<double>(p.kv_heads * p.head_dim) * static_cast<double>(size_of(p.type));
  };
  subject.heap_bytes = [p, options, memory](int ranks) {
    if (memory == memory_kind::cuda) return device_heap_for(p, ranks);
    return heap_for(p, ranks, std::max(options.splits, 64));
  };
  subject.need = [p, options, memory](int ranks, const std::vector<pattern>& patterns,
                                      bool verify) {
    const int splits = options.splits > 0 ? options.splits : usual_splits(p, ranks);
    const std::size_t heap =
        memory == memory_kind::cuda ? device_heap_for(p, ranks) : heap_for(p, ranks, splits);
    return attention_need(p, static_cast<double>(heap), memory, ranks, patterns.size(), verify);
  };
  subject.make = [work, options](world& w, pattern how,
                                 std::uint64_t seed) -> std::unique_ptr<trial> {
    flash_decode_options chosen = options;
    chosen.how = how;
    if (w.memory() == memory_kind::cuda)
      return std::make_unique<device_attention_workload>(w, work, chosen, seed);
    return std::make_unique<attention_workload>(w, work, chosen, seed);
  };
  return subject;
}

}  // namespace untax
