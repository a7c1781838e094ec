// One plan for any number of rows, through the ABI.
#include <cstdint>
#include <string>
#include <vector>

#include "support.hpp"

namespace {

using namespace c_test;

TEST(c_capacity, matrices_give_the_rows_of_a_run) {
  run_ranks(2, [](untax_world* world, int rank) {
    untax_gemm_all_scatter_problem p{};
    p.size = sizeof p;
    p.m = 9;
    p.n = 16;
    p.k = 8;
    untax_operator_options options{};
    options.size = sizeof options;
    options.varying_rows = 1;
    options.invariant = 1;
    untax_operator* op = nullptr;
    ASSERT_EQ(untax_gemm_all_scatter_plan(world, &p, &options, &op), untax_ok) << last_text();
    EXPECT_NE(std::string(untax_operator_explain(op))
                  .find("same bits in every batch, any number of rows up to 9"),
              std::string::npos);
    untax_matrix c{};
    EXPECT_OK(untax_gemm_all_scatter_result(op, &c));
    EXPECT_EQ(c.rows, p.m);
    const std::vector<float> weights(64, static_cast<float>(rank + 1));
    const untax_const_matrix b{weights.data(), 8, 8, 0, untax_f32};
    for (const std::int64_t rows : {3, 9, 0, 1}) {
      const std::vector<float> a(72, static_cast<float>(rows));
      const untax_const_matrix in{a.data(), rows, 8, 0, untax_f32};
      EXPECT_OK(untax_gemm_all_scatter_run(op, &in, &b, nullptr, nullptr));
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < p.n; ++j) {
          EXPECT_EQ(static_cast<const float*>(c.data)[i * c.stride + j],
                    static_cast<float>(8 * rows * (j / 8 + 1)));
        }
      }
      EXPECT_OK(untax_world_barrier(world));
    }
    const std::vector<float> a(80);
    const untax_const_matrix more{a.data(), 10, 8, 0, untax_f32};
    EXPECT_EQ(untax_gemm_all_scatter_run(op, &more, &b, nullptr, nullptr), untax_invalid_argument);
    EXPECT_OK(untax_operator_destroy(op));
  });
}

TEST(c_capacity, arrays_give_the_count_of_a_run) {
  run_ranks(2, [](untax_world* world, int rank) {
    untax_all_reduce_problem p{};
    p.size = sizeof p;
    p.count = 20;
    untax_collective_options options{};
    options.size = sizeof options;
    options.varying_count = 1;
    untax_operator* op = nullptr;
    ASSERT_EQ(untax_all_reduce_plan(world, &p, &options, &op), untax_ok) << last_text();
    for (const std::int64_t count : {20, 7, 0}) {
      const std::vector<float> in(20, static_cast<float>(rank + 1));
      std::vector<float> out(20, -1.0F);
      const untax_const_array from{in.data(), count, untax_f32};
      const untax_array to{out.data(), count, untax_f32};
      EXPECT_OK(untax_all_reduce_run(op, &from, &to, nullptr));
      for (std::size_t i = 0; i < out.size(); ++i)
        EXPECT_EQ(out[i], static_cast<std::int64_t>(i) < count ? 3.0F : -1.0F);
    }
    EXPECT_OK(untax_operator_destroy(op));
  });
}

}  // namespace
