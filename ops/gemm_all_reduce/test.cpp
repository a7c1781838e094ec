#include <set>

#include <untax/core/error.hpp>
#include <untax/ops/gemm_all_reduce.hpp>

#include "ops/common/operator_test.hpp"
#include "ops/gemm_all_reduce/spec.hpp"

namespace untax::testing {
namespace {

// With tiles of one size products have the same bits. So have sums in rank order, even if partial
// results are rounded before they are sent.
TEST(gemm_all_reduce, has_the_same_bits_at_every_rank_with_one_and_two_phases) {
  for (const dtype partials : {dtype::f32, dtype::bf16}) {
    for (const std::int64_t m : {1, 3, 64, 100}) {
      std::set<std::vector<std::byte>> bits;
      for (const pattern how :
           {pattern::producer_consumer, pattern::fused_sequential, pattern::fused_specialized}) {
        for (const int phases : {1, 2}) {
          operator_case c;
          c.world = 4;
          c.problem = {.m = m, .n = 40, .k = 64, .type = dtype::bf16, .partials = partials};
          c.options = {
              .how = how, .workers = 2, .senders = 2, .phases = phases, .tile_m = 1, .tile_n = 8};
          for (const auto& of_rank : check_case(gemm_all_reduce_entry(), c)) bits.insert(of_rank);
        }
      }
      EXPECT_EQ(bits.size(), 1U) << "m " << m << ", partials " << name_of(partials);
    }
  }
}

/// One run into a C of the caller whose rows have gaps, and one into the operator's own.
TEST(gemm_all_reduce, writes_to_the_given_address) {
  constexpr std::int64_t m = 9, n = 5, k = 16, stride = n + 3;
  for (const int phases : {1, 2}) {
    run_threads(2, [&](world& w) {
      gemm_all_reduce op(w, {.m = m, .n = n, .k = k, .type = dtype::f32}, {.phases = phases});
      EXPECT_NE(op.explain().find(phases == 1 ? "1 phase" : "2 phases"), std::string::npos);
      const std::vector<float> a(m * 8, 1.0F);
      const std::vector<float> b(n * 8, static_cast<float>(w.rank() + 1));
      std::vector<float> c(m * stride, -1.0F);
      op.run({a.data(), m, 8}, {b.data(), n, 8}, {c.data(), m, n, stride});
      op.run({a.data(), m, 8}, {b.data(), n, 8});
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < stride; ++j)
          EXPECT_EQ(c[static_cast<std::size_t>(i * stride + j)], j < n ? 24.0F : -1.0F);
        for (std::int64_t j = 0; j < n; ++j)
          EXPECT_EQ(static_cast<const float*>(op.result().data)[i * n + j], 24.0F);
      }
    });
  }
}

TEST(gemm_all_reduce, refuses_inputs_that_peers_would_overwrite) {
  run_threads(2, [](world& w) {
    gemm_all_reduce op(w, {.m = 8, .n = 8, .k = 16, .type = dtype::f32}, {.phases = 2});
    const std::vector<float> b(64, 1.0F);
    std::vector<float> c(64);
    const auto text_of = [&](const const_matrix& a, const matrix& to) -> std::string {
      try {
        op.run(a, {b.data(), 8, 8}, to);
      } catch (const error& e) {
        EXPECT_EQ(e.code(), errc::invalid_argument);
        return e.what();
      }
      return "";
    };
    EXPECT_NE(text_of(as_const(op.result()), {c.data(), 8, 8}).find("a and the result"),
              std::string::npos);
    auto* inside = static_cast<float*>(op.result().data) + 8;
    EXPECT_NE(text_of({b.data(), 8, 8}, {inside, 8, 8}).find("which is not result()"),
              std::string::npos);
  });
}

TEST(gemm_all_reduce, refuses_more_phases_than_two) {
  run_threads(1, [](world& w) {
    try {
      gemm_all_reduce op(w, {.m = 8, .n = 8, .k = 8, .type = dtype::f32}, {.phases = 3});
      ADD_FAILURE() << "three phases were taken";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument);
      EXPECT_NE(std::string(e.what()).find("phases is 3"), std::string::npos) << e.what();
    }
  });
}

}  // namespace
}  // namespace untax::testing
