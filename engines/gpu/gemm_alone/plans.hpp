#pragma once

#include <vector>

#include "engines/gpu/gemm/plan.hpp"

namespace untax::gpu {

/// Plans of a GEMM with nothing beside it, the quickest first: those of `plans_by_model`, with
/// `cycles` that trees have corrected.
[[nodiscard]] std::vector<gemm_plan> plans_alone(const gemm_shape& shape, const gpu_model& gpu);

/// Multiplies the `cycles` that the model expects of the plausible plans of a shape by what
/// decision trees say that it is wrong by. They were grown on measured times of plans of other
/// shapes, so on other GPUs, and up to the few rows for which the model chooses as well, nothing
/// changes; nor where bits may depend on n and k alone, of which nothing was timed.
///
/// Source: boosted regression trees (Friedman 2001) by LightGBM; that trees choose kernels where no
/// model is exact is from https://arxiv.org/abs/2403.17017.
void correct_by_trees(std::vector<gemm_plan>& plans, const gemm_shape& shape, const gpu_model& gpu);

}  // namespace untax::gpu
