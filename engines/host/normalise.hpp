#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <untax/core/norm_output.hpp>
#include <untax/tile/step.hpp>

#include "engines/host/operand_memory.hpp"

namespace untax::host {

/// The operands of `normalise` beside the sums. Normalised rows go to `normed`. The operand c gets
/// the rows before they are normalised.
struct norm_context {
  operand_memory residual;      ///< [tokens, hidden] of this rank
  operand_memory weight;        ///< [1, hidden] of this rank
  std::byte* normed = nullptr;  ///< [tokens, hidden] without gaps, at this rank
  std::ptrdiff_t normed_per_rank = 0;
  float* scales = nullptr;             ///< [tokens] at this rank, for e4m3_per_token
  std::ptrdiff_t scales_per_rank = 0;  ///< in bytes
  norm_output output = norm_output::same;
  float scale = 1;  ///< for e4m3
  float epsilon = 0;
};

/// Adds the residual to sums of rows, and normalises them by their root mean
/// square (arXiv 1910.07467). The order of additions depends on the number of
/// columns alone.
class norm_math {
 public:
  /// Reserves memory for rows of `hidden` elements.
  void reserve(std::int64_t hidden) {
    row_.reserve(static_cast<std::size_t>(hidden));
    weight_.reserve(static_cast<std::size_t>(hidden));
  }
  /// Carries out `normalise` on sums whose rows lie `stride` floats apart.
  void normalise(const step& s, const float* sums, std::int64_t stride,
                 const operand_table& operands);

 private:
  void take_row(const step& s, std::int64_t row, const float* sums, const operand_table& operands);
  void put_normed(std::int64_t token, const norm_context& norm, dtype type);

  std::vector<float> row_;
  std::vector<float> weight_;
};

/// 1 / sqrt(mean of squares + epsilon).
[[nodiscard]] float inverse_root_mean_square(const float* values, std::int64_t count,
                                             float epsilon) noexcept;

}  // namespace untax::host
