#include "ops/flash_attention/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engines/host/convert.hpp"

namespace untax {
namespace {

std::vector<float> widened(const const_matrix& m) {
  std::vector<float> values(static_cast<std::size_t>(m.rows * m.cols));
  const host::tile_memory tile{
      static_cast<std::byte*>(const_cast<void*>(m.data)),  // NOLINT(*-const-cast)
      m.stride, m.type};
  host::widen(tile, m.rows, m.cols, values.data(), m.cols);
  return values;
}

}  // namespace

attended_keys::attended_keys(const const_matrix& keys, const const_matrix& values, double scale)
    : keys_(widened(keys)), values_(widened(values)), scale_(scale) {}

attended_row attended_keys::attend(const const_matrix& query, std::int64_t sees) const {
  const auto width = static_cast<std::size_t>(query.cols);
  const auto count = static_cast<std::size_t>(sees);
  attended_row row{std::vector<double>(width), -std::numeric_limits<double>::infinity()};
  if (count == 0) return row;
  const std::vector<float> q = widened(query);
  std::vector<double> logits(count);
  for (std::size_t i = 0; i < count; ++i) {
    double logit = 0;
    for (std::size_t j = 0; j < width; ++j)
      logit += static_cast<double>(q[j]) * static_cast<double>(keys_[i * width + j]);
    logits[i] = scale_ * logit;
  }
  const double most = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double weight = std::exp(logits[i] - most);
    total += weight;
    for (std::size_t j = 0; j < width; ++j)
      row.out[j] += weight * static_cast<double>(values_[i * width + j]);
  }
  for (double& element : row.out) element /= total;
  row.log_sum = most + std::log(total);
  return row;
}

std::int64_t seen_keys(std::int64_t row, std::int64_t queries, std::int64_t keys,
                       bool causal) noexcept {
  if (!causal) return keys;
  return std::clamp<std::int64_t>(row + 1 + keys - queries, 0, keys);
}

}  // namespace untax
