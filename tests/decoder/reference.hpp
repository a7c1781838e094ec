#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <untax/decoder/config.hpp>

#include "decoder/weight_source.hpp"

namespace untax_test {

/// A decoder in fp64, whole and without a cache: what the one under test is compared with. It knows
/// the tensors by their names in files, and nothing of shares or of interleaved rows.
class reference_decoder {
 public:
  reference_decoder(const untax::decoder_config& config, untax::weight_source& source)
      : config_(config), source_(source) {}

  /// The logits that follow the last of `tokens`.
  [[nodiscard]] std::vector<double> logits(const std::vector<std::int32_t>& tokens) const;

 private:
  using numbers = std::vector<double>;
  /// Rows follow each other; a vector is one row.
  [[nodiscard]] numbers tensor(const std::string& name) const;
  /// x W^T + bias of each row of x.
  [[nodiscard]] numbers project(const numbers& x, const std::string& name, bool bias,
                                std::int64_t first = 0, std::int64_t count = -1) const;
  /// RMSNorm of each `width` elements.
  [[nodiscard]] numbers normed(const numbers& x, const std::string& name, std::int64_t width) const;
  void rotate(numbers& heads, std::int64_t layer, std::int64_t tokens) const;
  [[nodiscard]] numbers attention(const numbers& x, std::int64_t layer, std::int64_t tokens) const;
  [[nodiscard]] numbers mlp(const numbers& x, std::int64_t layer) const;

  const untax::decoder_config& config_;
  untax::weight_source& source_;
};

}  // namespace untax_test
