#include "ops/common/operator_test.hpp"
#include "ops/gemm_reduce_scatter/protocol.hpp"

namespace untax::testing {
namespace {

// It stands for a library: the partial results come from one GEMM, however the result is split.
TEST(gemm_reduce_scatter, bulk_library_multiplies_once) {
  const gemm_reduce_scatter_problem problem{.m = 128, .n = 96, .k = 64, .type = dtype::f32};
  for (const int workers : {1, 3}) {
    const gemm_reduce_protocol protocol = protocol_for(problem, {.world = 2,
                                                                 .how = pattern::bulk_library,
                                                                 .workers = workers,
                                                                 .tile_m = 16,
                                                                 .tile_n = 16,
                                                                 .panel_k = 64});
    int products = 0;
    for (int worker = 0; worker < workers; ++worker) {
      protocol.program(0, worker, 1, [&](const step& s) {
        EXPECT_EQ(s.what, action::multiply);
        EXPECT_EQ(s.rows, 128);
        EXPECT_EQ(s.cols, 96 / workers);
        ++products;
      });
    }
    EXPECT_EQ(products, workers);
  }
}

}  // namespace
}  // namespace untax::testing
