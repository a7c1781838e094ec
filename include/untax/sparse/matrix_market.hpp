#pragma once

#include <string>
#include <string_view>

#include <untax/sparse/csr.hpp>

namespace untax::sparse {

/// Reads a text of the Matrix Market exchange format (Boisvert, Pozo, Remington, 1996): coordinates
/// of real, integer or pattern matrices; elements of a pattern are 1. Of symmetric and
/// skew-symmetric matrices one triangle is stored, and the result has both. The format demands the
/// lower triangle. As in most readers an entry of the upper one counts, too, since there are such
/// files. Entries at the same place, mirrored ones included, are added.
///
/// Throws `invalid_argument` for any other text, as one line with `origin` and the line's number,
/// and `unsupported` for arrays, complex numbers and hermitian matrices.
[[nodiscard]] coordinates read_matrix_market(std::string_view text, std::string_view origin);

/// As above, from a file, which may be compressed by gzip. Throws also `invalid_argument` if it
/// cannot be read.
[[nodiscard]] coordinates load_matrix_market(const std::string& path);

}  // namespace untax::sparse
