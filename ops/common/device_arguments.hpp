#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>

#include <untax/core/matrix.hpp>
#include <untax/world/world.hpp>

namespace untax {

/// Whether kernels can use an address.
[[nodiscard]] bool reachable_by_device(const void* p);

/// Checks the arguments of an operator's runs on a GPU, beyond what hosts require of them. All
/// checks throw `invalid_argument`, with rank and operator in the message. What is empty or null
/// passes.
class device_arguments {
 public:
  /// For runs at the rank and on the GPU of `w`.
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
  /// Addresses that the GPU can reach: to ask takes as long as a launch. Forgotten when there are
  /// many, since a caller may pass another one in each run.
  std::unordered_set<const void*> known_;
};

}  // namespace untax
