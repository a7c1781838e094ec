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
  // What all ranks read of keys and values, as if every sequence were as long as it can be.
  subject.work = [p](int ranks) {
    return 2.0 * ranks * static_cast<double>(p.batch * p.keys) *
           static_cast<double>(p.kv_heads * p.head_dim) * static_cast<double>(size_of(p.type));
  };
  subject.heap_bytes = [p, options, memory](int ranks) {
    if (memory == memory_kind::cuda) return device_heap_for(p, ranks);
    return heap_for(p, ranks, std::max(options.splits, 64));
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
