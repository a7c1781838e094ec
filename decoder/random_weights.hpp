#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <untax/decoder/config.hpp>

#include "decoder/weight_source.hpp"

namespace untax {

/// Weights that depend only on seed, name and place: the same however they are split over ranks.
/// Matrices are N(0, 1 / columns), embeddings N(0, 1), so that activations keep their size; norms
/// are near one, less the offset of their family.
class random_weights : public weight_source {
 public:
  random_weights(const decoder_config& config, std::uint64_t seed);

  [[nodiscard]] std::optional<shape> find(const std::string& name) const override;
  void read(const std::string& name, const index_range& rows, const index_range& cols,
            const matrix& to) override;

 private:
  std::uint64_t seed_;
  float norm_offset_;
  std::map<std::string, shape> tensors_;
};

}  // namespace untax
