#include "engines/schedule/step_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include <untax/tile/shard.hpp>

#include "engines/schedule/matrix_map.hpp"
#include "engines/schedule/walk.hpp"

namespace untax::schedule {
namespace {

bool same_place(const place& x, const place& y) {
  return x.of == y.of && x.rank == y.rank && x.row == y.row && x.col == y.col;
}

/// Checks one worker in one epoch.
class chain_follower {
 public:
  chain_follower(const rank_plan& plan, worker_name who, std::uint64_t epoch,
                 problem_list& problems)
      : plan_(&plan),
        at_{plan.rank(), who, epoch, 0},
        problems_(&problems),
        panel_(panel_extent(plan)) {
    for (const step& s : plan.steps(who, epoch)) {
      each_access(s, [&](const access& a) {
        if (is_in_panel(a)) panel_.cut(a.at.row, a.at.col, a.rows, a.cols);
      });
    }
    panel_.seal();
  }

  void follow() {
    for (const step& s : plan_->steps(at_.who, at_.epoch)) {
      each_access(s, [&](const access& a) { use_private(a); });
      if (s.what == action::multiply) multiply(s);
      if (s.what == action::add) add(s);
      ++at_.index;
    }
    --at_.index;
    if (open_) wrong("the program ends in the middle of a chain of multiplications");
  }

 private:
  /// Whether the filled part `have` of a private tile contains a rectangle.
  static bool holds(const extent& have, const access& a) {
    return a.at.row + a.rows <= have.rows && a.at.col + a.cols <= have.cols;
  }

  /// False for a rectangle outside the panel, too: `check_rectangles` has reported it.
  [[nodiscard]] bool is_in_panel(const access& a) const {
    const extent whole = panel_.size();
    return a.at.of == operand::panel && a.at.row >= 0 && a.at.col >= 0 && a.rows >= 0 &&
           a.cols >= 0 && a.at.row + a.rows <= whole.rows && a.at.col + a.cols <= whole.cols;
  }

  void use_private(const access& a) {
    if (is_in_panel(a)) {
      panel_.each_cell(a.at.row, a.at.col, a.rows, a.cols, [&](matrix_map::cell& c) {
        if (!a.writes && !c.complete) wrong("reads a part of its panel into which nothing was put");
        const bool known = a.writes || c.complete;
        c.complete = true;
        return known;
      });
    }
    if (a.writes) return;
    if (a.at.of == operand::product && !holds(product_, a))
      wrong("reads a product that is not finished");
    if (a.at.of == operand::sum && !holds(sum_, a)) wrong("reads a sum that was not begun");
  }

  void multiply(const step& s) {
    if (s.first && open_) wrong("begins a chain of multiplications before the last one ended");
    if (!s.first && !open_) wrong("continues a chain of multiplications that was not begun");
    if (s.first) {
      begin_ = s;
      covered_.clear();
    } else if (!same_place(s.to, begin_.to) || s.rows != begin_.rows || s.cols != begin_.cols ||
               s.weights.row != begin_.weights.row) {
      wrong("continues a chain of multiplications with another tile");
    }
    if (s.depth > 0) covered_.push_back({s.weights.col, s.depth});
    open_ = !s.last;
    product_ = s.last && s.to.of == operand::product ? extent{s.rows, s.cols} : extent{};
    if (s.last) check_depth();
  }

  void check_depth() {
    std::sort(covered_.begin(), covered_.end(),
              [](const range& x, const range& y) { return x.begin < y.begin; });
    const std::int64_t depth = plan_->extent_of(operand::b).cols;
    std::int64_t reached = 0;
    for (const range& r : covered_) {
      if (r.begin > reached)
        return wrong(fmt::format("leaves out k = {}..{}", reached, r.begin - 1));
      if (r.begin < reached) return wrong(fmt::format("takes k = {} twice", r.begin));
      reached = r.end();
    }
    if (reached < depth) wrong(fmt::format("leaves out k = {}..{}", reached, depth - 1));
  }

  void add(const step& s) {
    if (!s.first && (sum_.rows != s.rows || sum_.cols != s.cols)) {
      wrong("continues a sum that was not begun with this size");
    }
    sum_ = {s.rows, s.cols};
  }

  void wrong(const std::string& why) { problems_->add(describe(*plan_, at_) + ": " + why); }

  const rank_plan* plan_;
  step_position at_;
  problem_list* problems_;
  bool open_ = false;
  step begin_;
  std::vector<range> covered_;
  extent product_;  // the filled part of the private tile
  extent sum_;
  matrix_map panel_;
};

}  // namespace

void check_chains(std::span<const rank_plan> plans, problem_list& problems) {
  for (const rank_plan& plan : plans) {
    for (std::uint64_t epoch = 1; epoch <= plan.epochs(); ++epoch) {
      for (const auto& stage : plan.stages()) {
        for (const worker_name who : stage) chain_follower(plan, who, epoch, problems).follow();
      }
    }
  }
}

}  // namespace untax::schedule
