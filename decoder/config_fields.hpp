#pragma once

#include <string>

#include <untax/decoder/config.hpp>

#include "decoder/family.hpp"
#include "src/core/config_reader.hpp"

namespace untax {

/// Throws `unsupported` with the field, its value and the reason.
[[noreturn]] void refuse_property(const config_reader& config, const std::string& key,
                                  const std::string& reason);

/// Reads the rotations of positions, in the layouts of transformers 4 and 5.
void read_rotations(const config_reader& config, decoder_config& result);

/// Reads the sliding windows of all layers.
void read_windows(const config_reader& config, const decoder_family& family,
                  decoder_config& result);

}  // namespace untax
