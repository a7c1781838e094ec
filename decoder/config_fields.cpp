#include "decoder/config_fields.hpp"

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax {
namespace {

constexpr double largest = 1e12;

rope_scaling scaling_of(const config_reader& config) {
  const std::string key = config.has("rope_type") ? "rope_type" : "type";
  if (!config.has(key)) return rope_scaling::none;
  const std::string name = config.text(key);
  using enum rope_scaling;
  for (const rope_scaling scaling : {none, linear, llama3, yarn}) {
    if (name == name_of(scaling)) return scaling;
  }
  refuse_property(config, key, "positions are scaled by linear, llama3 or yarn, or not");
}

double needed(const config_reader& config, const char* key, double least) {
  const auto given = config.optional_real(key, least, largest);
  if (!given) config.refuse(key, "is missing", "this scaling of positions needs it");
  return *given;
}

void read_scaling(const config_reader& config, double positions, rope_frequencies& result) {
  result.scaling = scaling_of(config);
  if (result.scaling == rope_scaling::none) return;
  result.factor = needed(config, "factor", 1);
  if (result.scaling == rope_scaling::linear) return;
  result.original_length =
      config.optional_real("original_max_position_embeddings", 1, largest).value_or(positions);
  if (result.scaling == rope_scaling::llama3) {
    result.low_freq_factor = needed(config, "low_freq_factor", 1e-6);
    result.high_freq_factor = needed(config, "high_freq_factor", 1e-6);
    if (result.high_freq_factor <= result.low_freq_factor) {
      config.refuse_value("high_freq_factor", "should be larger than low_freq_factor");
    }
    return;
  }
  for (const char* key : {"mscale", "mscale_all_dim"}) {
    if (config.has(key)) refuse_property(config, key, "only attention_factor scales rotations");
  }
  if (config.has("truncate")) result.truncate = config.flag("truncate");
  result.beta_fast = config.optional_real("beta_fast", 1e-6, largest).value_or(32);
  result.beta_slow = config.optional_real("beta_slow", 1e-6, largest).value_or(1);
  result.attention_factor = config.optional_real("attention_factor", 1e-6, 1e6).value_or(0);
}

/// What `config` says itself; `usual` has what it leaves out.
rope_frequencies read_rotation(const config_reader& config, std::int64_t head_dim, double positions,
                               rope_frequencies usual) {
  usual.theta = config.optional_real("rope_theta", 1, largest).value_or(usual.theta);
  if (const auto part = config.optional_real("partial_rotary_factor", 1e-6, 1)) {
    usual.rotated = static_cast<std::int64_t>(static_cast<double>(head_dim) * *part);
    if (usual.rotated < 2 || usual.rotated % 2 != 0) {
      config.refuse_value("partial_rotary_factor", "should leave an even number of elements");
    }
  }
  read_scaling(config, positions, usual);
  return usual;
}

bool slides(const config_reader& config, const std::string& type) {
  if (type == "sliding_attention") return true;
  if (type == "full_attention") return false;
  refuse_property(config, "layer_types",
                  fmt::format("layers have full or sliding attention, not {}", type));
}

/// Whether layer `i` has a window, by the rule of its family.
bool slides(const config_reader& config, window_rule rule, std::int64_t layers, std::int64_t i) {
  switch (rule) {
    case window_rule::none:
      return false;
    case window_rule::every:
      return true;
    case window_rule::upper:
      return config.flag("use_sliding_window") &&
             i >= (config.has("max_window_layers") ? config.count("max_window_layers", layers + 64)
                                                   : 28);
    case window_rule::alternate:
      return i % 2 == 0;
    case window_rule::pattern:
      return (i + 1) % config.optional_size("sliding_window_pattern", layers + 64).value_or(6) != 0;
  }
  return false;
}

}  // namespace

void refuse_property(const config_reader& config, const std::string& key,
                     const std::string& reason) {
  try {
    config.refuse_value(key, "untax does not run it: " + reason);
  } catch (const error& refusal) {
    throw error(errc::unsupported, refusal.what());
  }
}

void read_rotations(const config_reader& config, decoder_config& result) {
  const auto positions = static_cast<double>(result.positions);
  rope_frequencies usual;
  usual.rotated = result.head_dim;
  if (result.family == "gemma3_text") usual.theta = 1e6;
  // transformers 5 has one object, or one for each type of layer; 4 has fields and an object.
  if (config.has("rope_parameters")) {
    const config_reader given = config.part("rope_parameters");
    const bool by_type = given.has("full_attention");
    const auto read = [&](const char* type) {
      return read_rotation(by_type ? given.part(type) : given, result.head_dim, positions, usual);
    };
    result.rotation = read("full_attention");
    result.local_rotation =
        by_type && given.has("sliding_attention") ? read("sliding_attention") : result.rotation;
    return;
  }
  result.rotation = read_rotation(config, result.head_dim, positions, usual);
  if (config.has("rope_scaling")) {
    read_scaling(config.part("rope_scaling"), positions, result.rotation);
  }
  result.local_rotation = result.rotation;
  if (result.family == "gemma3_text") {
    result.local_rotation = usual;
    result.local_rotation.theta =
        config.optional_real("rope_local_base_freq", 1, largest).value_or(10000);
  }
}

void read_windows(const config_reader& config, const decoder_family& family,
                  decoder_config& result) {
  const auto layers = static_cast<std::size_t>(result.layers);
  result.windows.assign(layers, 0);
  const auto window = config.optional_size("sliding_window", std::int64_t{1} << 40);
  if (!window || family.windows == window_rule::none) return;
  const std::vector<std::string> types = config.texts("layer_types");
  if (!types.empty() && types.size() != layers) {
    config.refuse("layer_types", fmt::format("has {} elements", types.size()),
                  fmt::format("should have one for each of {} layers", layers));
  }
  for (std::size_t i = 0; i < layers; ++i) {
    const bool windowed =
        types.empty() ? slides(config, family.windows, result.layers, static_cast<std::int64_t>(i))
                      : slides(config, types[i]);
    if (windowed) result.windows[i] = *window;
  }
}

}  // namespace untax
