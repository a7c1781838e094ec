#include "ops/plan_check/check.hpp"

#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace untax::plan_check {
namespace {

/// What a step does, in numbers that do not depend on how it was written down: two senders do the
/// same if these are.
struct atom {
  std::tuple<operand, int, std::int64_t, std::int64_t> from{operand::none, 0, 0, 0};
  std::tuple<operand, int, std::int64_t, std::int64_t> to{operand::none, 0, 0, 0};
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::tuple<int, int, std::uint64_t> reserve{-1, 0, 0};  // first counter here, how many, value
  std::pair<int, std::uint64_t> acquire{-1, 0};
  std::tuple<int, int, std::uint64_t> publish{-1, -1, 0};  // rank, counter, value
  std::tuple<int, int, std::uint64_t> retire{-1, -1, 0};

  friend bool operator==(const atom&, const atom&) = default;
};

atom atom_of(const step& s) {
  atom a;
  if (s.what == action::copy) {
    a.from = {s.from.of, s.from.rank, s.from.row, s.from.col};
    a.to = {s.to.of, s.to.rank, s.to.row, s.to.col};
    a.rows = s.rows;
    a.cols = s.cols;
  }
  if (s.reserve.named() && s.reserve.free >= 0 && s.reserve.needed_free() > 0)
    a.reserve = {s.reserve.free, s.reserve.readers, s.reserve.needed_free()};
  if (s.acquire.named()) a.acquire = {s.acquire.ready, s.acquire.use};
  if (s.publish.named()) a.publish = {s.publish.consumer, s.publish.ready, s.publish.use};
  if (s.retire.named() && s.retire.free >= 0)
    a.retire = {s.retire.producer, s.retire.free + s.reader, s.retire.use};
  return a;
}

std::vector<step> steps_of(const comm::sender_program& all, int sender, std::uint64_t epoch) {
  std::vector<step> steps;
  all.steps(sender, epoch, [&](const step& s) { steps.push_back(s); });
  return steps;
}

/// Those that do anything: what waits for nothing yet is left out.
std::vector<atom> atoms_of(const comm::sender_program& all, int sender, std::uint64_t epoch) {
  std::vector<atom> atoms;
  for (const step& s : steps_of(all, sender, epoch))
    if (const atom here = atom_of(s); here != atom{}) atoms.push_back(here);
  return atoms;
}

}  // namespace

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

std::size_t transfers_of(const comm::sender_program& says) {
  std::size_t count = 0;
  for (int sender = 0; sender < says.count; ++sender)
    for (const step& s : steps_of(says, sender, 1)) count += s.what == action::copy ? 1 : 0;
  return count;
}

comm::sender_program changed(comm::sender_program all, const sender_change& change) {
  if (!change) return all;
  const comm::sender_program right = all;
  all.steps = [=](int sender, std::uint64_t epoch, const program::sink& emit) {
    auto steps = steps_of(right, sender, epoch);
    change(sender, steps);
    for (const step& s : steps) emit(s);
  };
  return all;
}

}  // namespace untax::plan_check
