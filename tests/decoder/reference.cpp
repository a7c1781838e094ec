#include "tests/decoder/reference.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <untax/ops/rope_table.hpp>

#include "decoder/tensor_names.hpp"

namespace untax_test {

using untax::layer_names;

reference_decoder::numbers reference_decoder::tensor(const std::string& name) const {
  const auto shape = source_.find(name);
  if (!shape) throw std::runtime_error(name);
  std::vector<float> read(static_cast<std::size_t>(shape->rows * shape->cols));
  source_.read(name, {0, shape->rows}, {0, shape->cols},
               untax::matrix(read.data(), shape->rows, shape->cols));
  return {read.begin(), read.end()};
}

reference_decoder::numbers reference_decoder::project(const numbers& x, const std::string& name,
                                                      bool bias, std::int64_t first,
                                                      std::int64_t count) const {
  const auto shape = *source_.find(name + ".weight");
  if (count < 0) count = shape.rows;
  const numbers w = tensor(name + ".weight");
  const numbers b = bias ? tensor(name + ".bias") : numbers(static_cast<std::size_t>(shape.rows));
  const auto k = static_cast<std::size_t>(shape.cols);
  numbers out;
  for (std::size_t row = 0; row < x.size() / k; ++row) {
    for (auto n = static_cast<std::size_t>(first); n < static_cast<std::size_t>(first + count);
         ++n) {
      double sum = b[n];
      for (std::size_t i = 0; i < k; ++i) sum += x[row * k + i] * w[n * k + i];
      out.push_back(sum);
    }
  }
  return out;
}

reference_decoder::numbers reference_decoder::normed(const numbers& x, const std::string& name,
                                                     std::int64_t width) const {
  const numbers w = tensor(name + ".weight");
  const auto cols = static_cast<std::size_t>(width);
  numbers out(x.size());
  for (std::size_t begin = 0; begin < x.size(); begin += cols) {
    double squares = 0;
    for (std::size_t i = 0; i < cols; ++i) squares += x[begin + i] * x[begin + i];
    const double rms =
        std::sqrt(squares / static_cast<double>(width) + static_cast<double>(config_.epsilon));
    for (std::size_t i = 0; i < cols; ++i) {
      out[begin + i] = x[begin + i] / rms * (w[i] + static_cast<double>(config_.norm_offset));
    }
  }
  return out;
}

void reference_decoder::rotate(numbers& heads, std::int64_t layer, std::int64_t tokens) const {
  const bool local = config_.windows[static_cast<std::size_t>(layer)] > 0;
  const auto& frequencies = local ? config_.local_rotation : config_.rotation;
  const std::vector<double> angles = untax::rope_angles(frequencies);
  const auto dim = static_cast<std::size_t>(config_.head_dim);
  const std::size_t width = heads.size() / static_cast<std::size_t>(tokens);
  for (std::size_t at = 0; at < heads.size(); at += dim) {
    const auto position = static_cast<double>(at / width);
    for (std::size_t i = 0; i < angles.size(); ++i) {
      double& a = heads[at + i];
      double& b = heads[at + i + angles.size()];
      const double c = std::cos(position * angles[i]);
      const double s = std::sin(position * angles[i]);
      const double rotated = a * c - b * s;
      b = b * c + a * s;
      a = rotated;
    }
  }
}

reference_decoder::numbers reference_decoder::attention(const numbers& x, std::int64_t layer,
                                                        std::int64_t tokens) const {
  const layer_names names = untax::names_of_layer(config_, "model.", layer);
  const std::int64_t heads = config_.heads * config_.head_dim;
  const std::int64_t kv = config_.kv_heads * config_.head_dim;
  const bool fused = config_.fused_weights;
  const bool bias = config_.qkv_bias;
  numbers q = fused ? project(x, names.qkv, bias, 0, heads) : project(x, names.q, bias);
  numbers k = fused ? project(x, names.qkv, bias, heads, kv) : project(x, names.k, bias);
  const numbers v = fused ? project(x, names.qkv, bias, heads + kv, kv) : project(x, names.v, bias);
  if (config_.head_norms) {
    q = normed(q, names.q_norm, config_.head_dim);
    k = normed(k, names.k_norm, config_.head_dim);
  }
  rotate(q, layer, tokens);
  rotate(k, layer, tokens);
  const double scale = config_.attention_scale > 0
                           ? static_cast<double>(config_.attention_scale)
                           : 1 / std::sqrt(static_cast<double>(config_.head_dim));
  const auto dim = static_cast<std::size_t>(config_.head_dim);
  numbers out(q.size());
  for (std::size_t t = 0; t < static_cast<std::size_t>(tokens); ++t) {
    for (std::size_t h = 0; h < static_cast<std::size_t>(config_.heads); ++h) {
      const std::size_t group =
          h * static_cast<std::size_t>(config_.kv_heads) / static_cast<std::size_t>(config_.heads);
      const auto key = [&](std::size_t s) {
        return s * static_cast<std::size_t>(kv) + group * dim;
      };
      const std::size_t query = t * static_cast<std::size_t>(heads) + h * dim;
      numbers weights(t + 1);
      double sum = 0;
      const auto window =
          static_cast<std::size_t>(config_.windows[static_cast<std::size_t>(layer)]);
      for (std::size_t s = window > 0 && t >= window ? t - window + 1 : 0; s <= t; ++s) {
        double logit = 0;
        for (std::size_t i = 0; i < dim; ++i) logit += q[query + i] * k[key(s) + i];
        const auto cap = static_cast<double>(config_.attention_cap);
        logit *= scale;
        sum += weights[s] = std::exp(cap > 0 ? cap * std::tanh(logit / cap) : logit);
      }
      for (std::size_t s = 0; s <= t; ++s) {
        for (std::size_t i = 0; i < dim; ++i) out[query + i] += weights[s] / sum * v[key(s) + i];
      }
    }
  }
  return project(out, names.output, config_.output_bias);
}

reference_decoder::numbers reference_decoder::mlp(const numbers& x, std::int64_t layer) const {
  const layer_names names = untax::names_of_layer(config_, "model.", layer);
  const std::int64_t n = config_.intermediate;
  const bool fused = config_.fused_weights;
  const bool bias = config_.mlp_bias;
  numbers gate = fused ? project(x, names.gate_up, bias, 0, n) : project(x, names.gate, bias);
  const numbers up = fused ? project(x, names.gate_up, bias, n, n) : project(x, names.up, bias);
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const double g = gate[i];
    const double cubic = std::sqrt(2 / std::acos(-1.0)) * (g + 0.044715 * g * g * g);
    gate[i] = up[i] * (config_.gate == untax::activation_function::swiglu
                           ? g / (1 + std::exp(-g))
                           : g / 2 * (1 + std::tanh(cubic)));
  }
  return project(gate, names.down, bias);
}

