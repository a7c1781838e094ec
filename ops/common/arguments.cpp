#include "ops/common/arguments.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include <untax/core/error.hpp>

namespace untax {
namespace {

std::uintptr_t address(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p);
}  // NOLINT(*-reinterpret-cast)

}  // namespace

void argument_check::is_whole(bool has_engine) const {
  if (has_engine) return;
  throw error(errc::invalid_argument,
              fmt::format("rank {}: {}: this operator was moved from; use the object that it was "
                          "moved to",
                          rank, operator_name));
}

void argument_check::no_stream(stream_ref stream) const {
  if (stream.handle == nullptr) return;
  throw error(errc::unsupported,
              fmt::format("rank {}: {}: a stream is given; a world of the host has none, so its "
                          "operators take the empty stream only",
                          rank, operator_name));
}

void argument_check::matrix_of(std::string_view name, const const_matrix& m, const extent& size,
                               dtype type) const {
  const auto refuse = [&](const std::string& text) {
    throw error(errc::invalid_argument,
                fmt::format("rank {}: {}: {} {}", rank, operator_name, name, text));
  };
  if (m.rows != size.rows || m.cols != size.cols) {
    refuse(fmt::format("is {} x {}; this problem needs {} x {}", m.rows, m.cols, size.rows,
                       size.cols));
  }
  if (m.empty()) return;
  if (m.type != type)
    refuse(fmt::format("is {}; this problem needs {}", name_of(m.type), name_of(type)));
  if (m.data == nullptr)
    refuse(fmt::format("is null; it has to hold {} x {} elements", m.rows, m.cols));
  if (m.rows > 1 && m.stride < m.cols) {
    refuse(fmt::format("has a row stride of {}; rows of {} elements need at least that", m.stride,
                       m.cols));
  }
  // The distance from the first element to the last has to be an address difference.
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto bytes = static_cast<std::int64_t>(size_of(type));
  const std::int64_t longest = m.rows > 1 ? (most / bytes - m.cols) / (m.rows - 1) : m.stride;
  if (m.stride > longest) {
    refuse(
        fmt::format("has a row stride of {}; with {} rows of {} elements it can be {} at most, "
                    "or the last row cannot be addressed",
                    m.stride, m.rows, m.cols, longest));
  }
  if (address(m.data) % size_of(type) != 0) {
    refuse(fmt::format("lies at {}; elements of {} bytes have to be aligned to their size",
                       fmt::ptr(m.data), size_of(type)));
  }
}

void argument_check::gemm(const const_matrix& a, const extent& size_of_a,
                          const const_matrix& weights, const extent& size_of_weights,
                          const matrix& c, const extent& size_of_c, dtype type) const {
  matrix_of("a", a, size_of_a, type);
  matrix_of("weights", weights, size_of_weights, type);
  matrix_of("c", as_const(c), size_of_c, type);
  apart("a", a, as_const(c));
  apart("weights", weights, as_const(c));
}

void argument_check::apart(std::string_view name, const memory_range& operand,
                           const memory_range& result) const {
  if (operand.bytes == 0 || result.bytes == 0) return;
  const auto begin = address(operand.data);
  const auto out = address(result.data);
  // Distances are compared, since the end of memory that does not exist may be past the last
  // address.
  if (begin < out ? out - begin < operand.bytes : begin - out < result.bytes) {
    throw error(
        errc::invalid_argument,
        fmt::format("rank {}: {}: {} and the result share memory at {}; they have to lie apart",
                    rank, operator_name, name, fmt::ptr(begin > out ? operand.data : result.data)));
  }
}

host::operand_memory local_operand(const const_matrix& m, int rank) {
  // A and B are read only; the operand table holds one kind of pointer for all of them.
  auto* data = static_cast<std::byte*>(const_cast<void*>(m.data));  // NOLINT(*-const-cast)
  return {.base = data, .bytes_per_rank = 0, .stride = m.stride, .type = m.type, .rank = rank};
}

}  // namespace untax
