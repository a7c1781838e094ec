// Operators with a capacity: runs of different numbers of rows, one after the other.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <untax/tile/row_sequence.hpp>

#include "engines/schedule/check.hpp"
#include "engines/schedule/walk.hpp"
#include "ops/collectives_common/registry.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/row_table.hpp"

namespace untax::test {
namespace {

/// A program as the protocol that it was made of.
struct protocol_of {
  untax::program made;

  [[nodiscard]] int rank() const { return made.rank(); }
  [[nodiscard]] int world() const { return made.world(); }
  [[nodiscard]] int counters() const { return made.counters(); }
  [[nodiscard]] int kernels() const { return made.kernels(); }
  [[nodiscard]] kernel kernel_at(int i) const { return made.kernel_at(i); }
  [[nodiscard]] extent inbox() const { return made.inbox(); }
  [[nodiscard]] extent outbox() const { return made.outbox(); }
  [[nodiscard]] extent tile_extent() const { return made.tile_extent(); }
  template <class Emit>
  void program(int kernel_index, int worker, std::uint64_t epoch, Emit&& emit) const {
    made.steps(kernel_index, worker, epoch, emit);
  }
};

constexpr std::int64_t capacity = 6;
constexpr std::uint64_t most_uses = 64;

/// What a rank does with so many rows, and what of the caller's matrices it is about.
struct subject {
  std::string name;
  int world = 1;
  std::function<untax::program(int rank, std::int64_t rows)> program_of;
  std::function<schedule::operand_extents(int rank, std::int64_t rows)> operands_of;
};

std::vector<schedule::rank_plan> plans_of(const subject& s, const std::vector<std::int64_t>& rows) {
  std::vector<schedule::rank_plan> plans;
  for (int rank = 0; rank < s.world; ++rank) {
    const row_program programs(row_ends(capacity), most_uses, [&](std::int64_t m, auto&& use) {
      use(protocol_of{s.program_of(rank, m)});
    });
    schedule::operand_extents operands;
    const auto grow = [](extent& all, const extent& one) {
      all = {std::max(all.rows, one.rows), std::max(all.cols, one.cols)};
    };
    for (std::int64_t m = 1; m <= capacity; ++m) {
      const auto of = s.operands_of(rank, m);
      grow(operands.a, of.a);
      grow(operands.b, of.b);
      grow(operands.c, of.c);
    }
    std::vector<extent> results;
    for (const std::int64_t m : rows)
      results.push_back(m == 0 ? extent{} : s.operands_of(rank, m).c);
    plans.emplace_back(untax::program(row_sequence(programs, rows)), operands, rows.size(),
                       results);
  }
  return plans;
}

/// Each number of rows before and after each other one, in the same set and in the other.
void each_sequence(const std::function<void(const std::vector<std::int64_t>&)>& visit) {
  for (std::int64_t one = 0; one <= capacity; ++one) {
    for (std::int64_t other = 0; other <= capacity; ++other) {
      visit({one, other, one, one, other, other, one});
    }
  }
}

std::vector<subject> gemms(int world) {
  std::vector<subject> all;
  for (const operator_entry& entry : operators()) {
    for (const pattern how : host_patterns) {
      if (how == pattern::automatic) continue;
      for (const int way : {0, 1, 2}) {
        const auto gather = way == 1 ? gather_axis::k : gather_axis::rows;
        const auto move = way == 2 ? direction::pull : direction::push;
        if (way > 0 && !entry.gathers && !entry.phases) continue;
        if (way == 2 && !entry.gathers) continue;
        const auto problem = [gather](std::int64_t rows) {
          return gemm_problem{.m = rows, .n = 16, .k = 16, .gather = gather};
        };
        // Few rows are cut in another way than many.
        const auto plan = [=, &entry](int rank, std::int64_t rows) {
          return protocol_plan{.world = world,
                               .rank = rank,
                               .how = how,
                               .move = move,
                               .workers = rows > 3 ? 2 : 1,
                               .senders = rows > 3 ? 1 : 2,
                               .phases = entry.phases ? 1 + (way == 1   ? 1
                                                             : rows > 2 ? 1
                                                                        : 0)
                                                      : 1,
                               .tile_m = rows > 3 ? 2 : 1,
                               .tile_n = rows > 3 ? 4 : 8,
                               .panel_k = rows > 3 ? 8 : 16,
                               .sets = 1};
        };
        all.push_back({fmt::format("{} {}, {} {}, {} ranks", entry.name, name_of(how),
                                   name_of(gather), name_of(move), world),
                       world,
                       [=, &entry](int rank, std::int64_t rows) {
                         return entry.protocol(problem(rows), plan(rank, rows));
                       },
                       [=, &entry](int rank, std::int64_t rows) -> schedule::operand_extents {
                         const gemm_share share = entry.share(problem(rows), world, rank);
                         return {{share.a_rows.size, share.a_cols.size},
                                 {share.b_rows.size, share.b_cols.size},
                                 {share.c_rows.size, share.c_cols.size}};
                       }});
      }
    }
  }
  return all;
}

std::vector<subject> moves(int world) {
  std::vector<subject> all;
  for (const collective_entry& entry : collectives()) {
    for (const pattern how : collective_patterns) {
      for (const bool direct : {false, true}) {
        if (direct && how != pattern::fused_sequential) continue;
        const auto problem = [](std::int64_t count) { return collective_problem{.count = count}; };
        const auto program_of = [=, &entry](int rank, std::int64_t count) {
          collective_options options;
          options.how = how;
          options.direct = direct;
          options.workers = count > 3 ? 2 : 1;
          options.chunk_bytes = count > 3 ? 8 : 4;
          options.depth = count > 4 ? 1 : 2;
          if (entry.has_phases && world > 1)
            options.phases = direct && entry.combines ? 2 : count > 2 ? 2 : 1;
          return entry.program_of(problem(count), entry.plan(problem(count), world, rank, options));
        };
        all.push_back({fmt::format("{} {}{}, {} ranks", entry.name, name_of(how),
                                   direct ? ", direct" : "", world),
                       world, program_of,
                       [=, &entry](int rank, std::int64_t count) -> schedule::operand_extents {
                         return {{1, entry.in_count(problem(count), world, rank)},
                                 {0, 0},
                                 {1, entry.out_count(problem(count), world, rank)}};
                       }});
      }
    }
  }
  return all;
}

std::vector<subject> subjects(int world) {
  auto all = gemms(world);
  for (subject& s : moves(world)) all.push_back(std::move(s));
  return all;
}

TEST(schedules_of_rows, are_right_whatever_run_comes_after_which) {
  int proved = 0;
  for (int world = 1; world <= 4; ++world) {
    for (const subject& s : subjects(world)) {
      each_sequence([&](const std::vector<std::int64_t>& rows) {
        // All pairs where ranks are few; elsewhere some.
        if (++proved % (world < 3 ? 1 : 5) != 0) return;
        const auto report = schedule::check_schedule(plans_of(s, rows));
        ASSERT_TRUE(report.ok()) << s.name << ", rows " << fmt::format("{}", fmt::join(rows, ", "))
                                 << ": " << report.problems.front();
      });
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_GT(proved, 1000);
}

/// What may go wrong with sets and counters; false: nothing of it in this step.
struct mistake {
  const char* name;
  std::function<bool(step&, std::uint64_t epoch, int world, std::int64_t inbox_rows)> make;
  /// Parts of the names of those that it does not harm.
  std::vector<std::string> harmless = {};
};

const std::vector<mistake>& mistakes() {
  static const std::vector<mistake> all = {
      {"nobody waits for the roll call",
       [](step& s, std::uint64_t, int world, std::int64_t) {
         if (!s.acquire.named() || s.acquire.ready >= run_sets * world) return false;
         s.acquire = {};
         return true;
       },
       // Nothing but flags, of which each rank sends one that others wait for.
       {"broadcast fused_sequential, direct"}},
      {"all runs are in one set of memory",
       [](step& s, std::uint64_t, int, std::int64_t inbox_rows) {
         bool changed = false;
         for (place step::*at : {&step::from, &step::to}) {
           place& p = s.*at;
           if (p.of != operand::inbox || p.row < inbox_rows / run_sets) continue;
           p.row -= inbox_rows / run_sets;
           changed = true;
         }
         return changed;
       },
       // A rank fills its own inbox; and a sum that is passed on has waited for all who read the
       // inboxes that it was made of.
       {"rows pull", "gemm_all_reduce bulk_library, k", "gemm_all_reduce bulk_synchronous, k",
        "gemm_all_reduce producer_consumer, k", "gemm_all_reduce fused_sequential, k",
        "gemm_all_reduce fused_specialized, k"}},
      {"counters begin anew in each run",
       [](step& s, std::uint64_t epoch, int world, std::int64_t) {
         const std::uint64_t used = (row_run{epoch, 0}.turn() - 1) * most_uses;
         bool changed = false;
         for (room step::*verb : {&step::reserve, &step::acquire, &step::publish, &step::retire}) {
           room& r = s.*verb;
           if (!r.named() || r.ready < run_sets * world || used == 0) continue;
           r.use -= used;
           changed = true;
         }
         return changed;
       }},
  };
  return all;
}

// Each mistake is found for every way of moving data that it harms, by some pair of numbers.
TEST(schedules_of_rows, with_a_mistake_are_wrong) {
  for (const mistake& m : mistakes()) {
    for (const subject& s : subjects(2)) {
      int changed = 0;
      int found = 0;
      each_sequence([&](const std::vector<std::int64_t>& rows) {
        if (found > 0) return;
        auto plans = plans_of(s, rows);
        for (schedule::rank_plan& plan : plans) {
          const std::int64_t inbox_rows = plan.extent_of(operand::inbox).rows;
          for (std::uint64_t epoch = 1; epoch <= plan.epochs(); ++epoch) {
            for (const auto& stage : plan.stages()) {
              for (const schedule::worker_name who : stage) {
                for (step& it : plan.steps(who, epoch))
                  changed += m.make(it, epoch, plan.world(), inbox_rows) ? 1 : 0;
              }
            }
          }
        }
        found += schedule::check_schedule(plans).ok() ? 0 : 1;
      });
      const bool harmed = std::none_of(
          m.harmless.begin(), m.harmless.end(),
          [&](const std::string& part) { return s.name.find(part) != std::string::npos; });
      if (changed > 0) {
        EXPECT_EQ(found, harmed ? 1 : 0) << m.name << ": " << s.name;
      }
    }
  }
}

}  // namespace
}  // namespace untax::test
