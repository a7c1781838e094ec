#pragma once

#include <cstddef>
#include <string_view>

#include <untax/core/matrix.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/tile/protocol.hpp>

#include "engines/host/operand_memory.hpp"

namespace untax {

/// The memory of an argument: of a matrix, or of elements of any size.
struct memory_range {
  const void* data = nullptr;
  std::size_t bytes = 0;

  memory_range(const void* begin, std::size_t length) : data(begin), bytes(length) {}
  /// The range from the first element to the end of the last one. `matrix_of` has accepted the
  /// matrix. NOLINTNEXTLINE(*-explicit-*)
  memory_range(const const_matrix& m) : data(m.data), bytes(m.span_bytes()) {}
};

/// Refuses arguments of an operator before anything moves. All functions throw `invalid_argument`
/// with operator, rank, argument, its value and the right values.
struct argument_check {
  std::string_view operator_name;
  int rank = 0;

  /// Refuses an operator object that was moved from, and so has no engine.
  void is_whole(bool has_engine) const;
  /// Refuses a stream, for operators of the host, where there are none: throws `unsupported`.
  void no_stream(stream_ref stream) const;
  /// Requires the right type and size, rows that do not overlap, elements that are aligned, and an
  /// address that is not null unless the matrix is empty.
  void matrix_of(std::string_view name, const const_matrix& m, const extent& size,
                 dtype type) const;
  /// Requires three matrices of the given sizes and of one type, with the result apart from the
  /// operands.
  void gemm(const const_matrix& a, const extent& size_of_a, const const_matrix& weights,
            const extent& size_of_weights, const matrix& c, const extent& size_of_c,
            dtype type) const;
  /// Refuses a result that shares memory with an operand.
  void apart(std::string_view name, const memory_range& operand, const memory_range& result) const;
};

/// A caller's matrix as an operand that only this rank has.
[[nodiscard]] host::operand_memory local_operand(const const_matrix& m, int rank);

}  // namespace untax
