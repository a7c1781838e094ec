#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include <untax/ops/all_gather_gemm.hpp>
#include <untax/ops/all_reduce_norm.hpp>
#include <untax/ops/collectives.hpp>
#include <untax/ops/flash_decode.hpp>
#include <untax/ops/gemm_all_reduce.hpp>
#include <untax/ops/gemm_all_scatter.hpp>
#include <untax/ops/gemm_reduce_scatter.hpp>
#include <untax/ops/merge_partial_attention.hpp>

namespace untax::testing {

inline const std::vector<pattern> gemm_patterns = {
    pattern::bulk_library, pattern::bulk_synchronous, pattern::producer_consumer,
    pattern::fused_sequential, pattern::fused_specialized};
inline const std::vector<pattern> moving_patterns = {
    pattern::bulk_synchronous, pattern::fused_sequential, pattern::fused_specialized};

/// How a test makes and runs an operator, whatever it is called. Results are not looked at.
template <class Operator>
struct sample;

constexpr std::int64_t rows = 6;
constexpr std::int64_t side = 16;
/// Ones, enough for any operand here; where a result goes.
inline std::vector<float> numbers() { return std::vector<float>(4096, 1.0F); }

inline const_matrix operand(const std::vector<float>& from, const extent& size) {
  return {from.data(), dtype::f32, size.rows, size.cols};
}
inline matrix result(std::vector<float>& to, const extent& size) {
  return {to.data(), dtype::f32, size.rows, size.cols};
}

template <>
struct sample<all_gather_gemm> {
  static const std::vector<pattern>& patterns() { return gemm_patterns; }
  static all_gather_gemm_problem problem() {
    return {.m = rows, .n = side, .k = side, .type = dtype::f32};
  }
  static all_gather_gemm make(world& w, pattern how, int workers = 0) {
    return {w, problem(), {.how = how, .workers = workers}};
  }
  static void run(all_gather_gemm& op) {
    const std::vector<float> in = numbers();
    std::vector<float> out = numbers();
    op.run(operand(in, all_gather_gemm::a_shard(problem(), op.plan().world, op.plan().rank)),
           operand(in, {side, side}), result(out, {rows, side}));
  }
};

template <>
struct sample<gemm_all_scatter> {
  static const std::vector<pattern>& patterns() { return gemm_patterns; }
  static gemm_all_scatter_problem problem() {
    return {.m = rows, .n = side, .k = side, .type = dtype::f32};
  }
  static gemm_all_scatter make(world& w, pattern how, int workers = 0) {
    return {w, problem(), {.how = how, .workers = workers}};
  }
  static void run(gemm_all_scatter& op) {
    const std::vector<float> in = numbers();
    op.run(operand(in, {rows, side}), operand(in, gemm_all_scatter::weights_shard(
                                                      problem(), op.plan().world, op.plan().rank)));
  }
};

template <>
struct sample<gemm_reduce_scatter> {
  static const std::vector<pattern>& patterns() { return gemm_patterns; }
  static gemm_reduce_scatter_problem problem() {
    return {.m = rows, .n = side, .k = side, .type = dtype::f32};
  }
  static gemm_reduce_scatter make(world& w, pattern how, int workers = 0) {
    return {w, problem(), {.how = how, .workers = workers}};
  }
  static void run(gemm_reduce_scatter& op) {
    const std::vector<float> in = numbers();
    std::vector<float> out = numbers();
    const auto depth = gemm_reduce_scatter::k_shard(problem(), op.plan().world, op.plan().rank);
    op.run(operand(in, {rows, depth}), operand(in, {side, depth}),
           result(out, gemm_reduce_scatter::c_shard(problem(), op.plan().world, op.plan().rank)));
  }
};

template <>
struct sample<gemm_all_reduce> {
  static const std::vector<pattern>& patterns() { return gemm_patterns; }
  static gemm_all_reduce_problem problem() {
    return {.m = rows, .n = side, .k = side, .type = dtype::f32};
  }
  static gemm_all_reduce make(world& w, pattern how, int workers = 0) {
    return {w, problem(), {.how = how, .workers = workers, .phases = 2}};
  }
  static void run(gemm_all_reduce& op) {
    const std::vector<float> in = numbers();
    const auto depth = gemm_all_reduce::k_shard(problem(), op.plan().world, op.plan().rank);
    op.run(operand(in, {rows, depth}), operand(in, {side, depth}));
  }
};

template <>
struct sample<all_reduce_norm> {
  static const std::vector<pattern>& patterns() { return moving_patterns; }
  static all_reduce_norm_problem problem() {
    return {.tokens = rows, .hidden = side, .type = dtype::f32};
  }
  static all_reduce_norm make(world& w, pattern how, int workers = 0) {
    return {w, problem(), {.how = how, .workers = workers, .phases = 2}};
  }
  static void run(all_reduce_norm& op) {
    const std::vector<float> in = numbers();
    op.run({operand(in, {rows, side}), operand(in, {rows, side}), in.data()});
  }
};

template <>
struct sample<flash_decode> {
  static const std::vector<pattern>& patterns() {
    static const std::vector<pattern> all(gemm_patterns.begin() + 1, gemm_patterns.end());
    return all;
  }
  static flash_decode_problem problem() {
    return {.batch = 2, .heads = 2, .kv_heads = 1, .head_dim = 8, .keys = 5, .type = dtype::f32};
  }
  static flash_decode make(world& w, pattern how, int workers = 0) {
    return {w, problem(), {.how = how, .workers = workers}};
  }
  static void run(flash_decode& op) {
    const std::vector<float> in = numbers();
    std::vector<float> out = numbers();
    const std::vector<std::int32_t> lengths(2, 5);
    const attention_shard cache{
        .keys = operand(in, {10, 8}), .values = operand(in, {10, 8}), .lengths = lengths.data()};
    op.run(operand(in, {4, 8}), cache, result(out, {4, 8}));
  }
};

template <>
struct sample<merge_partial_attention> {
  static const std::vector<pattern>& patterns() { return moving_patterns; }
  static merge_partial_attention_problem problem() {
    return {.tokens = 2, .heads = 2, .head_dim = 8, .type = dtype::f32};
  }
  static merge_partial_attention make(world& w, pattern how, int workers = 0) {
    return {w, problem(), {.how = how, .workers = workers}};
  }
  static void run(merge_partial_attention& op) {
    const std::vector<float> in = numbers();
    std::vector<float> out = numbers();
    std::vector<float> sums = numbers();
    op.run(operand(in, {4, 8}), operand(in, {2, 2}), result(out, {4, 8}), result(sums, {2, 2}));
  }
};

template <class Collective, class Problem>
struct collective_sample {
  static const std::vector<pattern>& patterns() { return moving_patterns; }
  static Problem problem() { return {.count = 20, .type = dtype::f32}; }
  static Collective make(world& w, pattern how, int workers = 0) {
    return {w, problem(), {.how = how, .workers = workers, .chunk_bytes = 16}};
  }
  static void run(Collective& op) {
    const std::vector<float> in = numbers();
    std::vector<float> out = numbers();
    const auto& plan = op.plan();
    op.run({in.data(), dtype::f32, Collective::in_count(problem(), plan.world, plan.rank)},
           {out.data(), dtype::f32, Collective::out_count(problem(), plan.world, plan.rank)});
  }
};
template <>
struct sample<all_gather> : collective_sample<all_gather, all_gather_problem> {};
template <>
struct sample<reduce_scatter> : collective_sample<reduce_scatter, reduce_scatter_problem> {};
template <>
struct sample<all_reduce> : collective_sample<all_reduce, all_reduce_problem> {};
template <>
struct sample<all_to_all> : collective_sample<all_to_all, all_to_all_problem> {};
template <>
struct sample<broadcast> : collective_sample<broadcast, broadcast_problem> {};

using all_operators =
    ::testing::Types<all_gather_gemm, gemm_all_scatter, gemm_reduce_scatter, gemm_all_reduce,
                     all_reduce_norm, flash_decode, merge_partial_attention, all_gather,
                     reduce_scatter, all_reduce, all_to_all, broadcast>;

constexpr int ranks = 3;

/// Small heaps; a wait ends soon when a test goes wrong.
inline world_options small_world(std::size_t heap_bytes = std::size_t{1} << 20) {
  world_options options;
  options.heap_bytes = heap_bytes;
  options.heap_guards = true;
  options.wait_limit = std::chrono::seconds(20);
  return options;
}

}  // namespace untax::testing
