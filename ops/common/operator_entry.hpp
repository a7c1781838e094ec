#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <untax/core/matrix.hpp>
#include <untax/core/memory_kind.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/ops/options.hpp>
#include <untax/ops/problems.hpp>
#include <untax/tile/program.hpp>
#include <untax/tile/shard.hpp>
#include <untax/world/world.hpp>

#include "ops/common/reduce_target.hpp"

namespace untax {

/// A problem for any of the GEMM operators; each uses the fields it knows.
struct gemm_problem {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  dtype type = dtype::f32;
  gather_axis gather = gather_axis::rows;
  std::optional<dtype> partials = std::nullopt;  ///< empty: as `type`
};

/// The parts of the whole A, B and C that one rank holds. The whole problem is C = A x B^T in all
/// operators; they differ in its sharding.
struct gemm_share {
  range a_rows, a_cols;
  range b_rows, b_cols;
  range c_rows, c_cols;
  std::uint64_t b_of_rank = 0;  ///< ranks with different values have different B
};

/// An operator behind an interface that is the same for all.
class runnable {
 public:
  runnable() = default;
  runnable(const runnable&) = delete;
  runnable& operator=(const runnable&) = delete;
  virtual ~runnable() = default;

  /// `stream` is only for worlds of GPUs.
  virtual void run(const const_matrix& a, const const_matrix& weights, const matrix& c,
                   stream_ref stream) = 0;
  [[nodiscard]] virtual const protocol_plan& plan() const = 0;
  [[nodiscard]] virtual const std::string& explain() const = 0;
  /// The required place of the result; null data if it may lie anywhere.
  [[nodiscard]] virtual matrix result() const { return {}; }
};

/// The description of an operator for the command, the benchmarks and the tests. An operator adds
/// itself to `operators()`.
struct operator_entry {
  std::string name;
  std::string summary;
  bool gathers = false;  ///< the operator has a gather axis, and can pull
  /// The destination of sums over ranks, if there are any; partial results have an element type.
  std::optional<reduce_target> sums_to = std::nullopt;
  bool columns_sharded = false;  ///< n counts the columns of all ranks; each multiplies its part
  bool on_gpus = false;          ///< the operator exists in worlds of GPUs, too
  bool result_in_heap = false;   ///< the operator owns its result, for peers to write
  bool copied = false;           ///< its protocol has a program for the copy engines of GPUs
  /// Bitwise reproducible for any timing.
  bool reproducible = false;

  std::function<std::unique_ptr<runnable>(world&, const gemm_problem&, const operator_options&)>
      make;
  std::function<gemm_share(const gemm_problem&, int world, int rank)> share;
  std::function<program(const gemm_problem&, const protocol_plan&)> protocol;
  /// The least bytes that a rank sends.
  std::function<double(const gemm_problem&, int world, int rank)> bytes_sent;
  /// The number of phases that untax chooses, if there are one or two. Empty if there is no choice.
  std::function<int(const gemm_problem&, int world, memory_kind)> phases = nullptr;
};

}  // namespace untax
