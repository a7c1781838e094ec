#pragma once

#include "ops/choice/table.hpp"

namespace untax::bench {

/// Whether a published heuristic for asynchronous tensor parallelism in vLLM would fuse an
/// all-gather with the product behind it: a decision tree over m n, m k, n, k and m, learnt from
/// H100. It was written anew from what the tree decides (vllm-project/vllm, pull request 37489, a
/// draft), with splits left out whose sides decide alike, among them those by arithmetic intensity.
/// n is what a rank computes, as the problems of all_gather_gemm have it.
[[nodiscard]] bool async_tp_fuses(const tuned_problem& problem) noexcept;

}  // namespace untax::bench
