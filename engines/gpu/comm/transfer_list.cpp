#include "engines/gpu/comm/transfer_list.hpp"

#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::comm {
namespace {

/// What a step does, in numbers that do not depend on how it was written down: lists and programs
/// are the same if these are.
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

bool only_acquires(const step& s) {
  return s.what == action::none && s.acquire.named() && !s.reserve.named() && !s.publish.named() &&
         !s.retire.named();
}

/// The atoms of a worker. What is acquired in a step of its own before a copy belongs to the copy:
/// both wait before anything is done.
std::vector<atom> atoms_of(const std::vector<step>& steps) {
  std::vector<atom> atoms;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    atom here = atom_of(steps[i]);
    if (only_acquires(steps[i]) && i + 1 < steps.size() && steps[i + 1].what == action::copy &&
        !steps[i + 1].acquire.named()) {
      atom next = atom_of(steps[++i]);
      next.acquire = here.acquire;
      here = next;
    }
    if (here == atom{}) continue;  // waits for nothing yet
    atoms.push_back(here);
  }
  return atoms;
}

class lowering {
 public:
  explicit lowering(const sender_program& of) : of_(of) {
    lists_.rank = of.rank;
    lists_.world = of.world;
    lists_.sets = of.sets;
  }

  transfer_lists run() {
    for (worker_ = 0; worker_ < of_.count; ++worker_) {
      const auto steps = steps_of(1);
      if (of_.sets.sets > 1) find_shift(steps, steps_of(2));
      lists_.senders.push_back(list_of(steps));
    }
    const std::string differs = difference(lists_, of_);
    if (!differs.empty())
      throw error(errc::internal,
                  fmt::format("rank {}: a program cannot be lowered: {}", of_.rank, differs));
    return std::move(lists_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw error(errc::internal,
                fmt::format("rank {}: the program of sender {} cannot be lowered: {}", of_.rank,
                            worker_, why));
  }
  [[nodiscard]] std::vector<step> steps_of(std::uint64_t epoch) const {
    std::vector<step> steps;
    of_.steps(worker_, epoch, [&](const step& s) { steps.push_back(s); });
    return steps;
  }
  [[nodiscard]] int hop_of(int peer) const { return (peer - of_.rank + of_.world) % of_.world; }

  void learn(std::int32_t& known, std::int64_t now) const {
    if (known == 0) known = static_cast<std::int32_t>(now);
  }
  void find_shift(const std::vector<step>& one, const std::vector<step>& two) {
    if (one.size() != two.size()) refuse("epochs 1 and 2 have different numbers of steps");
    set_shift& shift = lists_.shift;
    for (std::size_t i = 0; i < one.size(); ++i) {
      const auto rows = [&](const place& x, const place& y) {
        if (x.of == operand::inbox) learn(shift.inbox_rows, y.row - x.row);
        if (x.of == operand::outbox) learn(shift.outbox_rows, y.row - x.row);
      };
      rows(one[i].from, two[i].from);
      rows(one[i].to, two[i].to);
      learn(shift.reserve, two[i].reserve.free - one[i].reserve.free);
      learn(shift.acquire, two[i].acquire.ready - one[i].acquire.ready);
      learn(shift.publish, two[i].publish.ready - one[i].publish.ready);
      learn(shift.retire, two[i].retire.free - one[i].retire.free);
    }
  }

  [[nodiscard]] transfer entry_of(const step& s) {
    if (s.what != action::none && s.what != action::copy) refuse("it computes");
    transfer t;
    int peer = of_.rank;
    if (s.what == action::copy) {
      t.from = s.from.of;
      t.to = s.to.of;
      t.from_row = static_cast<std::int32_t>(s.from.row);
      t.from_col = static_cast<std::int32_t>(s.from.col);
      t.to_row = static_cast<std::int32_t>(s.to.row);
      t.to_col = static_cast<std::int32_t>(s.to.col);
      t.rows = static_cast<std::int32_t>(s.rows);
      t.cols = static_cast<std::int32_t>(s.cols);
      t.fetches = s.from.rank != of_.rank;
      peer = t.fetches ? s.from.rank : s.to.rank;
    } else if (s.reserve.named()) {
      peer = s.reserve.consumer;
    } else if (s.acquire.named()) {
      peer = s.acquire.producer;
    } else if (s.publish.named()) {
      peer = s.publish.consumer;
    } else if (s.retire.named()) {
      peer = s.retire.producer;
    }
    t.first_hop = static_cast<std::int16_t>(hop_of(peer));
    if (s.reserve.named() && s.reserve.free >= 0) {
      const std::uint64_t ahead = s.reserve.use - of_.sets.use_of(1);
      t.credit = static_cast<std::uint8_t>(s.reserve.credit - ahead);
      t.reserve = s.reserve.free - s.reserve.consumer * s.reserve.readers;
      lists_.readers = s.reserve.readers;
    }
    if (s.acquire.named()) t.acquire = s.acquire.ready;
    if (s.publish.named()) t.publish = s.publish.ready;
    if (s.retire.named() && s.retire.free >= 0) t.retire = s.retire.free + s.reader;
    return t;
  }

  [[nodiscard]] std::vector<transfer> list_of(const std::vector<step>& steps) {
    std::vector<transfer> list;
    std::optional<int> acquired;  // for the next copy
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (only_acquires(steps[i]) && i + 1 < steps.size() && steps[i + 1].what == action::copy &&
          !steps[i + 1].acquire.named()) {
        acquired = steps[i].acquire.ready;
        continue;
      }
      transfer t = entry_of(steps[i]);
      if (acquired) t.acquire = *std::exchange(acquired, {});
      const bool nothing =
          t.rows == 0 && t.reserve < 0 && t.acquire < 0 && t.publish < 0 && t.retire < 0;
      if (nothing || (!list.empty() && joins(list.back(), t))) continue;
      list.push_back(t);
    }
    return list;
  }
  /// Adds an entry to the one before, if only the hop differs.
  [[nodiscard]] static bool joins(transfer& before, const transfer& t) {
    transfer expected = before;
    expected.hops = 1;
    expected.acquire = -1;
    expected.first_hop = static_cast<std::int16_t>(before.first_hop + before.hops);
    if (before.rows == 0 || before.fetches || !(expected == t)) return false;
    ++before.hops;
    return true;
  }

