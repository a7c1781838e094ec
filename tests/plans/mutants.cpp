// Mutants of plans, changed in one place. Each has to be caught without a GPU: by the comparison of
// lists with programs, or of kernel arguments with lists; by the schedule checker, which proves all
// ranks together; or by ranks that compare their plans (see agreement.cpp).
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/all_gather_gemm/device_schedule.hpp"
#include "ops/gemm_all_scatter/device_schedule.hpp"
#include "tests/plans/cases.hpp"

namespace {

using namespace untax;
using namespace plans_test;
using plan_check::gather_model;
using plan_check::scatter_model;

constexpr int few_multiprocessors = 8;

using step_list = std::vector<step>;

/// Calls `change(name, make)` for changes of step i of a sender, where they change what that does.
template <class Change>
void each_step_change(const step_list& steps, std::size_t i, int ranks, const Change& change) {
  const auto change_step = [&](const std::string& name, const auto& make) {
    change(name, [=](step_list& l) { make(l[i]); });
  };
  const step& s = steps[i];
  if (s.what == action::copy) {
    change_step("a row above to read", [](step& changed_step) { --changed_step.from.row; });
    change_step("a row below to read", [](step& changed_step) { ++changed_step.from.row; });
    change_step("another column to read", [](step& changed_step) { changed_step.from.col += 8; });
    change_step("a row above to write", [](step& changed_step) { --changed_step.to.row; });
    change_step("a row below to write", [](step& changed_step) { ++changed_step.to.row; });
    change_step("another column to write", [](step& changed_step) { changed_step.to.col += 8; });
    change_step("fewer rows", [](step& changed_step) { --changed_step.rows; });
    change_step("more columns", [](step& changed_step) { changed_step.cols += 8; });
    change_step("another rank to write", [=](step& changed_step) {
      changed_step.to.rank = (changed_step.to.rank + 1) % ranks;
    });
  }
  const auto change_verb = [&](const char* name, room step::*verb, int room::*counter) {
    if ((s.*verb).*counter < 0) return;
    change_step(fmt::format("another counter to {}", name),
                [=](step& changed_step) { ++((changed_step.*verb).*counter); });
    change_step(fmt::format("no {}", name), [=](step& changed_step) { changed_step.*verb = {}; });
  };
  change_verb("reserve", &step::reserve, &room::free);
  change_verb("acquire", &step::acquire, &room::ready);
  change_verb("publish", &step::publish, &room::ready);
  change_verb("retire", &step::retire, &room::free);
  if (s.reserve.free >= 0)
    change_step("a use too early", [](step& changed_step) { ++changed_step.reserve.credit; });
  if (s.publish.named())
    change_step("another rank to signal", [=](step& changed_step) {
      changed_step.publish.consumer = (changed_step.publish.consumer + 1) % ranks;
    });
  const auto what_it_does = [](const step& changed_step) {
    return std::tuple(changed_step.from.row, changed_step.from.col, changed_step.from.rank,
                      changed_step.to.rank, changed_step.reserve.free, changed_step.acquire.ready,
                      changed_step.publish.ready, changed_step.publish.consumer,
                      changed_step.retire.free, changed_step.retire.producer);
  };
  if (what_it_does(s) == what_it_does({})) return;
  change("one left out",
         [=](step_list& l) { l.erase(l.begin() + static_cast<std::ptrdiff_t>(i)); });
  change("one twice", [=](step_list& l) { l.push_back(step(l[i])); });
  const step next = i + 1 < steps.size() ? steps[i + 1] : step{};
  if (what_it_does(next) != what_it_does({}) && what_it_does(next) != what_it_does(s))
    change("two in the other order", [=](step_list& l) { std::swap(l[i], l[i + 1]); });
}

template <class Map>
void move_by(Map& map, std::int64_t bytes) {
  map.data = static_cast<const std::byte*>(map.data) + bytes;
}

/// Calls `change(name, make)` for changes of a plan and of lists, which are the same for all
/// operators, where they mean anything.
template <class Model, class Change>
void each_plan_change(const Model& m, const Change& change) {
  if (!m.lists.entries.empty()) {
    change("row of a transfer", [](Model& p) { ++p.lists.entries.front().row; });
    change("column of a transfer", [](Model& p) { p.lists.entries.back().col += 8; });
    change("one left out", [](Model& p) {
      p.lists.entries.erase(p.lists.entries.begin());
      for (int& begin : p.lists.begins) begin -= begin > 0 ? 1 : 0;
    });
  }
  if (m.lists.entries.size() > 1 && m.lists.begins.size() > 2) {
    change("one of another sender", [](Model& p) { ++p.lists.begins[1]; });
    change("two in the other order",
           [](Model& p) { std::swap(p.lists.entries.front(), p.lists.entries.back()); });
  }
  change("k-blocks of tiles", [](Model& p) {
    p.plan.gemm.schedule.k_blocks -= p.plan.gemm.schedule.k_blocks_per_stage;
  });
  const gpu::tile_config& c = m.plan.gemm.config;
  if (c.cluster_split_k == 1) {
    change("tiles along M", [](Model& p) { --p.plan.gemm.schedule.m_tiles; });
    change("another tile configuration", [](Model& p) {
      p.plan.gemm.config.block_n = p.plan.gemm.config.block_n == 64 ? 128 : 64;
    });
    if (!c.swap_ab)
      change("other clusters", [](Model& p) {
        p.plan.gemm.config.cluster = p.plan.gemm.config.cluster == 1 ? 2 : 1;
      });
  }
  change("a sender less", [](Model& p) { --p.plan.protocol.senders; });
}

template <class Change>
void each_change(const gather_model& m, const Change& change) {
  using model = gather_model;
  const bool two_sets = m.how.sets().sets == 2;
  if (!m.lists.entries.empty()) {
    change("first hop of a chunk", [](model& p) { ++p.lists.entries.back().first_hop; });
    change("a hop less", [](model& p) { --p.lists.entries.back().hops; });
    change("counter to signal", [](model& p) { ++p.lists.entries.back().publish; });
    if (m.plan.who == gather_senders::epilogue_warps)
      change("time of a chunk", [](model& p) { ++p.lists.entries.back().before; });
    if (m.plan.tma_tiles) {
      change("bytes of a chunk", [](model& p) { p.shard.chunk_bytes += 16; });
    } else {
      change("first row in inboxes", [](model& p) { ++p.shard.inbox_row; });
      change("first column in inboxes", [](model& p) { p.shard.inbox_column += 8; });
      change("rows of a chunk", [](model& p) { --p.lists.entries.front().rows; });
      change("columns of a chunk", [](model& p) { p.lists.entries.back().cols -= 8; });
    }
  }
  if (!m.how.pulls() && m.plan.streams == 0 && !m.how.shard(m.how.rank()).empty()) {
    change("rows of a set", [](model& p) { ++p.shard.set_rows; });
    change("whether readers are counted", [](model& p) { p.shard.counted = !p.shard.counted; });
    if (two_sets)
      change("counter to signal in the other set", [](model& p) { ++p.shard.ready_set; });
    if (m.shard.counted) change("counter to reserve", [](model& p) { ++p.shard.free; });
  }
  if (m.plan.protocol.senders_acquire) {
    change("counter that a sender awaits", [](model& p) { ++p.receiving.ready; });
    change("rank that a sender awaits", [](model& p) { ++p.receiving.first_hop; });
  } else {
    change("counter that is awaited", [](model& p) { ++p.arrivals.base; });
    if (two_sets)
      change("counters of a set that are awaited", [](model& p) { ++p.arrivals.set_size; });
    // With pull the rank's own chunks come before those of peers, which reveal this change, too.
    if (!m.how.pulls() && m.how.row_chunks(0).count() > 1) {
      change("rows of a chunk that is awaited",
             [](model& p) { p.arrivals.chunk_rows = p.arrivals.shard_rows; });
      if (m.how.by_rows())
        change("chunks of a row that are awaited", [](model& p) { ++p.arrivals.in_row; });
    }
  }
  change("A at another address",
         [](model& p) { move_by(p.maps.a.front(), p.maps.a.front().stride * 2); });
  change("rows of A farther apart", [](model& p) { p.maps.a.front().stride += 8; });
  change("fewer rows of A", [](model& p) { p.maps.a.front().rows = 1; });
  change("B at another address",
         [](model& p) { move_by(p.how.by_rows() ? p.maps.b : p.maps.b_or_c.front(), 16); });
  change("C at another address", [](model& p) {
    move_by(p.plan.segment_rows > 0 ? p.maps.b_or_c.front() : p.maps.c, p.problem.n * 2);
  });
  if (!m.maps.inbox_tma_tiles.empty())
    change("a peer's inbox at another address",
           [](model& p) { move_by(p.maps.inbox_tma_tiles.back().first, 16); });
  if (!m.plan.tma_tiles)
    change("stride of what is moved", [](model& p) { p.moved.inbox_stride += 8; });
  if (m.how.collected() || m.plan.sources.front() != m.how.rank())
    change("where the shard lies", [](model& p) { ++p.segments.inbox_rows[0]; });
}

template <class Change>
void each_change(const scatter_model& m, const Change& change) {
  using model = scatter_model;
  if (!m.lists.entries.empty()) {
    change("flag of a tile", [](model& p) { ++p.lists.entries.back().acquire; });
    change("rows of a tile", [](model& p) { p.lists.entries.back().rows = 0; });
  }
  if (m.plan.way == scatter_way::tile_flags)
    change("rows of TMA tiles", [](model& p) { ++p.tma_tile.rows; });
  change("C at another address", [](model& p) { move_by(p.maps.row_splits.front().c, 16); });
  change("A at another address", [](model& p) { move_by(p.maps.row_splits.front().a, 16); });
  if (!m.maps.copies.empty())
    change("a peer's C at another address",
           [](model& p) { move_by(p.maps.copies.back(), p.problem.n * 2); });
  if (m.plan.streams > 0 && m.how.senders() > 0) {
    change("what a DMA engine copies", [](model& p) { p.moved.c_stride += 8; });
    change("where peers have C for DMA engines",
           [](model& p) { p.moved.run.between -= p.problem.n * 2; });
  }
}

/// Planned ranks, whose plans are changed one by one.
template <class Model>
struct subject {
  std::string name;
  std::vector<Model> ranks;

