// What was planned is changed in one place, and somebody has to notice without a GPU: what holds
// lists against programs, and what kernels are given against lists; the schedule checker, which
// proves all ranks together; or ranks that compare their plans (see agreement.cpp).
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/plan_check/gather.hpp"
#include "ops/plan_check/scatter.hpp"
#include "tests/plans/cases.hpp"

namespace {

using namespace untax;
using namespace plans_test;
using plan_check::gather_model;
using plan_check::scatter_model;

constexpr int few_multiprocessors = 8;

/// A change of one step of a sender, where it changes what that does.
struct step_change {
  const char* name;
  bool (*where)(const std::vector<step>&, std::size_t i);
  void (*make)(std::vector<step>&, std::size_t i, int ranks);
};
const std::vector<step_change>& step_changes() {
  using list = std::vector<step>;
  using at = std::size_t;
  static constexpr auto moves = [](const list& l, at i) { return l[i].what == action::copy; };
  static constexpr auto reserves = [](const list& l, at i) { return l[i].reserve.free >= 0; };
  static constexpr auto acquires = [](const list& l, at i) { return l[i].acquire.named(); };
  static constexpr auto publishes = [](const list& l, at i) { return l[i].publish.named(); };
  static constexpr auto retires = [](const list& l, at i) { return l[i].retire.free >= 0; };
  static constexpr auto acts = [](const list& l, at i) {
    return moves(l, i) || reserves(l, i) || acquires(l, i) || publishes(l, i) || retires(l, i);
  };
  static constexpr auto another_follows = [](const list& l, at i) {
    const auto all = [&](at which) {
      const step& s = l[which];
      return std::tuple(s.from.row, s.from.col, s.from.rank, s.to.rank, s.reserve.free,
                        s.acquire.ready, s.publish.ready, s.publish.consumer, s.retire.free,
                        s.retire.producer);
    };
    return i + 1 < l.size() && acts(l, i) && acts(l, i + 1) && all(i) != all(i + 1);
  };
  static const std::vector<step_change> all = {
      {"a row above to read", moves, [](list& l, at i, int) { --l[i].from.row; }},
      {"a row below to read", moves, [](list& l, at i, int) { ++l[i].from.row; }},
      {"another column to read", moves, [](list& l, at i, int) { l[i].from.col += 8; }},
      {"a row above to write", moves, [](list& l, at i, int) { --l[i].to.row; }},
      {"a row below to write", moves, [](list& l, at i, int) { ++l[i].to.row; }},
      {"another column to write", moves, [](list& l, at i, int) { l[i].to.col += 8; }},
      {"fewer rows", moves, [](list& l, at i, int) { --l[i].rows; }},
      {"more columns", moves, [](list& l, at i, int) { l[i].cols += 8; }},
      {"another rank to write", moves,
       [](list& l, at i, int ranks) { l[i].to.rank = (l[i].to.rank + 1) % ranks; }},
      {"another rank to signal", publishes,
       [](list& l, at i, int ranks) {
         l[i].publish.consumer = (l[i].publish.consumer + 1) % ranks;
       }},
      {"another counter to reserve", reserves, [](list& l, at i, int) { ++l[i].reserve.free; }},
      {"another counter to acquire", acquires, [](list& l, at i, int) { ++l[i].acquire.ready; }},
      {"another counter to publish", publishes, [](list& l, at i, int) { ++l[i].publish.ready; }},
      {"another counter to retire", retires, [](list& l, at i, int) { ++l[i].retire.free; }},
      {"no reserve", reserves, [](list& l, at i, int) { l[i].reserve = {}; }},
      {"no acquire", acquires, [](list& l, at i, int) { l[i].acquire = {}; }},
      {"no publish", publishes, [](list& l, at i, int) { l[i].publish = {}; }},
      {"no retire", retires, [](list& l, at i, int) { l[i].retire = {}; }},
      {"a use too early", reserves, [](list& l, at i, int) { ++l[i].reserve.credit; }},
      {"two in the other order", another_follows,
       [](list& l, at i, int) { std::swap(l[i], l[i + 1]); }},
      {"one left out", acts,
       [](list& l, at i, int) { l.erase(l.begin() + static_cast<std::ptrdiff_t>(i)); }},
      {"one twice", acts, [](list& l, at i, int) { l.push_back(step(l[i])); }},
  };
  return all;
}

/// A change of what a rank has planned, where it means anything.
template <class Model>
struct model_change {
  const char* name;
  bool (*where)(const Model&);
  void (*make)(Model&);
};

template <class Map>
void move_by(Map& map, std::int64_t bytes) {
  map.data = static_cast<const std::byte*>(map.data) + bytes;
}

/// Changes of a plan and of lists, which are the same for all operators.
template <class Model>
void add_plan_changes(std::vector<model_change<Model>>& all) {
  static constexpr auto walks = [](const Model& m) { return !m.lists.entries.empty(); };
  static constexpr auto several_walk = [](const Model& m) {
    return m.lists.entries.size() > 1 && m.lists.begins.size() > 2;
  };
  all.push_back({"row of a transfer", walks, [](Model& m) { ++m.lists.entries.front().row; }});
  all.push_back({"column of a transfer", walks, [](Model& m) { m.lists.entries.back().col += 8; }});
  all.push_back({"one of another sender", several_walk, [](Model& m) { ++m.lists.begins[1]; }});
  all.push_back({"two in the other order", several_walk,
                 [](Model& m) { std::swap(m.lists.entries.front(), m.lists.entries.back()); }});
  all.push_back({"one left out", walks, [](Model& m) {
                   m.lists.entries.erase(m.lists.entries.begin());
                   for (int& begin : m.lists.begins) begin -= begin > 0 ? 1 : 0;
                 }});
  static constexpr auto always = [](const Model&) { return true; };
  static constexpr auto whole_k = [](const Model& m) {
    return m.plan.gemm.config.cluster_split_k == 1;
  };
  static constexpr auto whole_k_of_tall_tiles = [](const Model& m) {
    return m.plan.gemm.config.cluster_split_k == 1 && !m.plan.gemm.config.swap_ab;
  };
  all.push_back({"k-blocks of tiles", always, [](Model& m) {
                   m.plan.gemm.schedule.k_blocks -= m.plan.gemm.schedule.k_blocks_per_stage;
                 }});
  all.push_back({"tiles along M", whole_k, [](Model& m) { --m.plan.gemm.schedule.m_tiles; }});
  all.push_back({"another tile configuration", whole_k, [](Model& m) {
                   m.plan.gemm.config.block_n = m.plan.gemm.config.block_n == 64 ? 128 : 64;
                 }});
  all.push_back({"other clusters", whole_k_of_tall_tiles, [](Model& m) {
                   m.plan.gemm.config.cluster = m.plan.gemm.config.cluster == 1 ? 2 : 1;
                 }});
  all.push_back({"a sender less", always, [](Model& m) { --m.plan.protocol.senders; }});
}

std::vector<model_change<gather_model>> changes_of(const gather_model&) {
  using model = gather_model;
  static constexpr auto always = [](const model&) { return true; };
  static constexpr auto pushes = [](const model& m) {
    return !m.how.pulls() && m.plan.streams == 0 && !m.how.shard(m.how.rank()).empty();
  };
  static constexpr auto walks = [](const model& m) { return !m.lists.entries.empty(); };
  static constexpr auto walks_in_time = [](const model& m) {
    return walks(m) && m.plan.who == gather_senders::epilogue_warps;
  };
  static constexpr auto walks_by_tma = [](const model& m) { return walks(m) && m.plan.tma_tiles; };
  static constexpr auto walks_by_address = [](const model& m) {
    return walks(m) && !m.plan.tma_tiles;
  };
  static constexpr auto pushes_in_two_sets = [](const model& m) {
    return pushes(m) && m.how.sets().sets == 2;
  };
  static constexpr auto reserves = [](const model& m) { return pushes(m) && m.shard.counted; };
  static constexpr auto waits = [](const model& m) { return !m.plan.protocol.senders_acquire; };
  static constexpr auto waits_in_two_sets = [](const model& m) {
    return waits(m) && m.how.sets().sets == 2;
  };
  // Who pulls has the rank's own chunks before those of others, which tell of them, too.
  static constexpr auto waits_for_rows = [](const model& m) {
    return waits(m) && !m.how.pulls() && m.how.row_chunks(0).count() > 1;
  };
  static constexpr auto waits_for_rows_of_ranks = [](const model& m) {
    return waits_for_rows(m) && m.how.by_rows();
  };
  static constexpr auto senders_wait = [](const model& m) {
    return m.plan.protocol.senders_acquire;
  };
  static constexpr auto moves_by_tma = [](const model& m) {
    return !m.maps.inbox_tma_tiles.empty();
  };
  static constexpr auto moves_by_address = [](const model& m) { return !m.plan.tma_tiles; };
  static constexpr auto reads_an_inbox_first = [](const model& m) {
    return m.how.collected() || m.plan.sources.front() != m.how.rank();
  };
  std::vector<model_change<model>> all = {
      {"first row in inboxes", walks_by_address, [](model& m) { ++m.shard.inbox_row; }},
      {"first column in inboxes", walks_by_address, [](model& m) { m.shard.inbox_column += 8; }},
      {"rows of a set", pushes, [](model& m) { ++m.shard.set_rows; }},
      {"bytes of a chunk", walks_by_tma, [](model& m) { m.shard.chunk_bytes += 16; }},
      {"rows of a chunk", walks_by_address, [](model& m) { --m.lists.entries.front().rows; }},
      {"columns of a chunk", walks_by_address, [](model& m) { m.lists.entries.back().cols -= 8; }},
      {"time of a chunk", walks_in_time, [](model& m) { ++m.lists.entries.back().before; }},
      {"first hop of a chunk", walks, [](model& m) { ++m.lists.entries.back().first_hop; }},
      {"a hop less", walks, [](model& m) { --m.lists.entries.back().hops; }},
      {"counter to signal", walks, [](model& m) { ++m.lists.entries.back().publish; }},
      {"counter to signal in the other set", pushes_in_two_sets,
       [](model& m) { ++m.shard.ready_set; }},
      {"counter to reserve", reserves, [](model& m) { ++m.shard.free; }},
      {"whether readers are counted", pushes, [](model& m) { m.shard.counted = !m.shard.counted; }},
      {"counter that is awaited", waits, [](model& m) { ++m.arrivals.base; }},
      {"counters of a set that are awaited", waits_in_two_sets,
       [](model& m) { ++m.arrivals.set_size; }},
      {"chunks of a row that are awaited", waits_for_rows_of_ranks,
       [](model& m) { ++m.arrivals.in_row; }},
      {"rows of a chunk that is awaited", waits_for_rows,
       [](model& m) { m.arrivals.chunk_rows = m.arrivals.shard_rows; }},
      {"counter that a sender awaits", senders_wait, [](model& m) { ++m.receiving.ready; }},
      {"rank that a sender awaits", senders_wait, [](model& m) { ++m.receiving.first_hop; }},
      {"A at another address", always,
       [](model& m) { move_by(m.maps.a.front(), m.maps.a.front().stride * 2); }},
      {"rows of A farther apart", always, [](model& m) { m.maps.a.front().stride += 8; }},
      {"fewer rows of A", always, [](model& m) { m.maps.a.front().rows = 1; }},
      {"B at another address", always,
       [](model& m) { move_by(m.how.by_rows() ? m.maps.b : m.maps.b_or_c.front(), 16); }},
      {"C at another address", always,
       [](model& m) {
         move_by(m.plan.segment_rows > 0 ? m.maps.b_or_c.front() : m.maps.c, m.problem.n * 2);
       }},
      {"a peer's inbox at another address", moves_by_tma,
       [](model& m) { move_by(m.maps.inbox_tma_tiles.back().first, 16); }},
      {"stride of what is moved", moves_by_address, [](model& m) { m.moved.inbox_stride += 8; }},
      {"where the shard lies", reads_an_inbox_first, [](model& m) { ++m.segments.inbox_rows[0]; }},
  };
  add_plan_changes(all);
  return all;
}

std::vector<model_change<scatter_model>> changes_of(const scatter_model&) {
  using model = scatter_model;
  static constexpr auto always = [](const model&) { return true; };
  static constexpr auto walks = [](const model& m) { return !m.lists.entries.empty(); };
  static constexpr auto flags = [](const model& m) {
    return m.plan.way == scatter_way::tile_flags;
  };
  static constexpr auto stores_to_peers = [](const model& m) { return !m.maps.copies.empty(); };
  static constexpr auto copies = [](const model& m) {
    return m.plan.streams > 0 && m.how.senders() > 0;
  };
  std::vector<model_change<model>> all = {
      {"flag of a tile", walks, [](model& m) { ++m.lists.entries.back().acquire; }},
      {"rows of a tile", walks, [](model& m) { m.lists.entries.back().rows = 0; }},
      {"rows of TMA tiles", flags, [](model& m) { ++m.tma_tile.rows; }},
      {"C at another address", always, [](model& m) { move_by(m.maps.row_splits.front().c, 16); }},
      {"a peer's C at another address", stores_to_peers,
       [](model& m) { move_by(m.maps.copies.back(), m.problem.n * 2); }},
      {"A at another address", always, [](model& m) { move_by(m.maps.row_splits.front().a, 16); }},
      {"what a DMA engine copies", copies, [](model& m) { m.moved.c_stride += 8; }},
      {"where peers have C for DMA engines", copies,
       [](model& m) { m.moved.run.between -= m.problem.n * 2; }},
  };
  add_plan_changes(all);
  return all;
}

/// Planned ranks, whose plans are changed one by one.
template <class Model>
struct subject {
  std::string name;
  std::vector<Model> ranks;
};

std::vector<subject<gather_model>> gathers(numbers& number) {
  std::vector<subject<gather_model>> all;
  for (const pattern how : own_patterns) {
    for (const gather_axis gather : {gather_axis::rows, gather_axis::k}) {
      for (const direction move : {direction::push, direction::pull}) {
        const bool pulls = how == pattern::producer_consumer || how == pattern::fused_specialized;
        if (move == direction::pull && !pulls) continue;
        const auto ranks = static_cast<int>(number(2, 3));
        const all_gather_gemm_problem problem{
            .m = number(18, 200), .n = 8 * number(8, 50), .k = 64 * number(2, 8), .gather = gather};
        auto& one = all.emplace_back();
        one.name = fmt::format("all_gather_gemm, m {}, {} ranks, {}, {}, {}", problem.m, ranks,
                               name_of(how), name_of(gather), name_of(move));
        for (int rank = 0; rank < ranks; ++rank)
          one.ranks.emplace_back(
              problem,
              gather_plans(problem, ranks, rank, {.how = how, .move = move}, few_multiprocessors)
                  .front());
      }
    }
  }
  return all;
}

std::vector<subject<scatter_model>> scatters(numbers& number) {
  std::vector<subject<scatter_model>> all;
  for (int i = 0; i < 12; ++i) {
    const pattern how = own_patterns[i % 6];
    const auto ranks = static_cast<int>(number(2, 3));
    const gemm_all_scatter_problem problem{number(18, 600), 8 * number(8, 80), 64 * number(2, 8)};
    auto& one = all.emplace_back();
    one.name = fmt::format("gemm_all_scatter, m {}, {} ranks, {}", problem.m, ranks, name_of(how));
    for (int rank = 0; rank < ranks; ++rank)
      one.ranks.emplace_back(
          problem, scatter_plans(problem, ranks, rank, {.how = how}, few_multiprocessors).front());
  }
  return all;
}

/// How many mutants there were, how many the schedule checker noticed, and which nobody did.
struct tally {
  int all = 0;
  int by_schedule = 0;
  std::string survivors;
};

template <class Model>
bool is_right(const std::vector<Model>& ranks) {
  device_findings found;
  plan_check::prove(ranks, found);
  return found.faults.empty();
}

/// Whether rank `at`, whose plan has been changed, is noticed.
template <class Model>
void expect_noticed(const subject<Model>& one, std::size_t at, const std::string& change,
                    tally& found) {
  ++found.all;
  const bool by_schedule = !is_right(one.ranks);
  found.by_schedule += by_schedule ? 1 : 0;
  const Model& m = one.ranks[at];
  const std::size_t other = (at + 1) % one.ranks.size();
  if (by_schedule || !m.faults().empty() || m.plan.agreed() != one.ranks[other].plan.agreed())
    return;
  found.survivors += fmt::format("\n  {}, rank {}: {}: {}", one.name, at, change, m.plan.text());
}

/// Each change of one step of a sender that can be made, one at a time.
template <class Model>
void change_steps(subject<Model>& one, std::size_t at, numbers& number, tally& found) {
  Model& m = one.ranks[at];
  const comm::sender_program sends = m.does();
  if (sends.count == 0) return;
  for (const step_change& change : step_changes()) {
    for (int attempt = 0; attempt < 4; ++attempt) {
      const auto sender = static_cast<int>(number.below(static_cast<std::size_t>(sends.count)));
      std::vector<step> steps;
      sends.steps(sender, 1, [&](const step& s) { steps.push_back(s); });
      if (steps.empty()) continue;
      const std::size_t i = number.below(steps.size());
      if (!change.where(steps, i)) continue;
      m.change = [&](int who, std::vector<step>& of_run) {
        if (who == sender) change.make(of_run, i, sends.world);
      };
      expect_noticed(one, at, fmt::format("{}, step {} of sender {}", change.name, i, sender),
                     found);
      m.change = nullptr;
      break;
    }
  }
}

template <class Model>
void expect_none_survives(const std::function<std::vector<subject<Model>>(numbers&)>& subjects) {
  tally found;
  for (const unsigned seed : seeds()) {
    numbers number(seed);
    for (subject<Model>& one : subjects(number)) {
      one.name += fmt::format(" (seed {})", seed);
      ASSERT_TRUE(is_right(one.ranks)) << one.name;
      for (const Model& m : one.ranks)
        ASSERT_TRUE(m.faults().empty()) << one.name << ": " << m.faults().front();
      const std::size_t at = number.below(one.ranks.size());
      change_steps(one, at, number, found);
      const Model before = one.ranks[at];
      for (const auto& change : changes_of(before)) {
        if (!change.where(before)) continue;
        change.make(one.ranks[at]);
        expect_noticed(one, at, change.name, found);
        one.ranks[at] = before;
      }
    }
  }
  EXPECT_EQ(found.survivors, "") << "of " << found.all;
  EXPECT_GT(found.all, 400);
  EXPECT_GT(found.by_schedule, found.all / 2) << "the schedule checker alone sees most of them";
}

TEST(planned_mutants, none_of_gathers_survives) { expect_none_survives<gather_model>(gathers); }
TEST(planned_mutants, none_of_scatters_survives) { expect_none_survives<scatter_model>(scatters); }

}  // namespace
