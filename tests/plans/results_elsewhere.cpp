// Which memory operators take for results: their own, the caller's, or some of both.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <untax/core/error.hpp>
#include <untax/ops/all_reduce_norm.hpp>
#include <untax/ops/collectives.hpp>
#include <untax/ops/gemm_all_scatter.hpp>
#include <untax/world/launch.hpp>

#include "tests/errors.hpp"

namespace untax::testing {
namespace {

using untax_test::error_of;
using untax_test::expect_error;

constexpr std::int64_t tokens = 8;
constexpr std::int64_t hidden = 16;

TEST(results_elsewhere, only_scales_may_lie_in_memory_of_the_caller) {
  run_threads(2, [](world& w) {
    all_reduce_norm op(w,
                       {.tokens = tokens,
                        .hidden = hidden,
                        .type = dtype::f32,
                        .output = norm_output::e4m3_per_token},
                       {.phases = 2});
    const std::vector<float> in(tokens * hidden, 1.0F);
    const std::vector<float> residual(tokens * hidden, 2.0F);
    const std::vector<float> weight(hidden, 1.0F);
    std::vector<float> scales(tokens, -1.0F);
    norm_results mixed = op.result();
    mixed.scales = scales.data();
    op.run({{in.data(), tokens, hidden}, {residual.data(), tokens, hidden}, weight.data()}, mixed);
    for (const float scale : scales) EXPECT_GT(scale, 0.0F);
    EXPECT_EQ(static_cast<const float*>(op.result().x)[tokens * hidden - 1], 4.0F);
    w.barrier();
  });
}

TEST(results_elsewhere, inputs_lie_apart_from_results_that_peers_write) {
  run_threads(2, [](world& w) {
    all_reduce_norm op(w, {.tokens = tokens, .hidden = hidden, .type = dtype::f32}, {.phases = 2});
    const std::vector<float> in(tokens * hidden, 1.0F);
    const std::vector<float> weight(hidden, 1.0F);
    std::vector<float> x(tokens * hidden);
    std::vector<float> out(tokens * hidden);
    const auto* const own = static_cast<const float*>(op.result().x);
    const auto run_with = [&](const float* residual, const float* weights) {
      return error_of([&] {
        op.run({{in.data(), tokens, hidden}, {residual, tokens, hidden}, weights},
               {x.data(), out.data()});
      });
    };
    expect_error(run_with(own + hidden, weight.data()), errc::invalid_argument, {"residual"});
    expect_error(run_with(in.data(), own), errc::invalid_argument, {"weight"});
    op.run({{in.data(), tokens, hidden}, {in.data(), tokens, hidden}, weight.data()});
    op.run({{in.data(), tokens, hidden}, {own, tokens, hidden}, weight.data()},
           {x.data(), out.data()});
    EXPECT_EQ(x, std::vector<float>(tokens * hidden, 5.0F));
    w.barrier();
  });
}

TEST(results_elsewhere, a_run_of_no_tokens_needs_no_memory) {
  run_threads(2, [](world& w) {
    all_reduce_norm op(w,
                       {.tokens = tokens,
                        .hidden = hidden,
                        .type = dtype::f32,
                        .output = norm_output::e4m3_per_token},
                       {.varying_rows = true});
    const std::vector<float> weight(hidden, 1.0F);
    const const_matrix none(nullptr, dtype::f32, 0, hidden);
    op.run({none, none, weight.data()}, norm_results{});
    w.barrier();
  });
}

TEST(results_elsewhere, tiles_and_chunks_that_cannot_be_counted_are_refused) {
  run_threads(1, [](world& w) {
    expect_error(
        error_of([&] {
          gemm_all_scatter op(w, {65536, 65536, 1, dtype::f16}, {.tile_m = 1, .tile_n = 1});
        }),
        errc::invalid_argument, {"tiles of 1 x 1", "too many"});
    expect_error(error_of([&] {
                   all_reduce op(w, {std::int64_t{1} << 29, dtype::f32}, {.chunk_bytes = 4});
                 }),
                 errc::invalid_argument, {"chunk_bytes has to be larger"});
  });
}

}  // namespace
}  // namespace untax::testing
