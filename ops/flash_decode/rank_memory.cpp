#include "ops/flash_decode/rank_memory.hpp"

#include "ops/flash_decode/planning.hpp"

namespace untax {

attention_memory::attention_memory(const flash_decode_problem& problem)
    : problem_(problem),
      q_(own(q_memory_, {problem.batch * problem.heads, problem.head_dim})),
      keys_(own(keys_memory_, cache_extent(problem))),
      values_(own(values_memory_, cache_extent(problem))),
      out_(own(out_memory_, {q_.rows, q_.cols})) {}

matrix attention_memory::own(std::vector<std::byte>& memory, const extent& size) const {
  memory.resize(static_cast<std::size_t>(size.rows * size.cols) * size_of(problem_.type));
  return {memory.data(), problem_.type, size.rows, size.cols};
}

void attention_memory::fill(const attention_inputs& inputs, int rank) {
  inputs.fill_queries(q_);
  inputs.fill_cache(rank, keys_, values_, lengths_, table_);
}

void attention_memory::poison_result() const { poison(out_); }

void attention_memory::run(flash_decode& op) const {
  const attention_shard shard{.keys = as_const(keys_),
                              .values = as_const(values_),
                              .lengths = lengths_.data(),
                              .page_table = problem_.page_size > 0 ? table_.data() : nullptr};
  op.run(as_const(q_), shard, out_);
}

}  // namespace untax
