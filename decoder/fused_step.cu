#include "decoder/fused_step.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <untax/core/pattern.hpp>

#include "engines/gpu/decode_step/decode_step.hpp"

namespace untax {
namespace {

/// The model without its pointers. `share`: of a rank.
gpu::step_model model_of(const decoder_operators& d, const weight_shares& share) {
  const decoder_config& c = d.config;
  gpu::step_model m;
  m.type = c.type;
  m.most_tokens = static_cast<int>(std::min(d.options.sequences, std::int64_t{most_fused_tokens}));
  m.hidden = static_cast<int>(c.hidden);
  m.heads = static_cast<int>(share.heads.size());
  m.kv_heads = static_cast<int>(share.kv_heads.size());
  m.head_dim = static_cast<int>(c.head_dim);
  m.rotated = static_cast<int>(c.rotation.rotated);
  m.intermediate = static_cast<int>(share.intermediate.size());
  m.page_size = static_cast<int>(d.options.page_size);
  m.sequence_pages = static_cast<int>(d.sequence_pages());
  m.window = static_cast<int>(d.window);
  m.gate = c.gate;
  m.epsilon = c.epsilon;
  m.scale =
      c.attention_scale > 0 ? c.attention_scale : 1 / std::sqrt(static_cast<float>(c.head_dim));
  m.layers.resize(static_cast<std::size_t>(c.layers));
  return m;
}

/// Whether all ranks have such a kernel, which each of them finds out alone.
bool all_serve(const decoder_operators& d) {
  const decoder_config& c = d.config;
  if (!may_be_one_kernel(c) || !d.options.one_kernel || d.options.invariant ||
      d.options.how != pattern::automatic)
    return false;
  for (int rank = 0; rank < d.job->size(); ++rank) {
    if (!gpu::decode_step::serves(*d.job, model_of(d, shares_of(c, rank, d.job->size()))))
      return false;
  }
  return true;
}

class device_fused_step final : public fused_step {
 public:
  device_fused_step(decoder_operators& d, const gpu::step_model& model)
      : d_(&d),
        most_rows_(model.most_tokens),
        step_(*d.job, model),
        normed_(d.backend->allocate(static_cast<std::size_t>(model.most_tokens) *
                                    static_cast<std::size_t>(model.hidden) * size_of(model.type))) {
  }

  [[nodiscard]] std::int64_t most_rows() const noexcept override { return most_rows_; }
  matrix run(const layer_tokens& tokens, const layer_state& state, stream_ref stream) override {
    step_.run({.lengths = tokens.lengths,
               .page_table = tokens.page_table,
               .x = state.x.data,
               .normed = normed_.get(),
               .tokens = static_cast<int>(tokens.rows)},
              stream);
    return d_->view(normed_, tokens.rows, d_->config.hidden);
  }

 private:
  decoder_operators* d_;
  std::int64_t most_rows_;
  gpu::decode_step step_;
  std::shared_ptr<void> normed_;
};

}  // namespace

std::unique_ptr<fused_step> device_fused_step_of(decoder_operators& d,
                                                 const decoder_weights& weights,
                                                 std::span<const layer_cache> caches) {
  if (!all_serve(d)) return nullptr;
  gpu::step_model model = model_of(d, d.share);
  model.rotations = static_cast<const float*>(d.rotations.get());
  model.final_norm = weights.final_norm;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const decoder_layer_weights& from = weights.layers[i];
    model.layers[i] = {.qkv = from.qkv,
                       .output = from.output,
                       .gate_up = from.gate_up,
                       .down = from.down,
                       .qkv_bias = from.qkv_bias,
                       .output_bias = from.output_bias,
                       .gate_up_bias = from.gate_up_bias,
                       .down_bias = from.down_bias,
                       .q_norm = from.q_norm,
                       .k_norm = from.k_norm,
                       .input_norm = from.input_norm,
                       .mlp_norm = from.mlp_norm,
                       .keys = caches[i].keys,
                       .values = caches[i].values,
                       .windowed = d.config.windows[i] > 0};
  }
  return std::make_unique<device_fused_step>(d, model);
}

}  // namespace untax
