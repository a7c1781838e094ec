#pragma once

#include "ops/choice/make_chosen.hpp"
#include "ops/common/workload.hpp"

namespace untax {

/// Times operators of `problem` on random inputs, in graphs, weights from memory that caches do not
/// hold. C is written to `result` or, if that is null, to memory of its own. Collective, as each
/// timing is; empty, at every rank, where a rank lacks the memory, and where ranks share a GPU. `w`
/// has to outlive it. Throws `unsupported` where CUDA is not compiled in.
[[nodiscard]] operator_timer gemm_timer(world& w, const operator_entry& entry,
                                        const gemm_problem& problem, void* result);

}  // namespace untax
