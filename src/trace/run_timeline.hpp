#pragma once

#include <cstdint>
#include <vector>

#include <untax/trace/account.hpp>

#include "match.hpp"

namespace untax {

/// The runs of one operator, divided into parts.
class run_timelines {
 public:
  run_timelines(const trace_record& record, std::uint64_t id);

  /// The epochs of complete runs: every rank has recorded the call, its stages and all kernels.
  [[nodiscard]] std::vector<std::int64_t> epochs() const;
  [[nodiscard]] run_account account(std::int64_t epoch, const signal_index& signals) const;
  [[nodiscard]] std::vector<timeline_piece> pieces(std::int64_t epoch,
                                                   const signal_index& signals) const;

 private:
  /// One rank's part of a run.
  struct rank_run {
    std::size_t op = 0;  ///< in the record
    trace_span call;
    std::vector<trace_span> stages;
  };
  [[nodiscard]] std::vector<rank_run> run_of(std::int64_t epoch) const;

  const trace_record* record_;
  std::vector<std::size_t>
      of_rank_;  ///< index of the operator, by rank; the constant `nobody` if unknown
};

}  // namespace untax
