#pragma once

#include "bench/suites/attention.hpp"
#include "bench/suites/collectives.hpp"
#include "bench/suites/gemm.hpp"
#include "bench/suites/norm.hpp"
#include "bench/suites/overlap.hpp"
#include "ops/common/memory_need.hpp"

namespace untax::bench {

// Memory that suites take of each GPU, before they take any. Each throws `out_of_memory` where
// there is less; where there is no GPU, others say so.

void require_memory(const gemm_suite_options& options);
void require_memory(const overlap_options& options, int ranks);
void require_memory(const collective_suite_options& options, int ranks);
void require_memory(const norm_suite_options& options, int ranks);
/// Problems of attention that no GPU holds are left out; one has to remain.
void require_memory(const attention_suite_options& options);

/// A, B and C at the places that are taken in turn.
[[nodiscard]] memory_need need_of(const gemm_row& row, dtype type);
[[nodiscard]] memory_need need_of(const collective_suite_options& options);

}  // namespace untax::bench
