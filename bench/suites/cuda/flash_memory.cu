#include "bench/suites/cuda/flash_memory.hpp"

#include <cmath>

#include "engines/gpu/matrix/matrix.hpp"

namespace untax::bench {

flash_memory::flash_memory(const flash_problem& p, cudaStream_t stream)
    : problem_(p),
      of_queries_{std::int64_t{p.batch} * p.queries, std::int64_t{p.heads} * p.head_dim},
      of_keys_{std::int64_t{p.batch} * p.keys, std::int64_t{p.kv_heads} * p.head_dim},
      queries_(of_queries_.bytes()),
      keys_(of_keys_.bytes()),
      values_(of_keys_.bytes()),
      out_(of_queries_.bytes()) {
  fill(queries_, of_queries_, 1, stream);
  fill(keys_, of_keys_, 2, stream);
  fill(values_, of_keys_, 3, stream);
}

gpu::flash_shape flash_memory::shape() const {
  return {.batch = problem_.batch,
          .heads = problem_.heads,
          .kv_heads = problem_.kv_heads,
          .head_dim = problem_.head_dim,
          .queries = problem_.queries,
          .keys = problem_.keys,
          .causal = problem_.causal,
          .scale = 1 / std::sqrt(static_cast<float>(problem_.head_dim)),
          .type = problem_.type};
}

gpu::flash_operands flash_memory::operands() const {
  return {.query_rows = static_cast<int>(of_queries_.rows),
          .key_rows = static_cast<int>(of_keys_.rows),
          .queries = queries_.data(),
          .keys = keys_.data(),
          .values = values_.data(),
          .out = out_.data(),
          .queries_stride = of_queries_.columns,
          .keys_stride = of_keys_.columns,
          .values_stride = of_keys_.columns,
          .out_stride = of_queries_.columns};
}

void flash_memory::fill(const device_buffer& to, const size& of, std::uint64_t seed,
                        cudaStream_t stream) const {
  gpu::fill_normal({to.data(), problem_.type, of.rows, of.columns}, seed, {0, of.rows},
                   {0, of.columns}, {stream});
}

}  // namespace untax::bench
