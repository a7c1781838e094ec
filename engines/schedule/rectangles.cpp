#include "engines/schedule/step_checks.hpp"

#include <fmt/format.h>

#include "engines/schedule/walk.hpp"

namespace untax::schedule {
namespace {

/// The fault of an access of rank `own.rank`; empty if there is none.
std::string fault_of(std::span<const rank_plan> plans, const rank_plan& own, const step& s,
                     const access& a) {
  const operand role = a.at.of;
  if (role == operand::none) return "a matrix is missing";
  if (a.rows < 0 || a.cols < 0) return "a size is negative";
  const auto within = [&](extent limit) {
    return a.at.row >= 0 && a.at.col >= 0 && a.at.row + a.rows <= limit.rows &&
           a.at.col + a.cols <= limit.cols;
  };
  if (role == operand::panel) {
    return within(panel_extent(own))
               ? ""
               : "the panel is larger than the rows of tile_extent() by the columns of b";
  }
  if (is_private(role))
    return within(own.tile()) ? "" : fmt::format("{} is larger than tile_extent()", name_of(role));
  if (a.at.rank < 0 || a.at.rank >= static_cast<int>(plans.size()))
    return fmt::format("there is no rank {}", a.at.rank);
  if (role == operand::a || role == operand::b) {
    if (a.at.rank != own.rank() && (role == operand::b || s.what != action::reduce))
      return fmt::format("{} of another rank cannot be reached", name_of(role));
    if (a.writes)
      return fmt::format("{} belongs to the caller and must not be written", name_of(role));
  }
  if (a.rows == 0 || a.cols == 0) return "";
  const extent limit = plans[static_cast<std::size_t>(a.at.rank)].extent_of(role);
  if (within(limit)) return "";
  return fmt::format("{} {} outside the matrix, which is {}x{}", describe(a.at, a.rows, a.cols),
                     a.writes ? "is written" : "is read", limit.rows, limit.cols);
}

}  // namespace

void check_rectangles(std::span<const rank_plan> plans, problem_list& problems) {
  for (const rank_plan& plan : plans) {
    each_step(plan, [&](const step_position& at, const step& s) {
      const bool accumulates =
          s.what == action::multiply || s.what == action::add || s.what == action::store;
      if (accumulates && (s.rows > plan.tile().rows || s.cols > plan.tile().cols)) {
        problems.add(fmt::format("{}: {}x{} is larger than tile_extent() = {}x{}",
                                 describe(plan, at), s.rows, s.cols, plan.tile().rows,
                                 plan.tile().cols));
      }
      each_access(s, [&](const access& a) {
        const std::string fault = fault_of(plans, plan, s, a);
        if (!fault.empty()) problems.add(describe(plan, at) + ": " + fault);
      });
    });
  }
}

}  // namespace untax::schedule