  const sender_program& of_;
  transfer_lists lists_;
  int worker_ = 0;
};

/// Adds the hop of an entry to the one before, if it is the same rectangle and the next rank.
bool adds_hop(packed_transfer& before, const packed_transfer& one) {
  packed_transfer next = before;
  next.first_hop = static_cast<std::int16_t>(before.first_hop + before.hops);
  next.hops = 1;
  if (!(one == next)) return false;
  ++before.hops;
  return true;
}

/// Senders take turns, hop by hop: the first entry of each that goes so far, then the second.
void count_before(packed_lists& packed, int world) {
  const std::size_t senders = packed.begins.size() - 1;
  std::vector<std::size_t> next(packed.begins.begin(), packed.begins.end() - 1);
  std::int32_t before = 0;
  for (int hop = 0; hop < world; ++hop) {
    for (bool any = true; any;) {
      any = false;
      for (std::size_t i = 0; i < senders; ++i) {
        if (next[i] == static_cast<std::size_t>(packed.begins[i + 1])) continue;
        packed_transfer& one = packed.entries[next[i]];
        if (one.first_hop > hop) continue;
        one.before = before;
        before += one.hops;
        ++next[i];
        any = true;
      }
    }
  }
}

}  // namespace

std::string difference(const transfer_lists& lists, const sender_program& program) {
  if (lists.senders.size() != static_cast<std::size_t>(program.count))
    return fmt::format("there are {} lists for {} senders", lists.senders.size(), program.count);
  const auto epochs = 2 * static_cast<std::uint64_t>(program.sets.sets);
  const auto atoms = [](const auto& emit_all) {
    std::vector<step> steps;
    emit_all([&](const step& s) { steps.push_back(s); });
    return atoms_of(steps);
  };
  for (int sender = 0; sender < program.count; ++sender) {
    for (std::uint64_t epoch = 1; epoch <= epochs; ++epoch) {
      const auto ours = atoms([&](const untax::program::sink& emit) {
        lists.steps(static_cast<std::size_t>(sender), epoch, emit);
      });
      const auto theirs =
          atoms([&](const untax::program::sink& emit) { program.steps(sender, epoch, emit); });
      if (ours.size() != theirs.size())
        return fmt::format("sender {} has {} steps in epoch {}, its list {}", sender, theirs.size(),
                           epoch, ours.size());
      for (std::size_t i = 0; i < ours.size(); ++i) {
        if (!(ours[i] == theirs[i]))
          return fmt::format("step {} of sender {} in epoch {} is not that of its list", i, sender,
                             epoch);
      }
    }
  }
  return "";
}

