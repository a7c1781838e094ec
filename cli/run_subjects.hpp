#pragma once

#include <untax/core/error.hpp>

#include "engines/gpu/attention/shape.hpp"
#include "ops/all_reduce_norm/workload.hpp"
#include "ops/collectives_common/registry.hpp"
#include "ops/common/registry.hpp"
#include "ops/flash_decode/workload.hpp"
#include "ops/merge_partial_attention/planning.hpp"
#include "ops/merge_partial_attention/workload.hpp"
#include "ops/operators.hpp"

// How `untax run` gets a subject from a problem and options, and whether GPUs have a kernel for
// them: two overloads for each kind of operator. `uneven` shards or parts have different sizes.

namespace untax::cli {

template <class Problem>
concept gemm_fields = requires(const Problem& p) {
  p.m + p.n + p.k;
};
template <class Problem>
concept counted_fields = requires(const Problem& p) {
  p.count;
};

template <class Operator, gemm_fields Problem>
[[nodiscard]] trial_subject run_subject(const Problem& p, const operator_options& options,
                                        memory_kind memory, bool /*uneven*/) {
  gemm_problem problem{.m = p.m, .n = p.n, .k = p.k, .type = p.type};
  if constexpr (requires { p.gather; }) {
    problem.gather = p.gather;
    if (p.gather == gather_axis::rows && options.panel_k > 0) {
      throw error(errc::invalid_argument,
                  fmt::format("--panel-k means nothing to {}, which gathers rows; --panel-k is for "
                              "--gather k",
                              spec<Operator>.name));
    }
  }
  if constexpr (requires { p.partials; }) {
    problem.partials = p.partials;
    if (const dtype sent = partials_type(problem); sent != dtype::f32 && sent != p.type) {
      throw error(errc::invalid_argument,
                  fmt::format("--partials is {} and --dtype {}; partial results have to be fp32 or "
                              "of the same type as the operands",
                              name_of(sent), name_of(p.type)));
    }
  }
  return subject_of(operator_named(spec<Operator>.name), problem, options, memory);
}

template <class Operator, counted_fields Problem>
[[nodiscard]] trial_subject run_subject(const Problem& p, const collective_options& options,
                                        memory_kind memory, bool uneven) {
  collective_problem problem{.count = p.count, .type = p.type, .uneven = uneven};
  if constexpr (requires { p.how; }) problem.how = p.how;
  if constexpr (requires { p.root; }) problem.root = p.root;
  return subject_of(collective_named(spec<Operator>.name), problem, options, memory);
}

template <class Operator>
[[nodiscard]] trial_subject run_subject(const all_reduce_norm_problem& p,
                                        const operator_options& options, memory_kind memory,
                                        bool /*uneven*/) {
  return subject_of(p, options, memory);
}

template <class Operator>
[[nodiscard]] trial_subject run_subject(flash_decode_problem p, const flash_decode_options& options,
                                        memory_kind memory, bool uneven) {
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
  return subject_of(attention_work{.problem = p, .uneven = uneven}, options, memory);
}

template <class Operator>
[[nodiscard]] trial_subject run_subject(const merge_partial_attention_problem& p,
                                        const merge_partial_attention_options& options,
                                        memory_kind memory, bool /*uneven*/) {
  return subject_of(p, options, memory);
}

template <class Problem, class Options>
[[nodiscard]] bool has_gpu_kernel(const Problem& /*p*/, const Options& /*options*/) {
  return true;
}

[[nodiscard]] inline bool has_gpu_kernel(const flash_decode_problem& p,
                                         const flash_decode_options& options) {
  return gpu::has_kernel_for(p.head_dim) && options.splits == 0 &&
         p.heads <= p.kv_heads * gpu::most_heads_of_group;
}

[[nodiscard]] inline bool has_gpu_kernel(const merge_partial_attention_problem& p,
                                         const merge_partial_attention_options& /*options*/) {
  return p.head_dim % chunk_elements(p.type) == 0;
}

}  // namespace untax::cli
