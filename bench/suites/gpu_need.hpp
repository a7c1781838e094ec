#pragma once

#include "bench/suites/attention.hpp"
#include "bench/suites/collectives.hpp"
#include "bench/suites/gemm.hpp"
#include "bench/suites/norm.hpp"
#include "bench/suites/overlap.hpp"
#include "ops/common/memory_need.hpp"

namespace untax::bench {

// Checks the memory that suites need of each GPU, before they allocate it. Each throws
// `out_of_memory` if there is less. A missing GPU is reported elsewhere.

void require_memory(const gemm_suite_options& options);
void require_memory(const overlap_options& options, int ranks);
void require_memory(const collective_suite_options& options, int ranks);
void require_memory(const norm_suite_options& options, int ranks);
/// Attention problems that no GPU can hold are left out; at least one has to remain.
void require_memory(const attention_suite_options& options);

/// The memory of A, B and C at the places that are used in turn.
[[nodiscard]] memory_need need_of(const gemm_row& row, dtype type);
[[nodiscard]] memory_need need_of(const collective_suite_options& options);

}  // namespace untax::bench