  template <class Problem>
  explicit subject(asked<Problem> what) : name(what.text()) {
    for (what.rank = 0; what.rank < what.world; ++what.rank)
      ranks.emplace_back(what.problem, what.plans().front());
  }
};

std::vector<subject<gather_model>> some_gathers(numbers& number) {
  std::vector<subject<gather_model>> all;
  for (const pattern how : own_patterns) {
    for (const gather_axis gather : {gather_axis::rows, gather_axis::k}) {
      for (const direction move : {direction::push, direction::pull}) {
        const bool pulls = how == pattern::producer_consumer || how == pattern::fused_specialized;
        if (move == direction::pull && !pulls) continue;
        const int ranks = number.count(2, 3);
        const all_gather_gemm_problem problem{
            .m = number(18, 200), .n = 8 * number(8, 50), .k = 64 * number(2, 8), .gather = gather};
        all.emplace_back(
            asked_gather{problem, ranks, {.how = how, .move = move}, few_multiprocessors});
      }
    }
  }
  return all;
}

std::vector<subject<scatter_model>> some_scatters(numbers& number) {
  std::vector<subject<scatter_model>> all;
  for (int i = 0; i < 12; ++i) {
    const int ranks = number.count(2, 3);
    const gemm_all_scatter_problem problem{number(18, 600), 8 * number(8, 80), 64 * number(2, 8)};
    all.emplace_back(
        asked_scatter{problem, ranks, {.how = own_patterns[i % 6]}, few_multiprocessors});
  }
  return all;
}

/// How many mutants there were, and how many the schedule checker noticed.
struct tally {
  int all = 0;
  int by_schedule = 0;
};

template <class Model>
std::vector<std::string> faults_of(const std::vector<Model>& ranks) {
  return plan_check::check(static_cast<int>(ranks.size()),
                           [&](int rank) { return ranks[static_cast<std::size_t>(rank)]; })
      .faults;
}

/// Rank `at`, whose plan has been changed.
template <class Model>
void expect_noticed(const subject<Model>& runs_of_subject, std::size_t at,
                    const std::string& change, tally& noticed) {
  ++noticed.all;
  device_findings by_schedule;
  plan_check::prove(runs_of_subject.ranks, by_schedule);
  if (!by_schedule.faults.empty()) {
    ++noticed.by_schedule;
  } else if (faults_of(runs_of_subject.ranks).empty()) {
    ADD_FAILURE() << "survives: " << runs_of_subject.name << ", rank " << at << ": " << change
                  << ": " << runs_of_subject.ranks[at].plan.text();
  }
}

/// Each change of one step of a sender that can be made of a few steps, one at a time.
template <class Model>
void change_steps(subject<Model>& runs_of_subject, std::size_t at, numbers& number,
                  tally& noticed) {
  Model& m = runs_of_subject.ranks[at];
  const comm::sender_program sends = m.does();
  std::set<std::string> names;
  for (int attempt = 0; attempt < 8 && sends.count > 0; ++attempt) {
    const int sender = number.count(0, sends.count - 1);
    const step_list steps = plan_check::steps_of(sends, sender, 1);
    if (steps.empty()) continue;
    const std::size_t i = number.below(steps.size());
    each_step_change(steps, i, sends.world, [&](const std::string& name, const auto& make) {
      if (!names.insert(name).second) return;
      m.change = [&](int who, step_list& of_run) {
        if (who == sender) make(of_run);
      };
      expect_noticed(runs_of_subject, at, fmt::format("{}, step {} of sender {}", name, i, sender),
                     noticed);
      m.change = nullptr;
    });
  }
}

/// `subjects(numbers)` makes some.
template <class Subjects>
void expect_none_survives(const Subjects& subjects) {
  tally noticed;
  each_round(1, [&](numbers& number) {
    for (auto& subject : subjects(number)) {
      ASSERT_EQ(faults_of(subject.ranks), std::vector<std::string>()) << subject.name;
      const std::size_t at = number.below(subject.ranks.size());
      change_steps(subject, at, number, noticed);
      const auto before = subject.ranks[at];
      const auto change = [&](const char* name, const auto& make) {
        make(subject.ranks[at]);
        expect_noticed(subject, at, name, noticed);
        subject.ranks[at] = before;
      };
      each_change(before, change);
      each_plan_change(before, change);
    }
  });
  fmt::print("{} mutants, {} found by the schedule checker\n", noticed.all, noticed.by_schedule);
  EXPECT_GT(noticed.all, 400);
  EXPECT_GT(noticed.by_schedule, noticed.all / 2) << "the schedule checker alone sees most of them";
}

TEST(planned_mutants, none_of_gathers_survives) { expect_none_survives(some_gathers); }
TEST(planned_mutants, none_of_scatters_survives) { expect_none_survives(some_scatters); }

}  // namespace
