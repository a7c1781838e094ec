#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <untax/core/types.hpp>
#include <untax/ops/problems.hpp>
#include <untax/taxes/model_config.hpp>

namespace untax {

/// The heads of an operation that is attention.
struct attention_heads {
  std::int64_t heads = 0;     ///< of the queries
  std::int64_t kv_heads = 0;  ///< of keys and values
  std::int64_t head_dim = 0;

  bool operator==(const attention_heads&) const = default;
};

/// One operation of a layer under tensor parallelism, with the communication it is fused with.
///
/// * `all_gather_gemm`: m = tokens; k = the whole reduction dimension; n = the columns of *one*
/// rank.
/// * `gemm_all_scatter`: m = tokens, n = all columns, k = the reduction dimension.
/// * `gemm_reduce_scatter`: m = tokens, n = all columns, k = the *global* reduction dimension,
/// sharded by ceil(k / W).
/// * `gemm_all_reduce`: the same, and the result is complete at every rank.
/// * `flash_decode`: m = sequences, of which each decodes one token; n = heads * head_dim; k = the
/// keys that *one* rank holds of each sequence.
struct layer_operation {
  std::string name;  ///< "qkv", "o", "gate_up", "down", ...
  std::string operator_name;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  int per_layer = 1;  ///< how often it occurs in a layer that has it
  int layers = 1;     ///< how many layers of the model have it
  dtype type = dtype::bf16;
  gather_axis gather = gather_axis::rows;  ///< of all_gather_gemm
  attention_heads attention = {};          ///< of flash_decode

  /// How often it occurs in the whole model.
  [[nodiscard]] std::int64_t occurrences() const noexcept {
    return std::int64_t{per_layer} * layers;
  }
  /// Two operations of the same operator, shape and type take the same time: one measurement serves
  /// both.
  [[nodiscard]] bool same_problem(const layer_operation& other) const noexcept;
  bool operator==(const layer_operation&) const = default;
};

/// How the activations of a layer lie between its GEMMs.
enum class layer_layout : std::uint8_t {
  sequence_parallel,  ///< tokens are shared: qkv and gate_up gather them, o and down scatter sums
  all_reduce,  ///< all ranks have all tokens: o and down sum over ranks, the others are local
};

[[nodiscard]] constexpr std::string_view name_of(layer_layout layout) noexcept {
  return layout == layer_layout::all_reduce ? "all-reduce" : "sequence-parallel";
}

/// The operations of `model` that communicate, for `tokens` rows shared by `tensor_parallel` ranks,
/// in the order a token meets them. With `keys` above 0 every token is the next one of another
/// sequence, of which the ranks hold so many keys together: then attention is one of them. Throws
/// `untax::error` (invalid_argument) when the ranks cannot share the heads, or a count is absurd.
[[nodiscard]] std::vector<layer_operation> layer_operations(
    const model_config& model, int tensor_parallel, int tokens, std::int64_t keys = 0,
    layer_layout layout = layer_layout::sequence_parallel);

/// Plain-English sentences about what `layer_operations` leaves out or assumes for this model, so
/// that nothing is missing silently. Includes `model.notes`.
[[nodiscard]] std::vector<std::string> layer_notes(
    const model_config& model, int tensor_parallel, std::int64_t keys = 0,
    layer_layout layout = layer_layout::sequence_parallel);

}  // namespace untax
