#include "decoder/load_weights.hpp"

#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "decoder/convert.hpp"
#include "decoder/tensor_names.hpp"

namespace untax {
namespace {

/// Rows and columns of a tensor.
struct tensor_part {
  std::string name;
  index_range rows;
  index_range cols;
};

index_range elements(const index_range& heads, std::int64_t head_dim) {
  return {heads.begin * head_dim, heads.end * head_dim};
}

index_range after(const index_range& range, std::int64_t offset) {
  return {range.begin + offset, range.end + offset};
}

class loader {
 public:
  loader(const decoder_config& config, int rank, int ranks, weight_source& source,
         decoder_backend& backend)
      : config_(config),
        rank_(rank),
        share_(shares_of(config, rank, ranks)),
        source_(source),
        backend_(backend),
        prefix_(prefix_of(source)),
        tensors_(tensors_of(config, prefix_)) {
    for (const auto& [name, shape] : tensors_) {
      require(name, shape);
      const std::string bias = name.substr(0, name.rfind('.')) + ".bias";
      if (!tensors_.contains(bias) && source.find(bias)) {
        throw error(
            errc::invalid_argument,
            fmt::format("there is a tensor {}, which the configuration does not have", bias));
      }
    }
  }

  loaded_weights load() {
    const index_range columns{0, config_.hidden};
    decoder_weights& weights = made_.weights;
    weights.embedding = matrix_of({{prefix_ + "embed_tokens.weight", share_.vocabulary, columns}});
    weights.head = config_.tied_embedding
                       ? weights.embedding
                       : matrix_of({{"lm_head.weight", share_.vocabulary, columns}});
    weights.final_norm = norm(prefix_ + "norm");
    for (std::int64_t i = 0; i < config_.layers; ++i) weights.layers.push_back(layer(i));
    return std::move(made_);
  }

 private:
  static std::string prefix_of(const weight_source& source) {
    for (const char* prefix : {"model.", "language_model.model.", "model.language_model."}) {
      if (source.find(prefix + std::string("embed_tokens.weight"))) return prefix;
    }
    throw error(errc::invalid_argument, "there is no tensor model.embed_tokens.weight");
  }

  void require(const std::string& name, const weight_source::shape& right) const {
    const auto given = source_.find(name);
    if (!given) throw error(errc::invalid_argument, fmt::format("there is no tensor {}", name));
    if (given->rows == right.rows && given->cols == right.cols) return;
    throw error(errc::invalid_argument,
                fmt::format("tensor {} is [{}, {}]; by the configuration it should be [{}, {}]",
                            name, given->rows, given->cols, right.rows, right.cols));
  }

  decoder_layer_weights layer(std::int64_t i) {
    const layer_names names = names_of_layer(config_, prefix_, i);
    const index_range heads = elements(share_.heads, config_.head_dim);
    const index_range columns{0, config_.hidden};
    return {.qkv = matrix_of(qkv(names, ".weight", columns)),
            .output = matrix_of({{names.output + ".weight", columns, heads}}),
            .gate_up = gate_up(names, ".weight", columns),
            .down = matrix_of({{names.down + ".weight", columns, share_.intermediate}}),
            .qkv_bias = config_.qkv_bias ? qkv_bias(names) : nullptr,
            .output_bias = config_.output_bias ? sum_bias(names.output) : nullptr,
            .gate_up_bias = config_.mlp_bias ? gate_up_bias(names) : nullptr,
            .down_bias = config_.mlp_bias ? sum_bias(names.down) : nullptr,
            .q_norm = norm(names.q_norm),
            .k_norm = norm(names.k_norm),
            .input_norm = norm(names.input_norm),
            .mlp_norm = norm(names.mlp_norm),
            .attention_post_norm = norm(names.attention_post_norm),
            .mlp_post_norm = norm(names.mlp_post_norm)};
  }

  /// The parts of the projections to queries, keys and values, as rows.
  [[nodiscard]] std::vector<tensor_part> qkv(const layer_names& names, const char* end,
                                             const index_range& cols) const {
    const index_range q = elements(share_.heads, config_.head_dim);
    const index_range kv = elements(share_.kv_heads, config_.head_dim);
    if (!config_.fused_weights) {
      return {{names.q + end, q, cols}, {names.k + end, kv, cols}, {names.v + end, kv, cols}};
    }
    const std::int64_t keys = config_.heads * config_.head_dim;
    const std::int64_t values = keys + config_.kv_heads * config_.head_dim;
    const std::string name = names.qkv + end;
    return {{name, q, cols}, {name, after(kv, keys), cols}, {name, after(kv, values), cols}};
  }

