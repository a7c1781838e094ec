#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <untax/flow/control.hpp>

namespace untax {

/// Compares what the ranks do. Each rank keeps a ledger of its collective calls (allocations,
/// operators, barriers) in the control block; each entry carries a hash over all entries so far, so
/// that comparing one entry compares them all. Nobody waits here: ranks compare as far as both have
/// come, so a difference is found by the one that comes second, or at the next barrier at the
/// latest.
///
/// This catches most of what looks like a hang: ranks that do not do the same thing. One caller a
/// rank.
class agreement {
 public:
  agreement(const control& world, int rank) noexcept : world_(world), rank_(rank) {}

  /// Notes a call of this rank, then compares.
  void post(std::string_view call);
  /// Compares with all ranks, as far as both have come. A difference stops the world and throws
  /// `disagreement`, which prints both sides.
  void compare() const;

 private:
  void compare_with(int peer) const;
  /// `sequence`: a call up to which the two have not done the same.
  [[noreturn]] void refuse(int peer, std::uint64_t sequence) const;
  [[nodiscard]] std::string sides(int peer, std::uint64_t sequence) const;

  control world_;
  int rank_;
  std::uint64_t sequence_ = 0;
  std::uint64_t chain_ = 0;
};

}  // namespace untax
