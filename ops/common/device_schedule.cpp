#include "ops/common/device_schedule.hpp"

#include <utility>

namespace untax {

schedule::schedule_report check_lanes(const device_schedule& ranks,
                                      const std::vector<schedule::operand_extents>& operands,
                                      std::uint64_t epochs) {
  std::vector<schedule::rank_plan> plans;
  plans.reserve(ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    plans.emplace_back(program(ranks[rank]), operands[rank], epochs);
  return check_lanes(plans, [&](int rank, int flag) {
    return ranks[static_cast<std::size_t>(rank)].orders(flag);
  });
}

schedule::schedule_report check_lanes(std::span<const schedule::rank_plan> plans,
                                      const std::function<bool(int rank, int flag)>& orders) {
  return schedule::check_schedule(
      plans, [&](const schedule::step_position& at, const step& s, channel_verb verb) {
        const room& r = s.*schedule::room_of(verb);
        const bool flag = verb == channel_verb::acquire || verb == channel_verb::publish;
        return !flag || r.producer != r.consumer || orders(at.rank, r.ready);
      });
}

void add_report(device_findings& findings, const device_schedule& ranks,
                const schedule::schedule_report& report) {
  for (const schedule::lane_program& rank : ranks) {
    for (int i = 0; i < rank.kernels(); ++i)
      findings.lanes += static_cast<std::size_t>(rank.kernel_at(i).workers);
  }
  findings.steps += report.steps;
  findings.waits += report.waits;
  findings.faults.insert(findings.faults.end(), report.problems.begin(), report.problems.end());
}

}  // namespace untax
