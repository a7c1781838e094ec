#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include <untax/core/matrix.hpp>
#include <untax/world/world.hpp>

namespace untax {

/// Whether kernels can use an address.
[[nodiscard]] bool reachable_by_device(const void* p);
/// A number that identifies the allocation of the device, or of pinned memory, that contains `p`:
/// no two allocations of a process have the same number. 0 if there is no allocation, or if it has
/// no number.
[[nodiscard]] std::uint64_t allocation_at(const void* p);

/// Checks the arguments of an operator's runs on a GPU, beyond what hosts require of them. All
/// checks throw `invalid_argument`, with rank and operator in the message. Empty and null operands
/// pass.
class device_arguments {
 public:
  /// For runs of one operator at the rank and on the GPU of `w`.
  device_arguments(std::string_view operator_name, const world& w)
      : operator_name_(operator_name), rank_(w.rank()), device_(w.device()) {}

  /// Refuses rows with gaps between them.
  void require_dense(std::string_view what, const const_matrix& m) const;
  /// Refuses an address that is not a multiple of `alignment` bytes, or that the GPU cannot reach.
  void require(std::string_view what, const void* p, std::size_t alignment = 1);
  /// Refuses rows that do not begin at multiples of `bytes`, or that the GPU cannot reach.
  void require_rows(std::string_view what, const const_matrix& m, std::size_t bytes);

 private:
  void require_reachable(std::string_view what, const void* p);
  [[noreturn]] void refuse(std::string_view what, const std::string& text) const;

  std::string operator_name_;
  int rank_;
  int device_;
  /// Addresses that the GPU can reach, with their allocations: asking the driver takes as long as a
  /// launch. An address whose memory was freed is in no allocation, or in another one. The map is
  /// cleared when it has many entries, since a caller may pass another address in each run.
  std::unordered_map<const void*, std::uint64_t> known_;
};

}  // namespace untax
