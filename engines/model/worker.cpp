#include "engines/model/worker.hpp"

#include <untax/flow/channel.hpp>

#include "engines/model/no_timeout.hpp"
#include "engines/model/search.hpp"
#include "engines/schedule/walk.hpp"

namespace untax::model {
namespace {

template <weakening W>
auto channel_on(const model_counters& counters) {
  static no_timeout guard;
  return channel<basic_model_memory<W>, model_counter_table, no_timeout>("model", {&counters},
                                                                         guard);
}

}  // namespace

std::uint64_t& private_matrix::at(std::int64_t row, std::int64_t col) {
  if (row < 0 || row >= size_.rows || col < 0 || col >= size_.cols)
    fail("a step accesses elements outside its private tile");
  return values_[static_cast<std::size_t>(row * size_.cols + col)];
}

worker::worker(const scenario& s, const schedule::rank_plan& plan,
               const std::optional<mutation>& change, const world_memory& memory)
    : scenario_(&s),
      plan_(&plan),
      change_(change),
      memory_(&memory),
      product_(plan.tile()),
      sum_(plan.tile()),
      panel_(schedule::panel_extent(plan)) {}

void worker::run(schedule::worker_name who, std::uint64_t epoch) {
  at_ = {plan_->rank(), who, epoch, 0};
  for (const step& s : plan_->steps(who, epoch)) {
    take(s);
    ++at_.index;
  }
  doing_ = doing::nothing;
}

void worker::take(const step& s) {
  speak(s, channel_verb::reserve, [&](auto&& c) { return c.reserve(s.reserve); });
  speak(s, channel_verb::acquire, [&](auto&& c) { return c.acquire(s.acquire); });
  doing_ = doing::action;
  act(s);
  speak(s, channel_verb::publish, [&](auto&& c) { c.publish(s.publish); });
  speak(s, channel_verb::retire, [&](auto&& c) { c.retire(s.retire, s.reader); });
}

template <class Use>
void worker::speak(const step& s, channel_verb verb, Use&& use) {
  if (!(s.*schedule::room_of(verb)).named()) return;
  doing_ = static_cast<doing>(verb);
  const model_counters& counters = memory_->counters();
  const bool weak =
      change_ && change_->how == change::weaken && change_->strikes(at_.who.kernel, s, verb);
  const bool waits = verb == channel_verb::reserve || verb == channel_verb::acquire;
  if (!weak) {
    static_cast<void>(use(channel_on<weakening::none>(counters)));
  } else if (waits) {
    static_cast<void>(use(channel_on<weakening::relaxed_load>(counters)));
  } else {
    static_cast<void>(use(channel_on<weakening::relaxed_raise>(counters)));
  }
}

void worker::act(const step& s) {
  if (s.what == action::multiply) return multiply(s);
  if (s.what == action::reduce) return reduce(s);
  if (s.what == action::attend) return attend(s);
  if (s.what == action::merge) return merge(s);
  if (s.what == action::normalise) return normalise(s);
  for (std::int64_t i = 0; i < s.rows; ++i) {
    for (std::int64_t j = 0; j < s.cols; ++j) {
      if (s.what == action::add) {
        std::uint64_t& total = sum_.at(i, j);
        total = (s.first ? 0 : total) + get(s.from, i, j);
      } else if (s.what != action::none) {
        put(s.to, i, j, get(s.from, i, j));
      }
    }
  }
}

void worker::multiply(const step& s) {
  for (std::int64_t i = 0; i < s.rows; ++i) {
    for (std::int64_t j = 0; j < s.cols; ++j) {
      std::uint64_t& total = product_.at(i, j);
      if (s.first) total = 0;
      for (std::int64_t k = 0; k < s.depth; ++k) {
        total +=
            get(s.from, i, k) * scenario_->b(plan_->rank(), s.weights.row + j, s.weights.col + k);
      }
      // Engines may keep the running sum in the destination, so every step of a chain writes there.
      put(s.to, i, j, total);
    }
  }
}

void worker::reduce(const step& s) {
  for (std::int64_t i = 0; i < s.rows; ++i) {
    for (std::int64_t j = 0; j < s.cols; ++j) {
      std::uint64_t total = get(addend(s, 0), i, j);
      for (std::int64_t k = 1; k < s.depth; ++k) {
        total = combined(s.combine, total, get(addend(s, k), i, j));
      }
      for (int rank = 0; rank < s.depth; ++rank) {
        if (s.everywhere || rank == s.to.rank) put(target(s, rank), i, j, total);
      }
    }
  }
}

// Attention is linear here, so that partial results can be added for any splits: an element is the
// query times the element of b for the split of the sequence and head. The statistics repeat the
// first column, and the result contains them.

void worker::attend(const step& s) {
  const std::uint64_t split = scenario_->b(plan_->rank(), s.weights.row, s.weights.col);
  for (std::int64_t i = 0; i < s.rows; ++i) {
    for (std::int64_t j = 0; j < s.cols + attention_statistics; ++j) {
      put(s.to, i, j, get(s.from, i, j < s.cols ? j : 0) * split);
    }
  }
}

void worker::merge(const step& s) {
  const auto sum = [&](std::int64_t i, std::int64_t j) {
    std::uint64_t total = 0;
    for (std::int64_t k = 0; k < s.depth; ++k) total += get(s.from, k * s.rows + i, j);
    return total;
  };
  for (std::int64_t i = 0; i < s.rows; ++i) {
    std::uint64_t statistics[attention_statistics];
    for (std::int64_t t = 0; t < attention_statistics; ++t) statistics[t] = sum(i, s.cols + t);
    for (std::int64_t j = 0; j < s.cols; ++j) {
      const std::uint64_t element = sum(i, j);
      put(s.to, i, j, s.to.of == operand::c ? element + statistics[0] + statistics[1] : element);
    }
    if (s.to.of == operand::c) continue;
    for (std::int64_t t = 0; t < attention_statistics; ++t) put(s.to, i, s.cols + t, statistics[t]);
  }
}

/// A normalised element is the element plus the sum of its row, so that an incomplete row changes
/// it.
void worker::normalise(const step& s) {
  for (std::int64_t i = 0; i < s.rows; ++i) {
    std::uint64_t row = 0;
    for (std::int64_t j = 0; j < s.cols; ++j) row += get(s.from, i, j);
    for (int rank = 0; rank < s.depth; ++rank) {
      if (!s.everywhere && rank != s.to.rank) continue;
      for (std::int64_t j = 0; j < s.cols; ++j) {
        const std::uint64_t element = get(s.from, i, j);
        put(target(s, rank), i, j, element);
        put(target(s, rank), i, s.cols + j, element + row);
      }
    }
  }
}

void worker::put(const place& to, std::int64_t row, std::int64_t col, std::uint64_t value) {
  if (private_matrix* own = private_one(to.of)) {
    own->at(to.row + row, to.col + col) = value;
  } else {
    memory_->cell(to, row, col) = value;
  }
}

std::uint64_t worker::get(const place& from, std::int64_t row, std::int64_t col) {
  if (private_matrix* own = private_one(from.of)) return own->at(from.row + row, from.col + col);
  return memory_->cell(from, row, col);
}

private_matrix* worker::private_one(operand role) {
  switch (role) {
    case operand::product:
      return &product_;
    case operand::sum:
      return &sum_;
    case operand::panel:
      return &panel_;
    default:
      return nullptr;
  }
}

std::string worker::whereabouts() const {
  if (doing_ == doing::nothing) return "";
  const auto& steps = plan_->steps(at_.who, at_.epoch);
  const step& s = steps[static_cast<std::size_t>(at_.index)];
  const std::string where = schedule::describe(*plan_, at_) + ": ";
  if (doing_ == doing::action) return where + "reads and writes";
  const auto verb = static_cast<channel_verb>(doing_);
  return where + schedule::name_of(verb) + " of " + schedule::describe(s.*schedule::room_of(verb));
}

}  // namespace untax::model
