#pragma once

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "ops/collectives_common/registry.hpp"
#include "ops/collectives_common/workload.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"
#include "ops/operators.hpp"

// The subject of `untax run` for a problem and options, and whether GPUs have a kernel for them.
// `uneven`: shards or parts have different sizes.

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
concept has_subject = requires {
  &spec_of<Operator>::subject;
};

template <has_subject Operator>
[[nodiscard]] trial_subject run_subject(const typename spec_of<Operator>::problem& p,
                                        const typename spec_of<Operator>::options& options,
                                        memory_kind memory, bool uneven) {
  return spec_of<Operator>::subject(p, options, memory, uneven);
}

template <class Operator>
[[nodiscard]] bool has_gpu_kernel(const typename spec_of<Operator>::problem& p,
                                  const typename spec_of<Operator>::options& options) {
  if constexpr (requires { spec_of<Operator>::has_gpu_kernel(p, options); })
    return spec_of<Operator>::has_gpu_kernel(p, options);
  return true;
}

}  // namespace untax::cli