std::vector<double> reference_decoder::logits(const std::vector<std::int32_t>& tokens) const {
  const auto hidden = static_cast<std::size_t>(config_.hidden);
  const auto count = static_cast<std::int64_t>(tokens.size());
  const numbers embedding = tensor("model.embed_tokens.weight");
  numbers x;
  for (const std::int32_t token : tokens) {
    for (std::size_t i = 0; i < hidden; ++i) {
      x.push_back(embedding[static_cast<std::size_t>(token) * hidden + i] *
                  static_cast<double>(config_.embedding_scale));
    }
  }
  const auto add = [&](numbers more, const std::string& post_norm) {
    if (!post_norm.empty()) more = normed(more, post_norm, config_.hidden);
    std::ranges::transform(x, more, x.begin(), std::plus{});
  };
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    const layer_names names = untax::names_of_layer(config_, "model.", layer);
    add(attention(normed(x, names.input_norm, config_.hidden), layer, count),
        names.attention_post_norm);
    add(mlp(normed(x, names.mlp_norm, config_.hidden), layer), names.mlp_post_norm);
  }
  x.erase(x.begin(), x.end() - static_cast<std::ptrdiff_t>(hidden));
  const std::string head = config_.tied_embedding ? "model.embed_tokens" : "lm_head";
  numbers result = project(normed(x, "model.norm", config_.hidden), head, false);
  const auto cap = static_cast<double>(config_.logit_cap);
  for (double& logit : result) logit = cap > 0 ? cap * std::tanh(logit / cap) : logit;
  return result;
}

}  // namespace untax_test
