#include "ops/plan_check/check.hpp"

#include <set>
#include <tuple>

#include <fmt/format.h>

#include "engines/schedule/walk.hpp"

namespace untax::plan_check {
namespace {

/// The effects of a step, in numbers that do not depend on its representation. Two senders have the
/// same effect if these are equal.
auto atom_of(const step& s) {
  const bool moves = s.what == action::copy;
  const auto corner = [&](const place& p) {
    return moves ? std::tuple(p.of, p.rank, p.row, p.col)
                 : std::tuple(operand::none, 0, std::int64_t{0}, std::int64_t{0});
  };
  const auto counter = [](bool named, int rank, int index, std::uint64_t value) {
    return named ? std::tuple(rank, index, value) : std::tuple(-1, -1, std::uint64_t{0});
  };
  const room& r = s.reserve;
  return std::tuple(
      corner(s.from), corner(s.to), moves ? s.rows : 0, moves ? s.cols : 0,
      counter(r.free >= 0 && r.needed_free() > 0, r.readers, r.free, r.needed_free()),
      counter(s.acquire.named(), 0, s.acquire.ready, s.acquire.use),
      counter(s.publish.named(), s.publish.consumer, s.publish.ready, s.publish.use),
      counter(s.retire.free >= 0, s.retire.producer, s.retire.free + s.reader, s.retire.use));
}
using atom = decltype(atom_of(step{}));

/// The steps that have an effect. A wait that is satisfied from the beginning is left out.
std::vector<atom> atoms_of(const comm::sender_program& senders, int sender, std::uint64_t epoch) {
  std::vector<atom> atoms;
  for (const step& s : steps_of(senders, sender, epoch))
    if (const atom atom_of_step = atom_of(s); atom_of_step != atom_of(step{}))
      atoms.push_back(atom_of_step);
  return atoms;
}

}  // namespace

std::vector<step> steps_of(const comm::sender_program& senders, int sender, std::uint64_t epoch) {
  std::vector<step> steps;
  senders.steps(sender, epoch, [&](const step& s) { steps.push_back(s); });
  return steps;
}

std::string difference(const comm::sender_program& does, const comm::sender_program& says) {
  const auto epochs = 2 * static_cast<std::uint64_t>(says.sets.sets);
  for (int sender = 0; sender < says.count; ++sender) {
    for (std::uint64_t epoch = 1; epoch <= epochs; ++epoch) {
      const auto ours = atoms_of(does, sender, epoch);
      const auto theirs = atoms_of(says, sender, epoch);
      if (ours.size() != theirs.size())
        return fmt::format("sender {} takes {} steps in epoch {}, its program says {}", sender,
                           ours.size(), epoch, theirs.size());
      for (std::size_t i = 0; i < ours.size(); ++i) {
        if (ours[i] != theirs[i])
          return fmt::format("step {} of sender {} in epoch {} is not that of its program", i,
                             sender, epoch);
      }
    }
  }
  return "";
}

std::string exchange_difference(const program& lanes, const program& says, bool reserves,
                                std::uint64_t epochs) {
  // Epoch, verb, producer, consumer, whether the room has bytes, value.
  std::set<std::tuple<std::uint64_t, channel_verb, int, int, bool, std::uint64_t>> signals[2];
  for (const program* steps : {&lanes, &says}) {
    schedule::each_step(
        schedule::rank_plan(*steps, {}, epochs), [&](const auto& at, const step& s) {
          schedule::each_verb(s, [&](channel_verb verb, const room& r) {
            const bool waits = verb == channel_verb::reserve;
            const std::uint64_t value = waits ? r.needed_free() : r.use;
            const bool guards = waits || verb == channel_verb::retire;
            if (r.producer != r.consumer && value > 0 && (reserves || !guards))
              signals[steps == &says].emplace(at.epoch, verb, r.producer, r.consumer,
                                              reserves && r.free >= 0, value);
          });
        });
  }
  for (const bool protocol : {false, true})
    for (const auto& signal : signals[protocol])
      if (const auto [epoch, verb, producer, consumer, has_bytes, value] = signal;
          !signals[!protocol].contains(signal))
        return fmt::format("{} of {} from rank {} to rank {} in epoch {}: only in its {}",
                           schedule::name_of(verb), value, producer, consumer, epoch,
                           protocol ? "protocol" : "lanes");
  return "";
}

std::size_t transfers_of(const comm::sender_program& says) {
  std::size_t count = 0;
  for (int sender = 0; sender < says.count; ++sender)
    for (const step& s : steps_of(says, sender, 1)) count += s.what == action::copy ? 1 : 0;
  return count;
}

comm::sender_program changed(comm::sender_program senders, const sender_change& change) {
  if (!change) return senders;
  const comm::sender_program right = senders;
  senders.steps = [=](int sender, std::uint64_t epoch, const program::sink& emit) {
    auto steps = steps_of(right, sender, epoch);
    change(sender, steps);
    for (const step& s : steps) emit(s);
  };
  return senders;
}

}  // namespace untax::plan_check