  /// Rows of gate and up in turn, 8 of each.
  [[nodiscard]] std::vector<tensor_part> gate_up_parts(const layer_names& names, const char* end,
                                                       const index_range& cols) const {
    const bool fused = config_.fused_weights;
    const std::string gate = (fused ? names.gate_up : names.gate) + end;
    const std::string up = (fused ? names.gate_up : names.up) + end;
    std::vector<tensor_part> parts;
    for (std::int64_t row = share_.intermediate.begin; row < share_.intermediate.end; row += 8) {
      const index_range rows{row, row + 8};
      parts.push_back({gate, rows, cols});
      parts.push_back({up, after(rows, fused ? config_.intermediate : 0), cols});
    }
    return parts;
  }
  const_matrix gate_up(const layer_names& names, const char* end, const index_range& cols) {
    return matrix_of(gate_up_parts(names, end, cols));
  }

  const void* qkv_bias(const layer_names& names) { return vector_of(qkv(names, ".bias", {0, 1})); }
  const void* gate_up_bias(const layer_names& names) {
    return vector_of(gate_up_parts(names, ".bias", {0, 1}));
  }
  /// A bias of a sum over ranks, which one of them adds.
  const void* sum_bias(const std::string& name) {
    return rank_ == 0 ? vector_of({{name + ".bias", {0, config_.hidden}, {0, 1}}}) : nullptr;
  }

  const void* norm(const std::string& name) {
    if (name.empty()) return nullptr;
    const auto& shape = tensors_.at(name + ".weight");
    const matrix read = staged(1, shape.cols);
    source_.read(name + ".weight", {0, 1}, {0, shape.cols}, read);
    for (std::int64_t i = 0; config_.norm_offset != 0 && i < shape.cols; ++i) {
      set_element(read.data, read.type, i,
                  element_at(read.data, read.type, i) + config_.norm_offset);
    }
    return kept(read).data;
  }

  /// The parts, one below the other.
  const_matrix matrix_of(const std::vector<tensor_part>& parts) {
    std::int64_t rows = 0;
    for (const tensor_part& part : parts) rows += part.rows.size();
    const matrix read = staged(rows, parts.front().cols.size());
    std::int64_t row = 0;
    for (const tensor_part& part : parts) {
      source_.read(part.name, part.rows, part.cols, rows_of(read, row, part.rows.size()));
      row += part.rows.size();
    }
    return kept(read);
  }

  /// The same of vectors, whose elements the parts' rows are.
  const void* vector_of(const std::vector<tensor_part>& parts) {
    std::int64_t count = 0;
    for (const tensor_part& part : parts) count += part.rows.size();
    const matrix read = staged(1, count);
    std::int64_t begin = 0;
    for (const tensor_part& part : parts) {
      matrix to = read;
      to.data = static_cast<std::byte*>(read.data) +
                static_cast<std::size_t>(begin) * size_of(config_.type);
      source_.read(part.name, {0, 1}, part.rows, to);
      begin += part.rows.size();
    }
    return kept(read).data;
  }

  static matrix rows_of(const matrix& m, std::int64_t row, std::int64_t count) {
    matrix part = m;
    part.data = static_cast<std::byte*>(m.data) +
                static_cast<std::size_t>(row * m.stride) * size_of(m.type);
    part.rows = count;
    return part;
  }

  matrix staged(std::int64_t rows, std::int64_t cols) {
    staging_.resize(static_cast<std::size_t>(rows * cols) * size_of(config_.type));
    return {staging_.data(), config_.type, rows, cols};
  }
  const_matrix kept(const matrix& read) {
    made_.memory.push_back(backend_.allocate(staging_.size()));
    backend_.upload(made_.memory.back().get(), staging_.data(), staging_.size(), {});
    return {made_.memory.back().get(), read.type, read.rows, read.cols};
  }

  const decoder_config& config_;
  int rank_;
  weight_shares share_;
  weight_source& source_;
  decoder_backend& backend_;
  std::string prefix_;
  std::map<std::string, weight_source::shape> tensors_;
  std::vector<std::byte> staging_;
  loaded_weights made_;
};

}  // namespace

loaded_weights load_weights(const decoder_config& config, int rank, int ranks,
                            weight_source& source, decoder_backend& backend) {
  return loader(config, rank, ranks, source, backend).load();
}

}  // namespace untax
