// `automatic` on GPUs times bulk_library beside own kernels, for partial sums of both types and in
// capacities; all ranks choose alike, and results are right.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <untax/world/launch.hpp>

#include "engines/bulk/communicator.hpp"
#include "engines/bulk/library_gemm.hpp"
#include "gpus.hpp"
#include "operator_runs.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"

namespace {

using namespace gpu_test;

/// A problem that no table has.
gemm_problem problem_of(const operator_entry& entry, dtype partials) {
  return {.m = 200,
          .n = entry.columns_sharded ? 1040 : 520,
          .k = 1032,
          .type = dtype::bf16,
          .partials = partials};
}

/// Calls `check(explanation)` at every rank, for each operator and type of partial results.
template <class Check>
void each_automatic(bool varying_rows, const Check& check) {
  NEEDS_GPUS(2);
  NEEDS_OWN_GPUS();
  if (!untax::bulk::nccl().there || !untax::bulk::blas().there)
    GTEST_SKIP() << "there are no libraries";
  for (const operator_entry& entry : untax::operators()) {
    for (const dtype partials : {dtype::bf16, dtype::f32}) {
      if (partials == dtype::f32 && !entry.sums_to) continue;
      const gemm_problem p = problem_of(entry, partials);
      untax::run_gpus(
          gpus(),
          [&](world& w) {
            const operator_options options{.varying_rows = varying_rows};
            SCOPED_TRACE(fmt::format("rank {}: {}", w.rank(), text_of(entry, p, options)));
            workload load(w, entry, p, options, 3);
            load.run();
            EXPECT_LE(load.relative_error(), tolerance_of(entry, p));
            // Which product is the quicker each rank finds out for itself.
            const std::string text = load.explain();
            w.agree("the choice", text.substr(std::min(text.find("chosen by"), text.size())));
            check(text);
          },
          roomy_world());
    }
  }
}

TEST(gpu_choice, the_library_is_timed_beside_own_kernels) {
  each_automatic(false, [](const std::string& text) {
    EXPECT_NE(text.find("chosen by timing it here: "), std::string::npos) << text;
    EXPECT_NE(text.find("bulk_library "), std::string::npos) << text;
    EXPECT_EQ(text.find("bulk_library is not possible"), std::string::npos) << text;
  });
}

TEST(gpu_choice, in_a_capacity_some_numbers_of_rows_are_timed) {
  each_automatic(true, [](const std::string& text) {
    EXPECT_NE(text.find(" numbers of rows here, and others "), std::string::npos) << text;
    EXPECT_NE(text.find(" 200 rows: "), std::string::npos) << text;
    EXPECT_EQ(text.find("bulk_library is not possible"), std::string::npos) << text;
  });
}

}  // namespace
