#include "engines/schedule/memory_map.hpp"

#include <fmt/format.h>

namespace untax::schedule {
namespace {

constexpr std::array<operand, 4> watched = {operand::a, operand::c, operand::inbox,
                                            operand::outbox};

/// The index of an operand in `watched`; -1 for private tiles, and for b, which no step writes.
constexpr int slot_of(operand role) {
  for (std::size_t i = 0; i < watched.size(); ++i) {
    if (watched[i] == role) return static_cast<int>(i);
  }
  return -1;
}

/// The number of epochs that place elements differently: all, or 1 if epochs are alike.
std::size_t kinds_of_epochs(std::span<const rank_plan> plans) {
  return plans.empty() || plans.front().epochs_are_alike()
             ? 1
             : static_cast<std::size_t>(plans.front().epochs());
}

}  // namespace

memory_map::memory_map(std::span<const rank_plan> plans, problem_list& problems)
    : plans_(plans),
      problems_(&problems),
      seen_in_c_(kinds_of_epochs(plans) * plans.size()),
      factors_(seen_in_c_.size()),
      columns_(seen_in_c_.size()) {
  for (const rank_plan& plan : plans) {
    maps_.push_back({matrix_map(plan.extent_of(watched[0])), matrix_map(plan.extent_of(watched[1])),
                     matrix_map(plan.extent_of(watched[2])),
                     matrix_map(plan.extent_of(watched[3]))});
  }
  for (const rank_plan& plan : plans) {
    each_step(plan, [&](const step_position&, const step& s) {
      each_access(s, [&](const access& a) {
        if (slot_of(a.at.of) >= 0) of(a.at).cut(a.at.row, a.at.col, a.rows, a.cols);
      });
    });
  }
  for (const rank_plan& plan : plans) {
    for (std::uint64_t epoch = 1; epoch <= plan.epochs(); ++epoch) {
      const extent result = plan.result_of(epoch);
      of({operand::c, plan.rank()}).cut(0, 0, result.rows, result.cols);
    }
  }
  for (auto& maps : maps_) {
    for (matrix_map& map : maps) map.seal();
  }
}

void memory_map::carry_out(const step_position& at, int lane, std::uint32_t time,
                           const vector_clock& now) {
  const step& s = plans_[static_cast<std::size_t>(at.rank)].steps(
      at.who, at.epoch)[static_cast<std::size_t>(at.index)];
  const event actor{lane, time, name(at, false)};
  const origin from = origin_of(s, actor);
  each_access(s, [&](const access& a) {
    if (slot_of(a.at.of) < 0) return;
    if (a.writes) {
      write(a, s, from, actor, at.epoch, now);
    } else {
      read(a, s, actor, at.epoch, now);
    }
  });
}

void memory_map::callers_turn(int rank, std::uint64_t ended, int lane, std::uint32_t time,
                              const vector_clock& now) {
  const event actor{lane, time, name({rank, {}, ended, 0}, true)};
  if (ended > 0) check_result(rank, ended);
  // The caller may overwrite c. This write shows whether a worker may still write there.
  overwrite({operand::c, rank}, {}, actor, ended, false, now);
  overwrite({operand::a, rank}, {operand::a, rank}, actor, ended + 1, true, now);
}

void memory_map::read(const access& a, const step& s, const event& actor, std::uint64_t epoch,
                      const vector_clock& now) {
  matrix_map& map = of(a.at);
  const bool factor = s.what == action::multiply && s.to.of == operand::c;
  map.each_cell(a.at.row, a.at.col, a.rows, a.cols, [&](matrix_map::cell& c) {
    if (races(map, c, a, actor, now)) return false;
    if (c.epoch != epoch || !c.complete) {
      problems_->add(fmt::format("{} reads {}, which nobody has {} in this epoch", text_of(actor),
                                 text_of(map, c, a.at),
                                 c.epoch == epoch ? "completed" : "written"));
      return false;
    }
    if (factor) expect_factor(s, c.from, actor);
    map.add_read(c, actor);
    return true;
  });
}

void memory_map::write(const access& a, const step& s, const origin& from, const event& actor,
                       std::uint64_t epoch, const vector_clock& now) {
  matrix_map& map = of(a.at);
  if (a.at.of == operand::c) expect_in_place(a.at, from, actor);
  const bool begins = s.what != action::multiply || s.first;
  const bool completes = s.what != action::multiply || s.last;
  map.each_cell(a.at.row, a.at.col, a.rows, a.cols, [&](matrix_map::cell& c) {
    if (races(map, c, a, actor, now)) return false;
    if (a.at.of == operand::c && begins && c.epoch == epoch && c.complete) {
      problems_->add(fmt::format("{} writes {}, which {} has completed already", text_of(actor),
                                 text_of(map, c, a.at), text_of(c.written)));
      return false;
    }
    matrix_map::write(c, actor, epoch, completes, from);
    return true;
  });
}

void memory_map::check_result(int rank, std::uint64_t epoch) {
  const place c_of_rank{operand::c, rank};
  matrix_map& map = of(c_of_rank);
  const extent result = plans_[static_cast<std::size_t>(rank)].result_of(epoch);
  map.each_cell(0, 0, result.rows, result.cols, [&](matrix_map::cell& c) {
    if (c.epoch == epoch && c.complete) return true;
    problems_->add(fmt::format("epoch {} of rank {} ends, and nobody has completed {}", epoch, rank,
                               text_of(map, c, c_of_rank)));
    return false;
  });
}

void memory_map::overwrite(const place& at, const origin& from, const event& actor,
                           std::uint64_t epoch, bool complete, const vector_clock& now) {
  matrix_map& map = of(at);
  const access whole{at, map.size().rows, map.size().cols, true};
  bool reported = false;
  map.each_cell(0, 0, whole.rows, whole.cols, [&](matrix_map::cell& c) {
    reported = reported || races(map, c, whole, actor, now);
    matrix_map::write(c, actor, epoch, complete, from);
    return true;
  });
}

bool memory_map::races(const matrix_map& map, const matrix_map::cell& c, const access& a,
                       const event& actor, const vector_clock& now) {
  const bool after_writer = c.written.before(now);
  const event read = a.writes && after_writer ? map.unordered_read(c, now) : event{};
  if (after_writer && !read.happened()) return false;
  problems_->add(fmt::format("race: {} {} {} while {} may still {} it", text_of(actor),
                             a.writes ? "writes" : "reads", text_of(map, c, a.at),
                             text_of(after_writer ? read : c.written),
                             after_writer ? "read" : "write"));
  return true;
}

matrix_map& memory_map::of(const place& at) {
  return maps_[static_cast<std::size_t>(at.rank)][static_cast<std::size_t>(slot_of(at.of))];
}

int memory_map::name(const step_position& at, bool caller) {
  happenings_.push_back({at, caller});
  return static_cast<int>(happenings_.size()) - 1;
}

std::string memory_map::text_of(const event& e) const {
  const happening& h = happenings_[static_cast<std::size_t>(e.id)];
  if (!h.caller) return describe(plans_[static_cast<std::size_t>(h.at.rank)], h.at);
  return fmt::format("the caller of rank {} after epoch {}", h.at.rank, h.at.epoch);
}

std::string memory_map::text_of(const matrix_map& map, const matrix_map::cell& c, const place& at) {
  place corner = map.corner_of(c);
  corner.of = at.of;
  corner.rank = at.rank;
  const extent size = map.extent_of(c);
  return describe(corner, size.rows, size.cols);
}

}  // namespace untax::schedule
