#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include <untax/untax.hpp>

#include "tests/pretended/kernels.hpp"

namespace untax::pretended_uses {

using ::pretended::text_of;

/// Elements of two bytes at multiples of 16 bytes.
struct alignas(64) elements {
  std::uint16_t data[64 * 128] = {};
  [[nodiscard]] matrix as(extent size, dtype type = dtype::bf16) {
    return {data, type, size.rows, size.cols};
  }
};

/// How a test makes and runs an operator of m 6, n 64 and k 128 at rank r.
template <class Operator>
struct use;

template <>
struct use<all_gather_gemm> {
  static constexpr const char* name = "all_gather_gemm";
  static constexpr const char* kernels = "gather";
  static all_gather_gemm_problem planned() {
    return {.m = 6, .n = 64, .k = 128, .gather = gather_axis::k};
  }
  static all_gather_gemm make(world& w, const operator_options& o) { return {w, planned(), o}; }
  static std::string problem(world& /*w*/, const all_gather_gemm& /*op*/, int m) {
    return fmt::format("m {}, n 64, k 128, bf16, k", m);
  }
  static std::string agreed() { return "m 6, n 64, k 128, bf16, gather = k"; }
  static void run(all_gather_gemm& op, elements& a, elements& b, const matrix& c, stream_ref s) {
    auto now = planned();
    now.m = c.rows;
    op.run(as_const(a.as(all_gather_gemm::a_shard(now, op.plan().world, op.plan().rank))),
           as_const(b.as({now.n, now.k})), c, s);
  }
  static matrix result(all_gather_gemm& /*op*/, elements& c, std::int64_t rows) {
    return c.as({rows, 64});
  }
};

template <>
struct use<gemm_all_scatter> {
  static constexpr const char* name = "gemm_all_scatter";
  static constexpr const char* kernels = "scatter";
  static gemm_all_scatter_problem planned() { return {.m = 6, .n = 64, .k = 128}; }
  static gemm_all_scatter make(world& w, const operator_options& o) { return {w, planned(), o}; }
  static std::string problem(world& w, const gemm_all_scatter& op, int m) {
    const auto apart = static_cast<const std::byte*>(w.translate(op.result().data, 1)) -
                       static_cast<const std::byte*>(w.translate(op.result().data, 0));
    return fmt::format("m {}, n 64, k 128, bf16, {} apart", m, apart);
  }
  static std::string agreed() { return "m 6, n 64, k 128, bf16"; }
  static void run(gemm_all_scatter& op, elements& a, elements& b, const matrix& c, stream_ref s) {
    op.run(
        as_const(a.as({c.rows, 128})),
        as_const(b.as(gemm_all_scatter::weights_shard(planned(), op.plan().world, op.plan().rank))),
        c, s);
  }
  static matrix result(gemm_all_scatter& op, elements& /*c*/, std::int64_t rows) {
    matrix c = op.result();
    c.rows = rows;
    return c;
  }
};

template <>
struct use<gemm_reduce_scatter> {
  static constexpr const char* name = "gemm_reduce_scatter";
  static constexpr const char* kernels = "sums";
  static gemm_reduce_scatter_problem planned() { return {.m = 6, .n = 64, .k = 128}; }
  static gemm_reduce_scatter make(world& w, const operator_options& o) { return {w, planned(), o}; }
  static std::string problem(world& /*w*/, const gemm_reduce_scatter& /*op*/, int m) {
    return fmt::format(
        "gemm_reduce_scatter, m {}, n 64, k 128, bf16, bf16, owner, phases 1, to {}, 0 apart", m,
        text_of(nullptr));
  }
  static std::string agreed() { return "m 6, n 64, k 128, bf16, partials bf16"; }
  static void run(gemm_reduce_scatter& op, elements& a, elements& b, const matrix& c,
                  stream_ref s) {
    const std::int64_t depth =
        gemm_reduce_scatter::k_shard(planned(), op.plan().world, op.plan().rank);
    // All ranks have as many rows.
    op.run(as_const(a.as({op.plan().world * c.rows, depth})), as_const(b.as({64, depth})), c, s);
  }
  static matrix result(gemm_reduce_scatter& op, elements& c, std::int64_t rows) {
    return c.as({rows / op.plan().world, 64});
  }
};

template <>
struct use<gemm_all_reduce> {
  static constexpr const char* name = "gemm_all_reduce";
  static constexpr const char* kernels = "sums";
  static gemm_all_reduce_problem planned() { return {.m = 6, .n = 64, .k = 128}; }
  static gemm_all_reduce make(world& w, const operator_options& o) { return {w, planned(), o}; }
  static std::string problem(world& w, const gemm_all_reduce& op, int m) {
    const auto apart = static_cast<const std::byte*>(w.translate(op.result().data, 1)) -
                       static_cast<const std::byte*>(w.translate(op.result().data, 0));
    return fmt::format(
        "gemm_all_reduce, m {}, n 64, k 128, bf16, bf16, everywhere, phases {}, to {}, {} apart", m,
        op.plan().phases, text_of(op.result().data), apart);
  }
  static std::string agreed() { return "m 6, n 64, k 128, bf16, partials bf16"; }
  static void run(gemm_all_reduce& op, elements& a, elements& b, const matrix& c, stream_ref s) {
    const std::int64_t depth = gemm_all_reduce::k_shard(planned(), op.plan().world, op.plan().rank);
    op.run(as_const(a.as({c.rows, depth})), as_const(b.as({64, depth})), c, s);
  }
  static matrix result(gemm_all_reduce& /*op*/, elements& c, std::int64_t rows) {
    return c.as({rows, 64});
  }
};

}  // namespace untax::pretended_uses
