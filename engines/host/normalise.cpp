#include "engines/host/normalise.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <untax/core/fp8.hpp>

#include "engines/host/convert.hpp"

namespace untax::host {
namespace {

std::int64_t normed_size(const norm_context& norm, dtype type) {
  return norm.output == norm_output::same ? static_cast<std::int64_t>(size_of(type)) : 1;
}

/// The scale with which the largest value of a row becomes the largest of e4m3; 1 for a row of
/// zeros.
float scale_of(const std::vector<float>& row) {
  float largest = 0;
  for (const float value : row) largest = std::max(largest, std::abs(value));
  return largest > 0 ? largest / e4m3::largest : 1;
}

}  // namespace

float inverse_root_mean_square(const float* values, std::int64_t count, float epsilon) noexcept {
  // This many partial sums fit into vector registers.
  constexpr std::int64_t lanes = 16;
  std::array<float, lanes> sums{};
  const std::int64_t whole = count / lanes * lanes;
  for (std::int64_t i = 0; i < whole; i += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane)
      sums[static_cast<std::size_t>(lane)] += values[i + lane] * values[i + lane];
  }
  for (std::int64_t i = whole; i < count; ++i)
    sums[static_cast<std::size_t>(i - whole)] += values[i] * values[i];
  double total = 0;
  for (const float sum : sums) total += static_cast<double>(sum);
  const double mean = total / static_cast<double>(count);
  return static_cast<float>(1 / std::sqrt(mean + static_cast<double>(epsilon)));
}

void norm_math::normalise(const step& s, const float* sums, std::int64_t stride,
                          const operand_table& operands) {
  const norm_context& norm = *operands.norm;
  const operand_memory& x = operands[operand::c];
  row_.resize(static_cast<std::size_t>(s.cols));
  weight_.resize(static_cast<std::size_t>(s.cols));
  widen({norm.weight.base, s.cols, norm.weight.type}, 1, s.cols, weight_.data(), s.cols);
  for (std::int64_t i = 0; i < s.rows; ++i) {
    take_row(s, s.to.row + i, sums + i * stride, operands);
    put_normed(s.to.row + i, norm, x.type);
  }
  if (!s.everywhere) return;
  const std::int64_t row_bytes = s.cols * normed_size(norm, x.type);
  for (int rank = 0; rank < s.depth; ++rank) {
    if (rank == s.to.rank) continue;
    copy_tile({x.at(s.to), x.stride, x.type}, s.rows, s.cols,
              {x.at(target(s, rank)), x.stride, x.type});
    std::byte* rows = norm.normed + s.to.row * row_bytes;
    std::memcpy(rows + (rank - s.to.rank) * norm.normed_per_rank, rows,
                static_cast<std::size_t>(s.rows * row_bytes));
    if (norm.output != norm_output::e4m3_per_token) continue;
    auto* scales =
        reinterpret_cast<std::byte*>(norm.scales + s.to.row);  // NOLINT(*-reinterpret-cast)
    std::memcpy(scales + (rank - s.to.rank) * norm.scales_per_rank, scales,
                static_cast<std::size_t>(s.rows) * sizeof(float));
  }
}

/// Adds the residual and rounds the sum once. The norm is computed from the rounded sum.
void norm_math::take_row(const step& s, std::int64_t row, const float* sums,
                         const operand_table& operands) {
  const norm_context& norm = *operands.norm;
  const operand_memory& x = operands[operand::c];
  const place at{operand::c, s.to.rank, row, s.to.col};
  widen({norm.residual.at(at), norm.residual.stride, norm.residual.type}, 1, s.cols, row_.data(),
        s.cols);
  for (std::int64_t j = 0; j < s.cols; ++j) row_[static_cast<std::size_t>(j)] += sums[j];
  const tile_memory stored{x.at(at), x.stride, x.type};
  narrow(row_.data(), s.cols, 1, s.cols, stored);
  widen(stored, 1, s.cols, row_.data(), s.cols);
  const float inverse = inverse_root_mean_square(row_.data(), s.cols, norm.epsilon);
  for (std::size_t j = 0; j < row_.size(); ++j) row_[j] = row_[j] * inverse * weight_[j];
}

void norm_math::put_normed(std::int64_t token, const norm_context& norm, dtype type) {
  const auto cols = static_cast<std::int64_t>(row_.size());
  std::byte* to = norm.normed + token * cols * normed_size(norm, type);
  if (norm.output == norm_output::same) return narrow(row_.data(), cols, 1, cols, {to, cols, type});
  const bool per_token = norm.output == norm_output::e4m3_per_token;
  const float scale = per_token ? scale_of(row_) : norm.scale;
  if (per_token) norm.scales[token] = scale;
  for (std::int64_t j = 0; j < cols; ++j)
    to[j] = static_cast<std::byte>(e4m3(row_[static_cast<std::size_t>(j)] / scale).bits);
}

}  // namespace untax::host
