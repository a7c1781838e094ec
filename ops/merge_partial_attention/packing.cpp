#include "ops/merge_partial_attention/packing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <untax/tile/step.hpp>

#include "engines/host/convert.hpp"
#include "ops/common/arguments.hpp"

namespace untax {
namespace {

constexpr float no_keys = -std::numeric_limits<float>::infinity();
constexpr double log2_of_e = 1.44269504088896340736;

host::tile_memory row_of(const const_matrix& m, std::int64_t row) {
  const host::operand_memory memory = local_operand(m, 0);
  return {memory.at({operand::a, 0, row, 0}), memory.stride, memory.type};
}

/// The index of logarithm number i in a matrix, row by row.
std::int64_t place_of(const const_matrix& lse, std::int64_t i) {
  return i / lse.cols * lse.stride + i % lse.cols;
}

/// The factor that makes the caller's logarithms logarithms to base 2.
double base_of(const merge_partial_attention_problem& problem) {
  return problem.log2 ? 1 : log2_of_e;
}

}  // namespace

std::int64_t packed_width(const merge_partial_attention_problem& problem) noexcept {
  return problem.head_dim + attention_statistics;
}

void pack_partials(const merge_partial_attention_problem& problem, const const_matrix& partial_o,
                   const const_matrix& partial_lse, std::vector<float>& to) {
  const std::int64_t width = packed_width(problem);
  const auto* const given = static_cast<const float*>(partial_lse.data);
  for (std::int64_t row = 0; row < partial_o.rows; ++row) {
    float* const packed = to.data() + row * width;
    float* const statistics = packed + problem.head_dim;
    const float lse = given[place_of(partial_lse, row)];
    if (std::isinf(lse)) {  // FlashAttention 2 has +infinity for rows without keys
      std::fill_n(packed, problem.head_dim, 0.0F);
      statistics[0] = no_keys;
      statistics[1] = 0;
      continue;
    }
    host::widen(row_of(partial_o, row), 1, problem.head_dim, packed, width);
    const double whole = static_cast<double>(lse) * base_of(problem);
    statistics[0] = static_cast<float>(whole);
    statistics[1] = static_cast<float>(whole - static_cast<double>(statistics[0]));
  }
}

void unpack_partials(const merge_partial_attention_problem& problem, const std::vector<float>& from,
                     const matrix& out, const matrix& lse) {
  const std::int64_t width = packed_width(problem);
  auto* const logarithms = static_cast<float*>(lse.data);
  for (std::int64_t row = 0; row < out.rows; ++row) {
    const float* const packed = from.data() + row * width;
    const float* const statistics = packed + problem.head_dim;
    host::narrow(packed, width, 1, problem.head_dim, row_of(as_const(out), row));
    const double whole = static_cast<double>(statistics[0]) + static_cast<double>(statistics[1]);
    logarithms[place_of(as_const(lse), row)] = static_cast<float>(whole / base_of(problem));
  }
}

}  // namespace untax
