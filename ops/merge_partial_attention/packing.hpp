#pragma once

#include <cstdint>
#include <vector>

#include <untax/core/matrix.hpp>
#include <untax/ops/merge_partial_attention.hpp>

namespace untax {

/// The width of a packed row. Partial results are sent without gaps in fp32: the elements of a row,
/// then two numbers whose sum is its logarithm to base 2. An empty row has zeros and -infinity.
[[nodiscard]] std::int64_t packed_width(const merge_partial_attention_problem& problem) noexcept;

/// Rows of `partial_o` with their logarithms, [tokens, heads], into `to`.
void pack_partials(const merge_partial_attention_problem& problem, const const_matrix& partial_o,
                   const const_matrix& partial_lse, std::vector<float>& to);
/// The inverse of `pack_partials`.
void unpack_partials(const merge_partial_attention_problem& problem, const std::vector<float>& from,
                     const matrix& out, const matrix& lse);

}  // namespace untax
