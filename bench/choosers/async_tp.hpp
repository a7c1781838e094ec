#pragma once

#include "ops/choice/table.hpp"

namespace untax::bench {

/// Whether a published heuristic for asynchronous tensor parallelism in vLLM would fuse an
/// all-gather with the product that follows it: a decision tree over m n, m k, n, k and m, learnt
/// from H100. It was rewritten from the decisions of the tree (vllm-project/vllm, pull request
/// 37489, a draft), without splits whose sides decide alike, among them those by arithmetic
/// intensity. n is the number of columns that a rank computes, as in problems of all_gather_gemm.
[[nodiscard]] bool async_tp_fuses(const tuned_problem& problem) noexcept;

}  // namespace untax::bench
