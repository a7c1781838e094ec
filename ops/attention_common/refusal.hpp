#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/flow/device_control.hpp>

namespace untax {

/// The most workers of a rank. They need wait records, of which one belongs to the rank itself, and
/// some to kernels.
inline constexpr int most_attention_workers = (first_kernel_slot - 1) / 2;

/// Refuses problems for which an operator of attention cannot be planned at a rank: throws
/// `invalid_argument`.
struct attention_refusal {
  std::string_view operator_name;
  int rank = 0;

  [[noreturn]] void operator()(const std::string& text) const {
    throw error(errc::invalid_argument, fmt::format("rank {}: {}: {}", rank, operator_name, text));
  }
  void unless_between(std::string_view what, std::int64_t value, std::int64_t least,
                      std::int64_t most) const {
    if (value >= least && value <= most) return;
    (*this)(fmt::format("{} is {}; it has to be between {} and {}", what, value, least, most));
  }
};

}  // namespace untax
