#include <fmt/format.h>

#include <algorithm>

#include "engines/schedule/memory_map.hpp"

// The part of `memory_map` that tracks the origins of elements.

namespace untax::schedule {

origin memory_map::origin_of(const step& s, const event& actor) {
  const int rank = plan_of(actor).rank();
  switch (s.what) {
    case action::copy:
    case action::store:
      return origin_in(s.from, s.rows, s.cols, actor).moved(s.from, s.to);
    case action::multiply: {
      const origin result =
          s.from.of == operand::a
              ? origin{operand::product, rank, s.to.row - s.from.row, s.to.col - s.weights.row}
              : origin{};
      if (s.to.of == operand::product) private_of(actor).product = result;
      return result;
    }
    case action::add: {
      const origin addend = origin_in(s.from, s.rows, s.cols, actor).moved(s.from, place{});
      origin& sum = private_of(actor).sum;
      sum = s.first ? addend.begun() : combined(sum, addend, actor);
      return {};
    }
    case action::reduce: {
      origin combination;
      for (std::int64_t i = 0; i < s.depth; ++i) {
        const place at = addend(s, i);
        const origin summand = origin_in(at, s.rows, s.cols, actor).moved(at, s.to);
        combination = i == 0 ? summand.begun() : combined(combination, summand, actor);
      }
      return combination;
    }
    case action::normalise:  // the columns behind the sums are computed from the same rows
      return origin_in(s.from, s.rows, s.cols, actor).moved(s.from, s.to);
    default:
      return {};
  }
}

origin memory_map::origin_in(const place& at, std::int64_t rows, std::int64_t cols,
                             const event& actor) {
  if (at.of == operand::product) return private_of(actor).product;
  if (at.of == operand::sum) return private_of(actor).sum;
  if (at.of == operand::panel || at.of == operand::b) return {};
  matrix_map& map = of(at);
  const matrix_map::cell* first = nullptr;
  map.each_cell(at.row, at.col, rows, cols, [&](matrix_map::cell& c) {
    if (first == nullptr) first = &c;
    if (c.from == first->from) return true;
    problems_->add(fmt::format("{} takes {}, which is {}, together with {}, which is {}",
                               text_of(actor), text_of(map, *first, at),
                               text_of(first->from, map.corner_of(*first)), text_of(map, c, at),
                               text_of(c.from, map.corner_of(c))));
    return false;
  });
  return first == nullptr ? origin{} : first->from;
}

origin memory_map::combined(const origin& first, const origin& other, const event& actor) {
  const auto wrong = [&](const std::string& why) {
    problems_->add(fmt::format("{} combines {} with {}{}", text_of(actor), text_of(first, {}),
                               text_of(other, {}), why));
  };
  origin same_place = other;
  same_place.rank = first.rank;
  same_place.sum = first.sum;
  same_place.ranks = first.ranks;
  if (first != same_place) {
    wrong("");
  } else if (first.known() && other.rank != first.next()) {
    wrong(": each rank is taken once, in rank order, " +
          (first.next() == world() ? "and none is left"
                                   : fmt::format("and next is {}", first.next())));
  }
  // The fault has been reported. Later steps are judged as if all ranks so far had been right.
  origin both = first.begun();
  if (!first.known()) return both;
  if (other.known()) both.rank = std::min(first.rank, other.rank);
  const int next = other.known() ? std::max(first.next(), other.next()) : first.next() + 1;
  both.ranks = next - both.rank;
  return both;
}

void memory_map::expect_in_place(const place& at, const origin& from, const event& actor) {
  if (!from.known()) return;
  const auto wrong = [&](const std::string& belongs) {
    problems_->add(fmt::format("{} puts {} at row {}, column {} of c of rank {}, where {} belongs",
                               text_of(actor), text_of(from, at), at.row, at.col, at.rank,
                               belongs));
  };
  if (from.sum && !from.is_of_all(world())) return wrong("the sum of all ranks");
  auto& seen = seen_in_c_[known_of(at.rank, actor)];
  const auto known = std::ranges::find_if(seen, [&](const origin& o) {
    return o.of == from.of && o.rank == from.rank && o.sum == from.sum;
  });
  if (known == seen.end()) {
    seen.push_back(from);
  } else if (*known != from) {
    wrong(text_of(*known, at));
  }
}

void memory_map::expect_factor(const step& s, const origin& from, const event& actor) {
  if (from.of != operand::a || from.sum) return;
  const std::pair rows_and_depth{s.to.row - s.from.row + from.down,
                                 s.weights.col - s.from.col + from.right};
  auto& known = factors_[known_of(from.rank, actor)];
  if (!known) known = rows_and_depth;
  if (*known != rows_and_depth) {
    problems_->add(fmt::format(
        "{} multiplies {} into row {} of c, with column {} of b: elsewhere its rows lie {} above "
        "those of c, and its columns {} before those of b",
        text_of(actor), text_of(from, s.from), s.to.row, s.weights.col, known->first,
        known->second));
  }
  auto& columns = columns_[known_of(plan_of(actor).rank(), actor)];
  const std::int64_t right = s.to.col - s.weights.row;
  if (!columns) columns = right;
  if (*columns != right) {
    problems_->add(
        fmt::format("{} multiplies row {} of b into column {} of c: elsewhere they lie {} apart",
                    text_of(actor), s.weights.row, s.to.col, *columns));
  }
}

std::size_t memory_map::known_of(int rank, const event& actor) const {
  const step_position& at = happenings_[static_cast<std::size_t>(actor.id)].at;
  const bool alike = plan_of(actor).epochs_are_alike();
  return (alike ? 0 : static_cast<std::size_t>(at.epoch - 1) * plans_.size()) +
         static_cast<std::size_t>(rank);
}

memory_map::private_tiles& memory_map::private_of(const event& actor) {
  const auto lane = static_cast<std::size_t>(actor.lane);
  if (lane >= private_.size()) private_.resize(lane + 1);
  return private_[lane];
}

const rank_plan& memory_map::plan_of(const event& actor) const {
  return plans_[static_cast<std::size_t>(happenings_[static_cast<std::size_t>(actor.id)].at.rank)];
}

/// "row 3, column 0 of the product of rank 1"
std::string memory_map::text_of(const origin& from, const place& at) const {
  if (!from.known()) return "nothing that is known";
  const std::string whose = from.sum && from.is_of_all(world()) ? "all ranks"
                            : from.ranks == 1
                                ? fmt::format("rank {}", from.rank)
                                : fmt::format("ranks {}..{}", from.rank, from.next() - 1);
  return fmt::format("row {}, column {} of {} of {}", at.row - from.down, at.col - from.right,
                     from.of == operand::product ? "the product" : "a", whose);
}

}  // namespace untax::schedule
