#pragma once

#include "ops/choice/make_chosen.hpp"
#include "ops/common/operator_entry.hpp"

namespace untax {

/// A timer for operators of `problem`: on random inputs, in graphs, with weights that are not in
/// caches. C is written to `result` or, if that is null, to memory of the timer. This call and each
/// timing are collective. The timer is empty, at every rank, if a rank lacks the memory or ranks
/// share a GPU. `w` has to outlive it. Throws `unsupported` where CUDA is not compiled in.
[[nodiscard]] operator_timer gemm_timer(world& w, const operator_entry& entry,
                                        const gemm_problem& problem, void* result);

}  // namespace untax