transfer_lists lower(const sender_program& program) { return lowering(program).run(); }

void transfer_lists::steps(std::size_t sender, std::uint64_t epoch,
                           const program::sink& emit) const {
  const int set = sets.set_of(epoch);
  const std::uint64_t use = sets.use_of(epoch);
  const auto at = [&](operand of, int at_rank, int row, int col) {
    const int shifted = of == operand::inbox    ? set * shift.inbox_rows
                        : of == operand::outbox ? set * shift.outbox_rows
                                                : 0;
    return place{of, at_rank, row + shifted, col};
  };
  // Rooms of other parts are of no interest to who speaks a verb.
  const auto spoken = [&](int producer, int consumer, int counter) {
    return room{.producer = producer, .consumer = consumer, .number = counter, .ready = counter};
  };
  for (const transfer& t : senders[sender]) {
    for (int i = 0; i < t.hops; ++i) {
      const int peer = (rank + t.first_hop + i) % world;
      step s;
      if (t.rows > 0) {
        s.what = action::copy;
        s.rows = t.rows;
        s.cols = t.cols;
        s.from = at(t.from, t.fetches ? peer : rank, t.from_row, t.from_col);
        s.to = at(t.to, t.fetches ? rank : peer, t.to_row, t.to_col);
      }
      if (t.reserve >= 0) {
        s.reserve = spoken(rank, peer, 0);
        s.reserve.number = t.publish >= 0 ? t.publish + set * shift.publish : 0;
        s.reserve.free = t.reserve + set * shift.reserve + peer * readers;
        s.reserve.readers = readers;
        s.reserve.use = use;
        s.reserve.credit = t.credit;
      }
      if (t.acquire >= 0 && i == 0) {
        const bool own = t.rows > 0 && !t.fetches;
        s.acquire = spoken(own ? rank : peer, rank, t.acquire + set * shift.acquire);
        s.acquire.use = use;
      }
      if (t.publish >= 0) {
        s.publish = spoken(rank, t.fetches ? rank : peer, t.publish + set * shift.publish);
        s.publish.use = use;
      }
      if (t.retire >= 0) {
        s.retire = spoken(peer, rank, 0);
        s.retire.free = t.retire + set * shift.retire;
        s.retire.use = use;
      }
      emit(s);
    }
  }
}

packed_lists pack(const transfer_lists& lists, std::int64_t first_row, std::int64_t first_col,
                  bool together) {
  packed_lists packed;
  for (const auto& list : lists.senders) {
    const std::size_t begin = packed.entries.size();
    packed.begins.push_back(static_cast<std::int32_t>(begin));
    for (const transfer& t : list) {
      if (t.rows == 0) continue;
      packed_transfer one{.row = t.from_row - static_cast<std::int32_t>(first_row),
                          .col = t.from_col - static_cast<std::int32_t>(first_col),
                          .rows = t.rows,
                          .cols = t.cols,
                          .acquire = t.acquire,
                          .publish = t.publish,
                          .first_hop = t.first_hop,
                          .hops = 1};
      for (int hop = 0; hop < t.hops; ++hop, ++one.first_hop) {
        if (!together || packed.entries.size() == begin || !adds_hop(packed.entries.back(), one))
          packed.entries.push_back(one);
      }
    }
    for (std::size_t i = begin; i < packed.entries.size(); ++i) {
      if (packed.entries[i].hops != packed.entries[begin].hops)
        throw error(errc::internal,
                    fmt::format("rank {}: a sender's list goes to {} ranks at a time, and to {}",
                                lists.rank, packed.entries[begin].hops, packed.entries[i].hops));
    }
  }
  packed.begins.push_back(static_cast<std::int32_t>(packed.entries.size()));
  count_before(packed, lists.world);
  return packed;
}

std::size_t transfer_lists::entries() const noexcept {
  std::size_t count = 0;
  for (const auto& list : senders) count += list.size();
  return count;
}

}  // namespace untax::comm
