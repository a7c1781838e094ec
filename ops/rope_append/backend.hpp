#pragma once

#include <cstdint>
#include <string_view>

#include <untax/ops/rope_append.hpp>
#include <untax/tile/protocol.hpp>

namespace untax {

inline constexpr std::string_view rope_append_name = "rope_append";

/// Elements of a row of qkv.
[[nodiscard]] constexpr std::int64_t qkv_columns(const rope_append_problem& p) noexcept {
  return (p.heads + 2 * p.kv_heads) * p.head_dim;
}
/// The rows and columns of the cache of keys, and of that of values.
[[nodiscard]] constexpr extent cache_extent(const rope_append_problem& p) noexcept {
  return {p.page_size > 0 ? p.pages * p.page_size : p.batch * p.keys, p.kv_heads * p.head_dim};
}
/// Columns of the page table; 0 without pages.
[[nodiscard]] constexpr std::int64_t pages_of_sequence(const rope_append_problem& p) noexcept {
  return p.page_size > 0 ? (p.keys + p.page_size - 1) / p.page_size : 0;
}

/// Runs the operator on one kind of memory. Operands have been checked.
class rope_append_backend {
 public:
  rope_append_backend() = default;
  rope_append_backend(const rope_append_backend&) = delete;
  rope_append_backend& operator=(const rope_append_backend&) = delete;
  virtual ~rope_append_backend() = default;
  virtual void run(const rope_append_operands& operands, stream_ref stream) = 0;
};

/// `problem` says how many elements are rotated.
[[nodiscard]] process_owned<rope_append_backend> host_rope_append(
    const rope_append_problem& problem, int rank);
/// The backend on the GPU of the rank, which becomes the current one.
[[nodiscard]] process_owned<rope_append_backend> device_rope_append(
    world& w, const rope_append_problem& problem, bool constant_weights);

}  // namespace untax
