#include <untax/taxes/layer.hpp>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <untax/core/environment.hpp>
#include <untax/core/error.hpp>

#include "ops/common/registry.hpp"

namespace untax {
namespace {

constexpr int most_tokens = 1 << 24;
constexpr std::int64_t most_keys = std::int64_t{1} << 31;

bool can_share_heads(const model_config& model, std::int64_t ranks) {
  if (model.heads % ranks != 0) return false;
  // Latent attention makes k and v of each head from a vector that every rank has.
  if (model.latent) return true;
  return model.kv_heads % ranks == 0 || ranks % model.kv_heads == 0;
}

void check_arguments(const model_config& model, int tensor_parallel, int tokens,
                     std::int64_t keys) {
  if (keys < 0 || keys > most_keys) {
    throw error(errc::invalid_argument,
                fmt::format("keys is {}; should be from 0 to {}", keys, most_keys));
  }
  if (tokens < 1 || tokens > most_tokens) {
    throw error(errc::invalid_argument,
                fmt::format("tokens is {}; should be from 1 to {}", tokens, most_tokens));
  }
  if (tensor_parallel >= 1 && can_share_heads(model, tensor_parallel)) return;
  std::vector<std::int64_t> possible;
  for (std::int64_t ranks = 1; ranks <= std::min<std::int64_t>(model.heads, 128); ++ranks) {
    if (can_share_heads(model, ranks)) possible.push_back(ranks);
  }
  throw error(errc::invalid_argument,
              fmt::format("{}: tensor_parallel is {}, which cannot share {} attention heads and {} "
                          "key/value heads evenly; "
                          "possible are {}",
                          model.name, tensor_parallel, model.heads, model.kv_heads,
                          fmt::join(possible, ", ")));
}

/// Appends operations that share tokens and element type.
class operation_list {
 public:
  operation_list(const model_config& model, int tokens, layer_layout layout)
      : model_(model), tokens_(tokens), reduces_(layout == layer_layout::all_reduce) {}

  /// Adds an operation that gathers the tokens of all ranks; none if every rank has all of them.
  void gather(std::string name, std::int64_t columns_of_rank, std::int64_t layers) {
    if (reduces_) return;
    add(std::move(name), "all_gather_gemm", columns_of_rank, model_.hidden, layers);
  }
  /// Adds an operation that ends with a sum over ranks.
  void sum(std::string name, std::int64_t global_k, std::int64_t layers) {
    const auto target = reduces_ ? reduce_target::everywhere : reduce_target::owner;
    const auto entry = std::ranges::find(operators(), target, &operator_entry::sums_to);
    add(std::move(name), entry->name, model_.hidden, global_k, layers);
  }
  void attend(std::int64_t keys_of_rank) {
    const attention_heads heads{model_.heads, model_.kv_heads, model_.head_dim};
    add("attention", "flash_decode", heads.heads * heads.head_dim, keys_of_rank, model_.layers);
    operations_.back().attention = heads;
  }
  [[nodiscard]] std::vector<layer_operation> take() && { return std::move(operations_); }

 private:
  void add(std::string name, const std::string& operator_name, std::int64_t n, std::int64_t k,
           std::int64_t layers) {
    if (layers == 0) return;
    operations_.push_back(
        {std::move(name), operator_name, tokens_, n, k, 1, static_cast<int>(layers), model_.type});
  }

