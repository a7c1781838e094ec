#pragma once

#include <functional>
#include <string>
#include <vector>

#include <untax/core/error.hpp>

#include "engines/gpu/comm/transfer_list.hpp"
#include "ops/common/device_schedule.hpp"

namespace untax::plan_check {

/// All that a sender does in an epoch.
[[nodiscard]] std::vector<step> steps_of(const comm::sender_program& all, int sender,
                                         std::uint64_t epoch);
/// Where what senders do and what their program says part: the first difference, over all epochs in
/// which a set is used for the first time or for the second. Empty: they are the same.
[[nodiscard]] std::string difference(const comm::sender_program& does,
                                     const comm::sender_program& says);
/// How many rectangles they move in a run.
[[nodiscard]] std::size_t transfers_of(const comm::sender_program& says);

/// Changes the steps of a sender in a run: how a test makes a mutant. Empty: it changes nothing.
using sender_change = std::function<void(int sender, std::vector<step>& steps)>;
[[nodiscard]] comm::sender_program changed(comm::sender_program all, const sender_change& change);

/// A planned operator of one rank, with all that is made of the plan: has
///
///   says()       what its senders do, by its program; where they walk lists
///   does()       the same, by what kernels are given; then by `change`
///   faults()     what can be seen to be wrong without the other ranks
///   lanes()      what its kernels do, which has to outlive neither the model nor its plan
///   operands()   how large its matrices are
///   sets()       of its rooms
///
/// and a `plan`.
template <class Model>
void prove(const std::vector<Model>& ranks, device_findings& found) {
  device_schedule lanes;
  std::vector<schedule::operand_extents> operands;
  for (const Model& m : ranks) {
    lanes.push_back(m.lanes());
    operands.push_back(m.operands());
  }
  // Each set is used twice.
  const auto epochs = 2 * static_cast<std::uint64_t>(ranks.front().sets());
  add_report(found, lanes, check_lanes(lanes, operands, epochs));
}

/// Plans as so many ranks do, `model_of(rank)`; looks at what each would do by itself, and proves
/// the schedule of all of them.
template <class ModelOf>
[[nodiscard]] device_findings check(int ranks, const ModelOf& model_of) {
  device_findings found;
  std::vector<decltype(model_of(0))> models;
  try {
    for (int rank = 0; rank < ranks; ++rank) {
      const auto& m = models.emplace_back(model_of(rank));
      const std::string who = "rank " + std::to_string(rank);
      if (m.plan.agreed() != models.front().plan.agreed())
        found.faults.push_back(who + " plans otherwise than rank 0");
      for (const std::string& fault : m.faults()) found.faults.push_back(who + ": " + fault);
      if constexpr (requires { m.says(); }) found.transfers += transfers_of(m.says());
    }
  } catch (const error& e) {
    if (e.code() != errc::unsupported) throw;
    found.refusal = e.what();
    return found;
  }
  found.plan = models.front().plan.text();
  if (found.faults.empty()) prove(models, found);
  return found;
}

}  // namespace untax::plan_check
