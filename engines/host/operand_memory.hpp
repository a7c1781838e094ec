#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <untax/core/types.hpp>
#include <untax/symmetric/symmetric.hpp>
#include <untax/tile/step.hpp>

namespace untax::host {

/// The place of an operand of a protocol: the address of this rank's copy, and the distance to the
/// copies of other ranks.
struct operand_memory {
  std::byte* base = nullptr;          ///< element (0, 0) at rank `rank`
  std::ptrdiff_t bytes_per_rank = 0;  ///< 0 for operands that only this rank has
  std::int64_t stride = 0;            ///< elements between rows
  dtype type = dtype::f32;
  int rank = 0;

  [[nodiscard]] std::byte* at(const place& p) const noexcept {
    return base + (p.rank - rank) * bytes_per_rank +
           (p.row * stride + p.col) * static_cast<std::ptrdiff_t>(size_of(type));
  }
};

struct attention_cache;
struct norm_context;

/// The operands of one run.
class operand_table {
 public:
  /// The keys and values that queries attend to, if the operator has them.
  const attention_cache* cache = nullptr;
  /// The operands of `normalise`, if the operator has them.
  const norm_context* norm = nullptr;

  operand_memory& operator[](operand role) noexcept {
    return operands_[static_cast<std::size_t>(role)];
  }
  const operand_memory& operator[](operand of) const noexcept {
    return operands_[static_cast<std::size_t>(of)];
  }

 private:
  std::array<operand_memory, 8> operands_{};
};

}  // namespace untax::host
