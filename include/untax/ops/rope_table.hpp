#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace untax {

/// The way in which frequencies of rotary position embeddings are changed for sequences that are
/// longer than those of the first training.
enum class rope_scaling : std::uint8_t {
  none,
  linear,  ///< all frequencies are divided by `factor`
  llama3,  ///< low frequencies are divided by `factor`, high ones stay, with a ramp between them
  yarn,    ///< as llama3 with another ramp (arXiv 2309.00071); rotations are scaled
};

/// The name of `scaling` in model configurations; of `none` it is "default".
[[nodiscard]] constexpr std::string_view name_of(rope_scaling scaling) noexcept {
  constexpr std::string_view names[] = {"default", "linear", "llama3", "yarn"};
  return names[static_cast<int>(scaling)];
}

/// The frequencies of rotary position embeddings, by the names of model configurations.
struct rope_frequencies {
  double theta = 10000;        ///< the base
  std::int64_t rotated = 128;  ///< elements of a head that are rotated; even
  rope_scaling scaling = rope_scaling::none;
  double factor = 1;            ///< of all scalings but `none`
  double low_freq_factor = 1;   ///< of llama3
  double high_freq_factor = 4;  ///< of llama3
  double beta_fast = 32;        ///< of yarn
  double beta_slow = 1;         ///< of yarn
  bool truncate = true;         ///< of yarn: the ramp has whole numbers as its ends
  /// Of yarn: the factor of sines and cosines; 0: 0.1 ln(factor) + 1, at least 1.
  double attention_factor = 0;
  double original_length = 0;  ///< positions of the first training; of llama3 and yarn
};

/// The rotated / 2 angles of position 1, computed in fp64. Throws `invalid_argument`.
[[nodiscard]] std::vector<double> rope_angles(const rope_frequencies& frequencies);

/// [positions, rotated]: cosines of the rotated / 2 angles of each position, then sines, computed
/// in fp64: the `rotations` of `rope_append`. Throws `invalid_argument`.
[[nodiscard]] std::vector<float> rope_table(const rope_frequencies& frequencies,
                                            std::int64_t positions);

}  // namespace untax
