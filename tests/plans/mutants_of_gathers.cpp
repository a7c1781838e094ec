// Lists, numbers, maps and plans of gathers, changed in one place: see mutants.hpp.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/all_gather_gemm/device_schedule.hpp"
#include "ops/all_gather_gemm/validate.hpp"
#include "tests/plans/mutants.hpp"
#include "tests/plans/planned.hpp"

namespace {

using namespace untax;
using namespace plans_test;

struct gather_subject {
  std::string name;
  std::vector<gather_model> ranks;
};
std::vector<gather_subject> gathers(numbers& number) {
  std::vector<gather_subject> all;
  for (const pattern how : own_patterns) {
    for (const gather_axis gather : {gather_axis::rows, gather_axis::k}) {
      for (const direction move : {direction::push, direction::pull}) {
        const bool pulls = how == pattern::producer_consumer || how == pattern::fused_specialized;
        if (move == direction::pull && !pulls) continue;
        const auto ranks = static_cast<int>(number(2, 3));
        const all_gather_gemm_problem problem{
            .m = number(18, 200), .n = 8 * number(8, 50), .k = 64 * number(2, 8), .gather = gather};
        operator_options options;
        options.how = how;
        options.move = move;
        gather_subject& one = all.emplace_back();
        one.name =
            name_of_case("all_gather_gemm", problem.m, ranks,
                         fmt::format("{}, {}, {}", name_of(how), name_of(gather), name_of(move)));
        for (int rank = 0; rank < ranks; ++rank)
          one.ranks.emplace_back(
              problem, gather_plans(problem, ranks, rank, options, few_multiprocessors).front());
      }
    }
  }
  return all;
}

bool validator_notices(const gather_model& m) {
  return !difference(m.lists, m.plan, m.how).empty() ||
         !faults_of_senders(m.problem, m.plan, m.how, m.lists, m.numbers).empty() ||
         !faults_of_reads(m.problem, m.plan, m.how, m.numbers).empty();
}

TEST(planned_mutants, none_of_lists_of_gathers_survives) {
  tally found;
  for (const unsigned seed : plans_test::seeds()) {
    numbers number(seed);
    for (gather_subject& subject : gathers(number)) {
      ASSERT_FALSE(schedule_notices(subject.ranks)) << subject.name;
      for (const gather_model& m : subject.ranks)
        ASSERT_FALSE(validator_notices(m)) << subject.name;
      gather_model& m = subject.ranks[static_cast<std::size_t>(
          number(0, static_cast<std::int64_t>(subject.ranks.size()) - 1))];
      for (comm::transfer_lists* lists : {&m.lists.senders, &m.lists.last}) {
        each_change(*lists, number, [&](const std::string& what) {
          found.count(
              fmt::format("{}, rank {}: {} (seed {})", subject.name, m.how.rank(), what, seed),
              validator_notices(m), schedule_notices(subject.ranks));
        });
      }
    }
  }
  found.expect_none_left(200);
}

/// A number that kernels go by, and whether it means anything in a plan.
struct number_change {
  const char* name;
  std::function<bool(gather_model&)> make;
};
const std::vector<number_change>& number_changes() {
  const auto pushes = [](const gather_model& m) {
    return !m.how.pulls() && m.plan.streams == 0 && !m.how.shard(m.how.rank()).empty();
  };
  const auto waits = [](const gather_model& m) { return !m.plan.protocol.senders_acquire; };
  static const std::vector<number_change> all = {
      {"first row in inboxes",
       [=](gather_model& m) {
         ++m.numbers.sending.inbox_row;
         return pushes(m);
       }},
      {"first column in inboxes",
       [=](gather_model& m) {
         m.numbers.sending.inbox_column += 8;
         return pushes(m);
       }},
      {"rows of the shard",
       [=](gather_model& m) {
         --m.numbers.sending.rows;
         return pushes(m);
       }},
      {"columns of the shard",
       [=](gather_model& m) {
         m.numbers.sending.columns -= 8;
         return pushes(m);
       }},
      {"rows of a chunk",
       [=](gather_model& m) {
         ++m.numbers.sending.chunk_rows;
         return pushes(m) && m.numbers.sending.row_chunks > 1;
       }},
      {"rows of a set",
       [=](gather_model& m) {
         ++m.numbers.sending.set_rows;
         return pushes(m);
       }},
      {"counter to signal",
       [=](gather_model& m) {
         ++m.numbers.sending.ready;
         return pushes(m);
       }},
      {"counter to signal in the other set",
       [=](gather_model& m) {
         ++m.numbers.sending.ready_set;
         return pushes(m) && m.how.sets().sets == 2;
       }},
      {"counter to reserve",
       [=](gather_model& m) {
         ++m.numbers.sending.free;
         return pushes(m) && m.numbers.sending.counted;
       }},
      {"whether readers are counted",
       [=](gather_model& m) {
         m.numbers.sending.counted = !m.numbers.sending.counted;
         return pushes(m);
       }},
      {"first hop",
       [=](gather_model& m) {
         ++m.numbers.sending.first_hop;
         return pushes(m);
       }},
      {"number of hops",
       [=](gather_model& m) {
         ++m.numbers.sending.hops;
         return pushes(m);
       }},
      {"counter that is awaited",
       [=](gather_model& m) {
         ++m.numbers.arrivals.base;
         return waits(m);
       }},
      {"counters of a set that are awaited",
       [=](gather_model& m) {
         ++m.numbers.arrivals.set_size;
         return waits(m) && m.how.sets().sets == 2;
       }},
      {"chunks of a row that are awaited",
       [=](gather_model& m) {
         ++m.numbers.arrivals.in_row;
         return waits(m) && m.how.by_rows() && m.how.row_chunks(0).count() > 1;
       }},
      {"rows of a chunk that is awaited",
       [=](gather_model& m) {
         m.numbers.arrivals.chunk_rows *= 2;
         return waits(m) && m.how.row_chunks(0).count() > 1;
       }},
      {"counter that a sender awaits",
       [=](gather_model& m) {
         ++m.numbers.receiving.ready;
         return m.plan.protocol.senders_acquire;
       }},
      {"rank that a sender awaits",
       [=](gather_model& m) {
         ++m.numbers.receiving.first_hop;
         return m.plan.protocol.senders_acquire;
       }},
      {"A at another address",
       [=](gather_model& m) {
         auto& map = m.numbers.maps.a.front();
         map.data = static_cast<const std::byte*>(map.data) + map.stride * 2;
         return true;
       }},
      {"rows of A farther apart",
       [=](gather_model& m) {
         m.numbers.maps.a.front().stride += 8;
         return true;
       }},
      {"B at another address",
       [=](gather_model& m) {
         auto& map = m.how.by_rows() ? m.numbers.maps.b : m.numbers.maps.b_or_c.front();
         map.data = static_cast<const std::byte*>(map.data) + 16;
         return true;
       }},
      {"C at another address",
       [=](gather_model& m) {
         auto& map = m.plan.segment_rows > 0 ? m.numbers.maps.b_or_c.front() : m.numbers.maps.c;
         map.data = static_cast<const std::byte*>(map.data) + m.problem.n * 2;
         return true;
       }},
      {"a peer's inbox at another address",
       [=](gather_model& m) {
         if (m.numbers.maps.inbox_tma_tiles.empty()) return false;
         auto& map = m.numbers.maps.inbox_tma_tiles.back().first;
         map.data = static_cast<const std::byte*>(map.data) + 16;
         return true;
       }},
      {"stride of what is moved",
       [=](gather_model& m) {
         m.numbers.moved.inbox_stride += 8;
         return true;
       }},
      {"where the shard lies",
       [=](gather_model& m) {
         m.numbers.segments.inbox_rows[0] += 1;
         return m.how.collected() || m.plan.sources.front() != m.how.rank();
       }},
      {"k-blocks of tiles",
       [=](gather_model& m) {
         m.plan.gemm.schedule.k_blocks -= m.plan.gemm.schedule.k_blocks_per_stage;
         return true;
       }},
      {"tiles along x",
       [=](gather_model& m) {
         --m.plan.gemm.schedule.m_tiles;
         return m.plan.gemm.config.cluster_split_k == 1;
       }},
      {"another tile configuration",
       [=](gather_model& m) {
         m.plan.gemm.config.block_n = m.plan.gemm.config.block_n == 64 ? 128 : 64;
         return m.plan.gemm.config.cluster_split_k == 1;
       }},
      {"other clusters",
       [=](gather_model& m) {
         m.plan.gemm.config.cluster = m.plan.gemm.config.cluster == 1 ? 2 : 1;
         return !m.plan.gemm.config.swap_ab && m.plan.gemm.config.cluster_split_k == 1;
       }},
      {"a sender less",
       [=](gather_model& m) {
         --m.plan.protocol.senders;
         return true;
       }},
  };
  return all;
}

TEST(planned_mutants, none_of_numbers_of_gathers_survives) {
  tally found;
  for (const unsigned seed : plans_test::seeds()) {
    numbers number(seed + 100);
    for (gather_subject& subject : gathers(number)) {
      const auto rank =
          static_cast<std::size_t>(number(0, static_cast<std::int64_t>(subject.ranks.size()) - 1));
      for (const number_change& change : number_changes()) {
        gather_model mutant = subject.ranks[rank];
        if (!change.make(mutant)) continue;
        const bool noticed = validator_notices(mutant);
        const auto others = subject.ranks[(rank + 1) % subject.ranks.size()].plan.agreed();
        found.count(fmt::format("{}, rank {}: {} (seed {})", subject.name, rank, change.name, seed),
                    noticed, false, mutant.plan.agreed() != others);
      }
    }
  }
  found.expect_none_left(200, false);
}

}  // namespace
