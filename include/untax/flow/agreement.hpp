#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <untax/flow/control.hpp>

namespace untax {

/// Compares the calls of the ranks. Each rank keeps a ledger of its collective calls (allocations,
/// operators, barriers) in the control block. Each entry has a hash over all entries so far, so
/// that comparing one entry compares them all. No rank waits here: two ranks compare the entries
/// that both have. So a difference is found by the rank that comes second, or at the next barrier
/// at the latest.
///
/// This catches the usual cause of hangs: ranks that make different calls. One thread of a rank
/// uses it.
class agreement {
 public:
  agreement(const control& world, int rank) noexcept : world_(world), rank_(rank) {}

  /// Adds a call of this rank to its ledger, then compares. Throws as `compare`.
  void post(std::string_view call);
  /// Compares with all ranks the entries that both have. If an entry differs, it stops the world
  /// and throws `disagreement` with both versions.
  void compare() const;

 private:
  void compare_with(int peer) const;
  /// `sequence` is a call up to which the two ranks have not done the same.
  [[noreturn]] void refuse(int peer, std::uint64_t sequence) const;
  [[nodiscard]] std::string sides(int peer, std::uint64_t sequence) const;

  control world_;
  int rank_;
  std::uint64_t sequence_ = 0;
  std::uint64_t chain_ = 0;
};

}  // namespace untax
