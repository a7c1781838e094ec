#include "engines/gpu/comm/transfer_list.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::comm {
namespace {

class lowering {
 public:
  lowering(const sender_program& of, std::int64_t first_col, bool together)
      : of_(of), first_col_(first_col), together_(together) {}

  transfer_lists run() {
    std::vector<std::optional<int>> shifts(static_cast<std::size_t>(of_.sets.sets));
    for (sender_ = 0; sender_ < of_.count; ++sender_) {
      const std::vector<transfer> list = list_of(1);
      const auto epochs = 2 * static_cast<std::uint64_t>(of_.sets.sets);
      for (std::uint64_t epoch = 2; epoch <= epochs; ++epoch)
        require_shifted(list, list_of(epoch),
                        shifts[static_cast<std::size_t>(of_.sets.set_of(epoch))]);
      require_equal_hops(list);
      lists_.begins.push_back(static_cast<std::int32_t>(lists_.entries.size()));
      lists_.entries.insert(lists_.entries.end(), list.begin(), list.end());
    }
    lists_.begins.push_back(static_cast<std::int32_t>(lists_.entries.size()));
    count_before();
    return std::move(lists_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw error(errc::internal,
                fmt::format("rank {}: the program of sender {} cannot be lowered: {}", of_.rank,
                            sender_, why));
  }
  [[nodiscard]] int hop_of(int peer) const { return (peer - of_.rank + of_.world) % of_.world; }

  [[nodiscard]] std::vector<transfer> list_of(std::uint64_t epoch) const {
    std::vector<transfer> list;
    int acquired = -1;  // counter for the next copy
    of_.steps(sender_, epoch, [&](const step& s) {
      if (s.acquire.named()) acquired = s.acquire.ready;
      if (s.what == action::none) return;
      if (s.what != action::copy) refuse("it computes");
      if (s.from.rank != of_.rank) refuse("it fetches");
      const transfer t{.row = static_cast<std::int32_t>(s.from.row),
                       .col = static_cast<std::int32_t>(s.from.col - first_col_),
                       .rows = static_cast<std::int32_t>(s.rows),
                       .cols = static_cast<std::int32_t>(s.cols),
                       .acquire = acquired,
                       .publish = s.publish.named() ? s.publish.ready : -1,
                       .first_hop = static_cast<std::int16_t>(hop_of(s.to.rank)),
                       .hops = 1};
      if (list.empty() || !(together_ && adds_hop(list.back(), t))) list.push_back(t);
    });
    return list;
  }
  /// Merges an entry into the one before, if it is the same rectangle for the next hop.
  [[nodiscard]] static bool adds_hop(transfer& before, const transfer& one) {
    transfer next = before;
    next.first_hop = static_cast<std::int16_t>(before.first_hop + before.hops);
    next.hops = 1;
    if (!(one == next)) return false;
    ++before.hops;
    return true;
  }

  /// Requires that another epoch moves the same rectangles, and that all its counters are higher by
  /// `shift`, which is set if it is not known yet.
  void require_shifted(const std::vector<transfer>& list, const std::vector<transfer>& then,
                       std::optional<int>& shift) const {
    if (list.size() != then.size()) refuse("epochs have different numbers of transfers");
    for (std::size_t i = 0; i < list.size(); ++i) {
      transfer expected = list[i];
      if (!shift) shift = then[i].publish - list[i].publish;
      if (expected.publish >= 0) expected.publish += *shift;
      if (!(then[i] == expected)) refuse("epochs differ in more than their set of rooms");
    }
  }
  void require_equal_hops(const std::vector<transfer>& list) const {
    for (const transfer& t : list)
      if (t.hops != list.front().hops)
        refuse(fmt::format("one transfer goes to {} ranks at a time, another to {}",
                           list.front().hops, t.hops));
  }

  /// Sets `before`. Hop by hop, senders alternate: the first entry of each sender, then the second.
  void count_before() {
    const std::size_t senders = lists_.begins.size() - 1;
    std::vector<std::size_t> next(lists_.begins.begin(), lists_.begins.end() - 1);
    std::int32_t before = 0;
    for (int hop = 0; hop < of_.world; ++hop) {
      for (bool any = true; any;) {
        any = false;
        for (std::size_t i = 0; i < senders; ++i) {
          if (next[i] == static_cast<std::size_t>(lists_.begins[i + 1])) continue;
          transfer& one = lists_.entries[next[i]];
          if (one.first_hop > hop) continue;
          one.before = before;
          before += one.hops;
          ++next[i];
          any = true;
        }
      }
    }
  }

  const sender_program& of_;
  std::int64_t first_col_;
  bool together_;
  transfer_lists lists_;
  int sender_ = 0;
};

}  // namespace

transfer_lists lower(const sender_program& program, std::int64_t first_col, bool together) {
  return lowering(program, first_col, together).run();
}

}  // namespace untax::comm
