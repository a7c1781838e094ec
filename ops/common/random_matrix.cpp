#include "ops/common/random_matrix.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "engines/host/convert.hpp"

namespace untax {
namespace {

constexpr std::size_t quantiles = std::size_t{1} << 14;

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

const std::array<float, quantiles>& normal_quantiles() {
  static const auto table = [] {
    std::array<float, quantiles> t{};
    double low = -6.0;
    for (std::size_t i = 0; i < quantiles; ++i) {
      const double target = (static_cast<double>(i) + 0.5) / static_cast<double>(quantiles);
      double high = 6.0;
      double left = low;
      for (int halving = 0; halving < 40; ++halving) {
        const double middle = (left + high) / 2;
        (normal_cdf(middle) < target ? left : high) = middle;
      }
      low = left;
      t[i] = static_cast<float>(left);
    }
    return t;
  }();
  return table;
}

/// The finalizer of splitmix64 (Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

std::uint64_t row_seed(std::uint64_t seed, std::int64_t row) {
  return mix(seed ^ mix(static_cast<std::uint64_t>(row)));
}

std::size_t pick(std::uint64_t row, std::int64_t col) {
  return mix(row + static_cast<std::uint64_t>(col)) % quantiles;
}

host::tile_memory tile_of(const matrix& m) {
  return {static_cast<std::byte*>(m.data), m.stride, m.type};
}

}  // namespace

matrix row_of(const matrix& m, std::int64_t row) noexcept {
  auto* const first = static_cast<std::byte*>(m.data);
  return {first + row * m.stride * static_cast<std::int64_t>(size_of(m.type)), m.type, 1, m.cols};
}

float random_matrix::at(std::int64_t row, std::int64_t col) const {
  return normal_quantiles()[pick(row_seed(seed, row), col)];
}

void random_matrix::fill(const matrix& to, range rows, range cols) const {
  const auto& normal = normal_quantiles();
  std::vector<float> line(static_cast<std::size_t>(cols.size));
  for (std::int64_t i = 0; i < rows.size; ++i) {
    const std::uint64_t row = row_seed(seed, rows.begin + i);
    for (std::int64_t j = 0; j < cols.size; ++j)
      line[static_cast<std::size_t>(j)] = normal[pick(row, cols.begin + j)];
    host::narrow(line.data(), cols.size, 1, cols.size, tile_of(row_of(to, i)));
  }
}

void poison(const matrix& m) {
  const std::vector<float> line(static_cast<std::size_t>(m.cols),
                                std::numeric_limits<float>::quiet_NaN());
  // Every row is narrowed from the same line of NaN.
  host::narrow(line.data(), 0, m.rows, m.cols, tile_of(m));
}

}  // namespace untax
