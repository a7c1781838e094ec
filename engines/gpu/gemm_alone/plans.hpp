#pragma once

#include <vector>

#include "engines/gpu/gemm/plan.hpp"

namespace untax::gpu {

/// The plans of a GEMM with nothing beside it, the fastest first: those of `plans_by_model`, with
/// `cycles` that trees have corrected.
[[nodiscard]] std::vector<gemm_plan> plans_alone(const gemm_shape& shape, const gpu_model& gpu);

/// Multiplies the `cycles` that the model expects of the plausible plans of a shape by factors from
/// decision trees. The trees were trained on measured times of plans of other shapes. Nothing
/// changes on other GPUs; up to the few rows for which the model chooses as well; and if bits may
/// depend on n and k alone, since no such plans were timed.
///
/// Source: boosted regression trees (Friedman 2001) by LightGBM; the idea that trees choose kernels
/// where no model is exact is from https://arxiv.org/abs/2403.17017.
void correct_by_trees(std::vector<gemm_plan>& plans, const gemm_shape& shape, const gpu_model& gpu);

}  // namespace untax::gpu
