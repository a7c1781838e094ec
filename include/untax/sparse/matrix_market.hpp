#pragma once

#include <string>
#include <string_view>

#include <untax/sparse/csr.hpp>

namespace untax::sparse {

/// The elements in a text of the Matrix Market exchange format (Boisvert, Pozo, Remington, 1996):
/// coordinates of real, integer or pattern matrices, where a pattern has ones. Symmetric and
/// skew-symmetric matrices, of which one triangle is stored, come back whole. The format says the
/// lower one; as in most readers an entry of the upper one counts, too, since there are such files,
/// and entries of the same place, mirrored ones included, are added.
///
/// Throws `invalid_argument`, one line with `origin` and the line's number, for what is no such
/// text; `unsupported` for arrays, complex numbers and hermitian matrices.
[[nodiscard]] coordinates read_matrix_market(std::string_view text, std::string_view origin);

/// The same from a file, decompressed if it was compressed by gzip.
[[nodiscard]] coordinates load_matrix_market(const std::string& path);

}  // namespace untax::sparse
