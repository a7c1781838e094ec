// The element type in which partial results of sums over ranks travel.
#include <cstdint>
#include <utility>

#include "support.hpp"

namespace {

using namespace c_test;

/// Runs `body` at two ranks, on a bf16 sum whose partial results are 1 at a rank's own row and 257
/// at the row of its peer. bf16 has no 257, so the sum shows the type in which partial results
/// travel: 258 as fp32, and 256 as bf16.
template <class Body>
void sum_of_257_and_1(const Body& body) {
  constexpr std::uint16_t bf16_one = 0x3F80, sixteen = 0x4180;
  run_ranks(2, [&](untax_world* world, int rank) {
    std::uint16_t a[2][8] = {{0, bf16_one}, {0, bf16_one}};
    std::uint16_t b[8][8] = {};
    a[1 - rank][0] = sixteen;
    for (auto& row : b) {
      row[0] = sixteen;
      row[1] = bf16_one;
    }
    body(world, rank, untax_const_matrix{a, 2, 8, 0, untax_bf16},
         untax_const_matrix{b, 8, 8, 0, untax_bf16});
  });
}

TEST(c_partials, travel_in_the_type_of_the_problem_unless_fp32_is_set) {
  constexpr std::uint16_t of_256 = 0x4380, of_258 = 0x4381;
  const std::pair<std::int32_t, std::uint16_t> cases[] = {{0, of_256},
                                                          {untax_partials_of_type, of_256},
                                                          {untax_bf16, of_256},
                                                          {untax_partials_f32, of_258}};
  sum_of_257_and_1([&](untax_world* world, int rank, const untax_const_matrix& a,
                       const untax_const_matrix& b) {
    for (const auto& [partials, expected] : cases) {
      untax_gemm_reduce_scatter_problem p{sizeof p, 2, 8, 16, untax_bf16, partials};
      untax_operator* op = nullptr;
      ASSERT_EQ(untax_gemm_reduce_scatter_plan(world, &p, nullptr, &op), untax_ok) << last_text();
      std::uint16_t c[2][8] = {};
      const untax_matrix row{c, 1, 8, 0, untax_bf16};
      EXPECT_OK(untax_gemm_reduce_scatter_run(op, &a, &b, &row, nullptr));
      EXPECT_EQ(c[0][0], expected) << "partials " << partials << ", rank " << rank;
      EXPECT_OK(untax_operator_destroy(op));
      for (const std::int32_t phases : {1, 2}) {
        untax_gemm_all_reduce_problem q{sizeof q, 2, 8, 16, untax_bf16, partials};
        untax_operator_options options{};
        options.size = sizeof options;
        options.phases = phases;
        ASSERT_EQ(untax_gemm_all_reduce_plan(world, &q, &options, &op), untax_ok) << last_text();
        const untax_matrix whole{c, 2, 8, 0, untax_bf16};
        EXPECT_OK(untax_gemm_all_reduce_run(op, &a, &b, &whole, nullptr));
        EXPECT_EQ(c[rank][0], expected) << "partials " << partials << ", phases " << phases;
        EXPECT_OK(untax_operator_destroy(op));
      }
    }
    untax_gemm_all_reduce_problem wrong{sizeof wrong, 2, 8, 16, untax_bf16, untax_f16};
    untax_operator* op = nullptr;
    expect_failure(untax_gemm_all_reduce_plan(world, &wrong, nullptr, &op), untax_invalid_argument,
                   {"partials are fp16"});
    wrong.partials = -2;
    expect_failure(untax_gemm_all_reduce_plan(world, &wrong, nullptr, &op), untax_invalid_argument,
                   {"partials is -2"});
  });
}

}  // namespace
