#pragma once

#include <string>
#include <string_view>

#include <untax/sparse/csr.hpp>

namespace untax::sparse {

/// The elements in a text of the Matrix Market exchange format (Boisvert, Pozo, Remington, 1996):
/// coordinates of real, integer or pattern matrices, where a pattern has ones. Symmetric and
/// skew-symmetric matrices, of which the lower triangle is stored, come back whole.
///
/// Throws `invalid_argument`, one line with `origin` and the line's number, for what is no such
/// text; `unsupported` for arrays, complex numbers and hermitian matrices.
[[nodiscard]] coordinates read_matrix_market(std::string_view text, std::string_view origin);

/// The same from a file, decompressed if it was compressed by gzip.
[[nodiscard]] coordinates load_matrix_market(const std::string& path);

}  // namespace untax::sparse
