#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "ops/plan_check/gather.hpp"
#include "ops/plan_check/rank_lanes.hpp"

namespace untax::plan_check {

/// What CTAs of a gather read and wait for, by the numbers and tensor maps that their kernel is
/// given.
class gather_reads {
 public:
  gather_reads(const gather_model& model, operand_space memory)
      : m_(model), memory_(std::move(memory)) {}

  /// Calls `visit` for what a CTA reads of a tile, part by part.
  void each(const gpu::cta_read& of, std::uint64_t epoch,
            const std::function<void(const factors&)>& visit);

 private:
  /// What begins with a k-block, for all columns of C, and the k-block behind it.
  using part = std::pair<factors, int>;
  [[nodiscard]] part part_of(const gpu::cta_read& of, int k_block, int set) const;
  [[nodiscard]] std::vector<factors::ready> waits_of(const gpu::cta_read& of, std::int64_t depth,
                                                     int k_block, int end, int set) const;
  [[nodiscard]] int producer_of(int counter, int set) const;

  const gather_model& m_;
  operand_space memory_;
  /// Most tiles read what others do, and multiply it with other columns.
  std::map<std::tuple<int, int, int, int, int>, part> known_;
};

}  // namespace untax::plan_check
