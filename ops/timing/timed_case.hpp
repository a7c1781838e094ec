#pragma once

#include <cstdint>
#include <string>

#include <untax/ops/problems.hpp>

#include "ops/common/registry.hpp"

namespace untax {

/// One figure: an operator at one size on a number of ranks, in one pattern or by one library.
struct timed_case {
  std::string op;  ///< "gemm", "all_gather_gemm", ..., "all_reduce"
  /// "fused_sequential", ..., "bulk_library graph", "bulk_library eager", "GEMM alone",
  /// "cuBLASLt alone", "NCCL", "untax", "untax direct", "local"
  std::string by;
  int ranks = 1;
  gather_axis gather = gather_axis::rows;
  std::int64_t m = 0;  ///< of GEMMs, as `untax bench` counts them; of flash_decode the batch
  std::int64_t n = 0;
  std::int64_t k = 0;
  double bytes = 0;  ///< of a collective, as `untax bench collectives` counts them
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t keys = 0;  ///< keys that one rank holds of each sequence

  /// Whether the case is a GEMM, alone or of an operator.
  [[nodiscard]] bool is_gemm() const noexcept { return m > 0 && heads == 0; }
  [[nodiscard]] bool is_attention() const noexcept { return heads > 0; }
  /// The GEMM operator; null for any other case.
  [[nodiscard]] const operator_entry* entry() const { return find_operator(op); }
  [[nodiscard]] bool gathers() const { return entry() != nullptr && entry()->gathers; }
  [[nodiscard]] bool columns_sharded() const {
    return entry() != nullptr && entry()->columns_sharded;
  }
  [[nodiscard]] bool sums() const { return entry() != nullptr && entry()->sums_to.has_value(); }

  /// "all_gather_gemm 64 x 7168 x 8192, rows, fused_sequential".
  [[nodiscard]] std::string text() const;
};

}  // namespace untax
