#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/ops/rope_table.hpp>

namespace untax {
namespace {

[[noreturn]] void refuse(const std::string& text) {
  throw error(errc::invalid_argument, "rope_table: " + text);
}

void require_positive(std::string_view name, double value) {
  if (value > 0 && std::isfinite(value)) return;
  refuse(fmt::format("{} is {}; it has to be positive", name, value));
}

void require_sensible(const rope_frequencies& f) {
  if (f.rotated < 2 || f.rotated > 4096 || f.rotated % 2 != 0)
    refuse(fmt::format("rotated is {}; it has to be even, and between 2 and 4096", f.rotated));
  require_positive("theta", f.theta);
  if (f.scaling == rope_scaling::none) return;
  require_positive("factor", f.factor);
  if (f.scaling == rope_scaling::linear) return;
  require_positive("original_length", f.original_length);
  if (f.scaling == rope_scaling::llama3) {
    require_positive("low_freq_factor", f.low_freq_factor);
    if (f.high_freq_factor > f.low_freq_factor && std::isfinite(f.high_freq_factor)) return;
    refuse(fmt::format("high_freq_factor is {} and low_freq_factor {}; it has to be the larger one",
                       f.high_freq_factor, f.low_freq_factor));
  }
  require_positive("beta_fast", f.beta_fast);
  require_positive("beta_slow", f.beta_slow);
  if (f.theta == 1) refuse("theta is 1; yarn needs frequencies that differ");
  if (!(f.attention_factor >= 0) || !std::isfinite(f.attention_factor))
    refuse(fmt::format("attention_factor is {}; it has to be positive, or 0 for that of factor",
                       f.attention_factor));
}

/// The share of a frequency that is not divided: 1 for high ones, 0 for low ones.
double unscaled_share(const rope_frequencies& f, double angle) {
  const double rotations = f.original_length * angle / (2 * std::numbers::pi);
  return std::clamp((rotations - f.low_freq_factor) / (f.high_freq_factor - f.low_freq_factor), 0.0,
                    1.0);
}

/// The ends of yarn's ramp, as numbers of frequencies.
struct frequency_range {
  double low;
  double high;

  explicit frequency_range(const rope_frequencies& f)
      : low(place_of(f, f.beta_fast)), high(place_of(f, f.beta_slow)) {
    if (f.truncate) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, static_cast<double>(f.rotated - 1));
    if (low == high) high += 0.001;
  }
  /// The ramp: 0 for the frequencies before it, 1 for those after it.
  [[nodiscard]] double ramp(std::int64_t i) const {
    return std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
  }

 private:
  /// The number of the frequency with that many rotations over the original length.
  static double place_of(const rope_frequencies& f, double rotations) {
    return static_cast<double>(f.rotated) *
           std::log(f.original_length / (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(f.theta));
  }
};

/// The factor of sines and cosines.
double magnitude(const rope_frequencies& f) {
  if (f.scaling != rope_scaling::yarn) return 1;
  if (f.attention_factor > 0) return f.attention_factor;
  return f.factor > 1 ? 0.1 * std::log(f.factor) + 1 : 1;
}

}  // namespace

std::vector<double> rope_angles(const rope_frequencies& f) {
  require_sensible(f);
  std::vector<double> angles(static_cast<std::size_t>(f.rotated / 2));
  for (std::size_t i = 0; i < angles.size(); ++i)
    angles[i] = std::pow(f.theta, -2 * static_cast<double>(i) / static_cast<double>(f.rotated));
  if (f.scaling == rope_scaling::linear) {
    for (double& angle : angles) angle /= f.factor;
  } else if (f.scaling == rope_scaling::llama3) {
    for (double& angle : angles) angle *= std::lerp(1 / f.factor, 1, unscaled_share(f, angle));
  } else if (f.scaling == rope_scaling::yarn) {
    const frequency_range range(f);
    for (std::size_t i = 0; i < angles.size(); ++i)
      angles[i] *= std::lerp(1, 1 / f.factor, range.ramp(static_cast<std::int64_t>(i)));
  }
  return angles;
}

std::vector<float> rope_table(const rope_frequencies& f, std::int64_t positions) {
  const std::vector<double> angles = rope_angles(f);
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (positions < 0 || positions > most)
    refuse(fmt::format("positions is {}; it has to be between 0 and {}", positions, most));
  const double scale = magnitude(f);
  std::vector<float> table;
  table.reserve(static_cast<std::size_t>(positions) * angles.size() * 2);
  for (std::int64_t position = 0; position < positions; ++position) {
    const auto at = static_cast<double>(position);
    for (const double angle : angles)
      table.push_back(static_cast<float>(scale * std::cos(at * angle)));
    for (const double angle : angles)
      table.push_back(static_cast<float>(scale * std::sin(at * angle)));
  }
  return table;
}

}  // namespace untax
