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

/// One operation of a layer under tensor parallelism, with its communication.
///
/// * `all_gather_gemm`: m = tokens; k = the whole reduction dimension; n = the columns of *one*
///   rank.
/// * `gemm_all_scatter`: m = tokens, n = all columns, k = the reduction dimension.
/// * an operator that sums over ranks: m = tokens, n = all columns, k = the *global* reduction
///   dimension, sharded by ceil(k / W).
/// * `flash_decode`: m = sequences, of which each decodes one token; n = heads * head_dim; k = the
///   keys of each sequence at *one* rank.
struct layer_operation {
  std::string name;  ///< "qkv", "o", "gate_up", "down", ...
  std::string operator_name;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  int per_layer = 1;  ///< number of times that it occurs in a layer that has it
  int layers = 1;     ///< number of layers of the model that have it
  dtype type = dtype::bf16;
  gather_axis gather = gather_axis::rows;  ///< of all_gather_gemm
  attention_heads attention = {};          ///< of flash_decode

  /// The number of times that it occurs in the whole model.
  [[nodiscard]] std::int64_t occurrences() const noexcept {
    return std::int64_t{per_layer} * layers;
  }
  /// Whether both have the same operator, shape and type. Then they take the same time, and one
  /// measurement is enough for both.
  [[nodiscard]] bool same_problem(const layer_operation& other) const noexcept;
  bool operator==(const layer_operation&) const = default;
};

/// The distribution of the activations of a layer between its GEMMs.
enum class layer_layout : std::uint8_t {
  sequence_parallel,  ///< tokens are sharded: qkv and gate_up gather them, o and down scatter sums
  all_reduce,  ///< all ranks have all tokens: o and down sum over ranks, the others are local
};

/// The name of `layout` in options and reports.
[[nodiscard]] constexpr std::string_view name_of(layer_layout layout) noexcept {
  return layout == layer_layout::all_reduce ? "all-reduce" : "sequence-parallel";
}

/// The operations of `model` that communicate, for `tokens` rows on `tensor_parallel` ranks, in the
/// order of the layer. With `keys` above 0 every token is the next one of another sequence, of
/// which the ranks have `keys` keys together; then attention is one of the operations. Throws
/// `invalid_argument` if the heads cannot be sharded over the ranks, or if a number is out of
/// range.
[[nodiscard]] std::vector<layer_operation> layer_operations(
    const model_config& model, int tensor_parallel, int tokens, std::int64_t keys = 0,
    layer_layout layout = layer_layout::sequence_parallel);

/// Sentences about the parts that `layer_operations` leaves out or assumes for this model, so that
/// reports name them. They include `model.notes`.
[[nodiscard]] std::vector<std::string> layer_notes(
    const model_config& model, int tensor_parallel, std::int64_t keys = 0,
    layer_layout layout = layer_layout::sequence_parallel);

}  // namespace untax
