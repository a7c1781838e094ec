#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <untax/ops/flash_decode.hpp>
#include <untax/tile/protocol.hpp>

#include "ops/flash_decode/inputs.hpp"

namespace untax {

/// Memory of the host for the operands and results of flash_decode at a rank.
class attention_memory {
 public:
  explicit attention_memory(const flash_decode_problem& problem);
  attention_memory(const attention_memory&) = delete;
  attention_memory& operator=(const attention_memory&) = delete;

  /// Fills it with a rank's part of `inputs`.
  void fill(const attention_inputs& inputs, int rank);
  void poison_result() const;
  /// Collective.
  void run(flash_decode& op) const;

  [[nodiscard]] const_matrix result() const { return as_const(out_); }
  [[nodiscard]] const std::vector<std::byte>& bits() const noexcept { return out_memory_; }

 private:
  [[nodiscard]] matrix own(std::vector<std::byte>& memory, const extent& size) const;

  flash_decode_problem problem_;
  std::vector<std::byte> q_memory_;
  std::vector<std::byte> keys_memory_;
  std::vector<std::byte> values_memory_;
  std::vector<std::byte> out_memory_;
  matrix q_;
  matrix keys_;
  matrix values_;
  matrix out_;
  std::vector<std::int32_t> lengths_;
  std::vector<std::int32_t> table_;
};

}  // namespace untax
