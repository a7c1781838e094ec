#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <untax/core/types.hpp>
#include <untax/taxes/model_config.hpp>

namespace untax {

/// One multiplication of a layer under tensor parallelism, with the communication it is fused with.
///
/// * `all_gather_gemm` (rows gathered): m = tokens, sharded over the ranks by ceil(m / W); k = the
/// whole reduction
///   dimension; n = the columns of *one* rank.
/// * `gemm_reduce_scatter`: m = tokens, n = all columns, k = the *global* reduction dimension,
/// sharded by ceil(k / W).
struct layer_operation {
  std::string name;           ///< "qkv", "o", "gate_up", "down", ...
  std::string operator_name;  ///< "all_gather_gemm" or "gemm_reduce_scatter"
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  int per_layer = 1;  ///< how often it occurs in a layer that has it
  int layers = 1;     ///< how many layers of the model have it
  dtype type = dtype::bf16;

  /// How often it occurs in the whole model.
  [[nodiscard]] std::int64_t occurrences() const noexcept {
    return std::int64_t{per_layer} * layers;
  }
  /// Two operations of the same operator, shape and type take the same time: one measurement serves
  /// both.
  [[nodiscard]] bool same_problem(const layer_operation& other) const noexcept;
  bool operator==(const layer_operation&) const = default;
};

/// The operations of `model` that communicate, for `tokens` rows shared by `tensor_parallel` ranks,
/// in the order a token meets them. Throws `untax::error` (invalid_argument) when the ranks cannot
/// share the heads, or a count is absurd.
[[nodiscard]] std::vector<layer_operation> layer_operations(const model_config& model,
                                                            int tensor_parallel, int tokens);

/// Plain-English sentences about what `layer_operations` leaves out or assumes for this model, so
/// that nothing is missing silently. Includes `model.notes`.
[[nodiscard]] std::vector<std::string> layer_notes(const model_config& model, int tensor_parallel);

}  // namespace untax
