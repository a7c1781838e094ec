#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <untax/ops/merge_partial_attention.hpp>

#include "engines/gpu/merge/merge_rows.hpp"
#include "ops/common/device_schedule.hpp"

namespace untax {

/// How a rank merges rows on its GPU.
struct merge_grid {
  gpu::merge_rows how;
  int blocks = 1;

  [[nodiscard]] std::string text() const;
  /// The parts of the plan in which all ranks have to agree.
  [[nodiscard]] std::vector<std::string> agreed() const;
};
/// `blocks`: the number asked for; 0: as many as there is work for, one a multiprocessor at most.
[[nodiscard]] merge_grid merge_grid_of(const merge_partial_attention_problem& problem, int world,
                                       int rank, int blocks, int multiprocessors);

/// A planned merge of one rank: see `plan_check::prove`. For the checker a token is a row. Each
/// head has a column for each chunk, and then one for its statistic. To merge is to add in rank
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
  /// Whether a rank waits until an owner has taken what it sent before.
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
