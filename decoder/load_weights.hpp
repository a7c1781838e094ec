#pragma once

#include <memory>
#include <vector>

#include <untax/decoder/config.hpp>
#include <untax/decoder/weights.hpp>

#include "decoder/backend.hpp"
#include "decoder/weight_source.hpp"

namespace untax {

/// A rank's weights, and the memory they lie in.
struct loaded_weights {
  decoder_weights weights;
  std::vector<std::shared_ptr<void>> memory;
};

/// Reads the part of rank `rank` of `ranks` into memory of `backend`. Throws `invalid_argument`
/// with the name of a tensor that is missing, has another shape, or is there although the
/// configuration says nothing of it, such as a bias.
[[nodiscard]] loaded_weights load_weights(const decoder_config& config, int rank, int ranks,
                                          weight_source& source, decoder_backend& backend);

}  // namespace untax