  const model_config& model_;
  int tokens_;
  bool reduces_;
  std::vector<layer_operation> operations_;
};

void add_attention(operation_list& list, const model_config& model, std::int64_t ranks,
                   std::int64_t keys) {
  const std::int64_t heads = model.heads / ranks;
  if (const auto& latent = model.latent) {
    const std::int64_t kv = latent->kv_rank + latent->qk_rope_head;
    if (latent->q_rank > 0) {
      list.gather("q_a_kv_a", latent->q_rank + kv, model.layers);
    } else {
      list.gather("q_kv_a", heads * model.head_dim + kv, model.layers);
    }
    list.sum("o", model.heads * latent->v_head, model.layers);
    return;
  }
  const std::int64_t kv_heads = std::max<std::int64_t>(1, model.kv_heads / ranks);
  list.gather("qkv", (heads + 2 * kv_heads) * model.head_dim, model.layers);
  if (keys > 0) list.attend(ceil_div(keys, ranks));
  list.sum("o", model.heads * model.head_dim, model.layers);
}

void add_mlp(operation_list& list, const model_config& model, const std::string& prefix,
             std::int64_t intermediate, std::int64_t layers, std::int64_t ranks) {
  const std::int64_t projections = model.gated_mlp ? 2 : 1;
  list.gather(prefix + (model.gated_mlp ? "gate_up" : "up"),
              projections * ceil_div(intermediate, ranks), layers);
  list.sum(prefix + "down", intermediate, layers);
}

void note_latent(std::vector<std::string>& notes, const latent_attention& latent) {
  if (latent.q_rank > 0) {
    notes.emplace_back(
        "Multi-head latent attention: every rank computes q_a and kv_a for all tokens (their "
        "weights are replicated); q_b "
        "and kv_b work on what a rank already has, so they communicate nothing and are left out.");
  } else {
    notes.emplace_back(
        "Multi-head latent attention: every rank computes kv_a for all tokens (its weights are "
        "replicated) and q for its "
        "own heads; kv_b works on what a rank already has, so it communicates nothing and is left "
        "out.");
  }
}

void note_attention(std::vector<std::string>& notes, std::int64_t keys) {
  notes.push_back(fmt::format(
      "Attention is that of decoding: each token is the next one of a sequence of {} keys, which "
      "the ranks share by position, so each of them attends with all heads. Bringing the heads of "
      "q from where qkv leaves them is not measured.",
      keys));
}

void note_experts(std::vector<std::string>& notes, const model_config& model,
                  const expert_config& moe) {
  notes.push_back(fmt::format(
      "In {} of {} layers each token visits {} of {} routed experts. These are not measured: "
      "sending tokens to experts and "
      "back is another operator. The times of the layer and of the model leave them out.",
      moe.layers, model.layers,
      moe.experts_per_token > 0 ? fmt::to_string(moe.experts_per_token) : "some", moe.experts));
  const auto size = static_cast<double>(size_of(model.type));
  const double weights = static_cast<double>(model.gated_mlp ? 3 : 2) *
                         static_cast<double>(model.hidden) * static_cast<double>(moe.intermediate);
  if (moe.experts_per_token > 0 && moe.intermediate > 0) {
    const auto visited = static_cast<double>(moe.experts_per_token);
    notes.push_back(fmt::format(
        "Of such a layer the routed experts are, for each token, {:.4g} MFLOP and {} that go to "
        "them and back; their weights are {}, of which a token reads {}.",
        2 * visited * weights * 1e-6,
        format_bytes(
            static_cast<std::size_t>(2 * visited * static_cast<double>(model.hidden) * size)),
        format_bytes(static_cast<std::size_t>(static_cast<double>(moe.experts) * weights * size)),
        format_bytes(static_cast<std::size_t>(visited * weights * size))));
  }
  if (moe.shared_intermediate > 0) {
    notes.push_back(fmt::format(
        "The shared expert of these layers (inner width {}) is measured, split over the ranks.",
        moe.shared_intermediate));
  }
}

}  // namespace

bool layer_operation::same_problem(const layer_operation& other) const noexcept {
  return operator_name == other.operator_name && m == other.m && n == other.n && k == other.k &&
         type == other.type && gather == other.gather && attention == other.attention;
}

std::vector<layer_operation> layer_operations(const model_config& model, int tensor_parallel,
                                              int tokens, std::int64_t keys, layer_layout layout) {
  check_arguments(model, tensor_parallel, tokens, keys);
  operation_list list(model, tokens, layout);
  add_attention(list, model, tensor_parallel, keys);
  add_mlp(list, model, "", model.intermediate, model.dense_layers(), tensor_parallel);
  if (model.moe && model.moe->shared_intermediate > 0) {
    add_mlp(list, model, "shared_", model.moe->shared_intermediate, model.moe->layers,
            tensor_parallel);
  }
  return std::move(list).take();
}

std::vector<std::string> layer_notes(const model_config& model, int tensor_parallel,
                                     std::int64_t keys, layer_layout layout) {
  std::vector<std::string> notes = model.notes;
  if (layout == layer_layout::all_reduce) {
    notes.emplace_back(
        "All ranks have all tokens: qkv and gate_up communicate nothing and are left out, o and "
        "down end with the sum over ranks.");
  }
  if (model.latent) note_latent(notes, *model.latent);
  if (!model.latent && tensor_parallel > model.kv_heads) {
    notes.push_back(fmt::format("{} ranks share {} key/value heads: each is computed by {} ranks.",
                                tensor_parallel, model.kv_heads, tensor_parallel / model.kv_heads));
  }
  if (model.dense_layers() > 0 && model.intermediate % tensor_parallel != 0) {
    notes.push_back(fmt::format(
        "{} ranks do not divide the MLP's inner width {}: the last rank has less to do.",
        tensor_parallel, model.intermediate));
  }
  if (model.moe) note_experts(notes, model, *model.moe);
  const bool attends = keys > 0 && !model.latent;
  if (attends) note_attention(notes, keys);
  notes.push_back(fmt::format(
      "Left out because they need no communication of this kind, or have an operator of their own: "
      "{}norms and activations, the embedding, and the projection to {}vocabulary entries at the "
      "end.",
      attends ? "" : "the attention between qkv and o, ",
      model.vocab > 0 ? fmt::format("{} ", model.vocab) : ""));
  return notes;
}

}  // namespace untax
