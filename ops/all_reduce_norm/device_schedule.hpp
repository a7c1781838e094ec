#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/all_reduce_norm/device_plan.hpp"
#include "ops/common/device_schedule.hpp"

namespace untax {

/// A planned all_reduce_norm of one rank: see `plan_check::prove`. For the checker c has both
/// results side by side, as on the host.
class norm_model {
 public:
  explicit norm_model(const norm_plan& planned) : plan(planned) {}

  /// Rows that no rank adds, or too many or too few.
  [[nodiscard]] std::vector<std::string> faults() const;
  /// The steps of its kernel. The model has to outlive it.
  [[nodiscard]] schedule::lane_program lanes() const;
  [[nodiscard]] schedule::operand_extents operands() const;
  [[nodiscard]] static int sets() { return gpu::norm_rows::sets().sets; }

  norm_plan plan;
  /// Whether a rank waits until an owner has taken the rows that it sent before.
  bool reserves = true;
  /// Whether a rank waits for all others at the end, where owners pass rows on.
  bool closes = true;

 private:
  [[nodiscard]] const gpu::norm_rows& how() const { return plan.how; }
  [[nodiscard]] room slot(int source, int owner, int row, std::uint64_t epoch) const;
  [[nodiscard]] place in_inbox(int source, int owner, int row, std::uint64_t epoch) const;
  void send(int block, std::uint64_t epoch, const program::sink& emit) const;
  void take(int row, std::uint64_t epoch, const program::sink& emit) const;
  void finish(std::uint64_t epoch, const program::sink& emit) const;
};

}  // namespace untax
