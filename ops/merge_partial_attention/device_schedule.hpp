#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/common/device_schedule.hpp"
#include "ops/merge_partial_attention/device_plan.hpp"

namespace untax {

/// A planned merge of one rank: see `plan_check::prove`. For the checker a token is a row. Each
/// head has a column for each chunk, and then one for its statistic. Merging is an addition in rank
/// order.
class merge_model {
 public:
  explicit merge_model(const merge_grid& planned) : plan(planned) {}

  /// Chunks that no rank takes, or that are taken several times.
  [[nodiscard]] std::vector<std::string> faults() const;
  /// The steps of its kernel. The model has to outlive it.
  [[nodiscard]] schedule::lane_program lanes() const;
  [[nodiscard]] schedule::operand_extents operands() const;
  [[nodiscard]] static int sets() { return gpu::merge_rows::sets().sets; }

  merge_grid plan;
  /// Whether a rank waits until an owner has taken the chunks that it sent before.
  bool reserves = true;
  /// Whether an owner waits for statistics separately.
  bool awaits_statistics = true;

 private:
  struct segment;
  [[nodiscard]] const gpu::merge_rows& how() const { return plan.how; }
  template <class Visit>
  void each_segment(int owner, int block, const Visit& visit) const;
  [[nodiscard]] int slab_counters() const;
  [[nodiscard]] int statistic_number(int row) const;
  [[nodiscard]] room slot(int source, int owner, int number, std::uint64_t epoch) const;
  [[nodiscard]] place given(const segment& s, std::int64_t col) const;
  [[nodiscard]] place in_inbox(int source, int owner, int row, std::int64_t col,
                               std::uint64_t epoch) const;
  void send(int block, std::uint64_t epoch, const program::sink& emit) const;
  void take(int block, std::uint64_t epoch, const program::sink& emit) const;
  void add(const segment& s, const range& cols, int number, std::uint64_t epoch,
           const program::sink& emit) const;
  void store(const segment& s, const range& cols, const program::sink& emit) const;
  void finish(std::uint64_t epoch, const program::sink& emit) const;
};

}  // namespace untax
