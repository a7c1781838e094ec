#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/choice/table.hpp"

namespace untax::bench {

/// Chooses the pattern for a problem. The entry has measured times, for rules that use them.
using chooser = std::function<pattern(const tuning_entry&)>;

/// A rule of choice, which learns from tables of measurements.
struct way {
  std::string name;
  std::function<chooser(const std::vector<tuning_table>&)> learn;
  bool rows_only = false;  ///< applies to all_gather_gemm by rows only
};

/// The ways that are compared:
///
/// - "interpolation": the pattern that ops/choice expects to be the fastest;
/// - "one tree", "a tree a family", "tree over expected times": trees of untax/select;
/// - "best single pattern": the pattern with the least loss over the tables;
/// - "async TP, ...": the published heuristic. Where it fuses, it takes the fastest fused pattern
/// of the problem itself, which no chooser can know, or copy_engine, the pattern that is nearest to
/// what it was made for.
[[nodiscard]] std::vector<way> all_ways();

/// Whether a published heuristic for asynchronous tensor parallelism in vLLM would fuse an
/// all-gather with the product that follows it: a decision tree over m n, m k, n, k and m, learnt
/// from H100. It was rewritten from the decisions of the tree (vllm-project/vllm, pull request
/// 37489, a draft), without splits whose sides decide alike, among them those by arithmetic
/// intensity. n is the number of columns that a rank computes, as in problems of all_gather_gemm.
[[nodiscard]] bool async_tp_fuses(const tuned_problem& problem) noexcept;

}  // namespace untax::bench
