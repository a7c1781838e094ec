#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <untax/core/error.hpp>
#include <untax/tile/program.hpp>

#include "engines/gpu/comm/transfer_list.hpp"
#include "ops/common/device_schedule.hpp"

namespace untax::plan_check {

/// All steps of a sender in an epoch.
[[nodiscard]] std::vector<step> steps_of(const comm::sender_program& senders, int sender,
                                         std::uint64_t epoch);
/// The first difference between the steps of senders and those of their program, over all epochs in
/// which a set is used for the first or second time. Empty if there is none.
[[nodiscard]] std::string difference(const comm::sender_program& does,
                                     const comm::sender_program& says);
/// The first signal between ranks, or wait for one, that a rank has either in its lanes or in its
/// protocol, but not in both; empty if there is none. The parts of a slab count as one, since their
/// sizes are the plan's. Lanes may reserve and retire where the protocol does not.
[[nodiscard]] std::string exchange_difference(const program& lanes, const program& says,
                                              bool reserves, std::uint64_t epochs);
/// As `exchange_difference`, for a planned sum.
template <class Model>
[[nodiscard]] std::string exchange_difference(const Model& m) {
  const auto& says = m.exchange();
  return exchange_difference(program(m.lanes()), program(says), says.reserves(),
                             2 * static_cast<std::uint64_t>(m.sets()));
}
/// The number of rectangles that senders send in a run.
[[nodiscard]] std::size_t transfers_of(const comm::sender_program& says);

/// Changes the steps of a sender in a run, so that a test can make a mutant. Empty: changes
/// nothing.
using sender_change = std::function<void(int sender, std::vector<step>& steps)>;
[[nodiscard]] comm::sender_program changed(comm::sender_program senders,
                                           const sender_change& change);

/// A planned operator of one rank, with all data made from the plan. It has a `plan`, and
///   says()       the steps of its senders by their program, where they walk lists
///   does()       the same by the arguments of its kernels, after `change`
///   faults()     faults that show without the other ranks
///   exchange()   its protocol, if it is a sum
///   lanes()      the steps of its kernels; the model and its plan have to outlive them
///   operands()   the sizes of its matrices
///   sets()       the number of its room sets
template <class Model>
void prove(const std::vector<Model>& ranks, device_findings& findings) {
  device_schedule lanes;
  std::vector<schedule::operand_extents> operands;
  for (const Model& m : ranks) {
    lanes.push_back(m.lanes());
    operands.push_back(m.operands());
  }
  // Each set is used twice.
  const auto epochs = 2 * static_cast<std::uint64_t>(ranks.front().sets());
  add_report(findings, lanes, check_lanes(lanes, operands, epochs));
}

/// Makes the plans of `ranks` ranks by `model_of(rank)`, searches each for faults, and proves the
/// schedule of all of them.
template <class ModelOf>
[[nodiscard]] device_findings check(int ranks, const ModelOf& model_of) {
  device_findings findings;
  std::vector<decltype(model_of(0))> models;
  try {
    for (int rank = 0; rank < ranks; ++rank) {
      const auto& m = models.emplace_back(model_of(rank));
      const std::string who = "rank " + std::to_string(rank);
      if (m.plan.agreed() != models.front().plan.agreed())
        findings.faults.push_back(who + " plans otherwise than rank 0");
      for (const std::string& fault : m.faults()) findings.faults.push_back(who + ": " + fault);
      if constexpr (requires { m.exchange(); }) {
        const std::string fault = findings.faults.empty() ? exchange_difference(m) : "";
        if (!fault.empty()) findings.faults.push_back(who + ": " + fault);
      }
      if constexpr (requires { m.says(); }) findings.transfers += transfers_of(m.says());
    }
  } catch (const error& e) {
    if (e.code() != errc::unsupported) throw;
    findings.refusal = e.what();
    return findings;
  }
  findings.plan = models.front().plan.text();
  if (findings.faults.empty()) prove(models, findings);
  return findings;
}

}  // namespace untax::plan_check
