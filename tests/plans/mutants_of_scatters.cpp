// Lists, numbers, maps and plans of scatters, changed in one place: see mutants.hpp.
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/gemm_all_scatter/lowered.hpp"
#include "tests/plans/mutants.hpp"
#include "tests/plans/planned.hpp"

namespace {

using namespace untax;
using namespace plans_test;

struct scatter_subject {
  std::string name;
  std::vector<scatter_model> ranks;
};
std::vector<scatter_subject> scatters(numbers& number) {
  std::vector<scatter_subject> all;
  for (const pattern how : own_patterns) {
    for (int i = 0; i < 2; ++i) {
      const auto ranks = static_cast<int>(number(2, 3));
      const gemm_all_scatter_problem problem{number(18, 600), 8 * number(8, 80), 64 * number(2, 8)};
      operator_options options;
      options.how = how;
      scatter_subject& one = all.emplace_back();
      one.name = name_of_case("gemm_all_scatter", problem.m, ranks, std::string(name_of(how)));
      for (int rank = 0; rank < ranks; ++rank)
        one.ranks.emplace_back(
            problem, scatter_plans(problem, ranks, rank, options, few_multiprocessors).front());
    }
  }
  return all;
}

bool validator_notices(const scatter_model& m) {
  return !difference(m.lists, m.plan, m.how).empty() ||
         !faults_of(m.problem, m.plan, m.how, m.lists, m.numbers).empty();
}

TEST(planned_mutants, none_of_scatters_survives) {
  tally found;
  const std::vector<std::pair<const char*, std::function<bool(scatter_model&)>>> changes = {
      {"flag of a tile",
       [](scatter_model& m) {
         ++m.numbers.sent.flags;
         return m.plan.way == scatter_way::tile_flags;
       }},
      {"rows of tiles",
       [](scatter_model& m) {
         ++m.numbers.sent.tile_rows;
         return m.plan.way == scatter_way::tile_flags;
       }},
      {"columns of C",
       [](scatter_model& m) {
         m.numbers.sent.columns -= 8;
         return m.plan.way == scatter_way::tile_flags;
       }},
      {"rows of TMA tiles",
       [](scatter_model& m) {
         ++m.numbers.sent.tma_tile_rows;
         return m.plan.way == scatter_way::tile_flags;
       }},
      {"C at another address",
       [](scatter_model& m) {
         auto& map = m.numbers.maps.row_splits.front().c;
         map.data = static_cast<const std::byte*>(map.data) + 16;
         return true;
       }},
      {"a peer's C at another address",
       [](scatter_model& m) {
         if (m.numbers.maps.copies.size() < 2) return false;
         auto& map = m.numbers.maps.copies.back();
         map.data = static_cast<const std::byte*>(map.data) + m.problem.n * 2;
         return true;
       }},
      {"A at another address",
       [](scatter_model& m) {
         auto& map = m.numbers.maps.row_splits.front().a;
         map.data = static_cast<const std::byte*>(map.data) + 16;
         return true;
       }},
      {"what a DMA engine copies",
       [](scatter_model& m) {
         if (m.numbers.copies.empty()) return false;
         m.numbers.copies.back().bytes -= 16;
         return true;
       }},
      {"k-blocks of tiles",
       [](scatter_model& m) {
         m.plan.gemm.schedule.k_blocks -= m.plan.gemm.schedule.k_blocks_per_stage;
         return true;
       }},
      {"another tile configuration",
       [](scatter_model& m) {
         m.plan.gemm.config.block_n = m.plan.gemm.config.block_n == 64 ? 128 : 64;
         return true;
       }},
      {"tiles along x",
       [](scatter_model& m) {
         --m.plan.gemm.schedule.m_tiles;
         return true;
       }},
      {"a sender less",
       [](scatter_model& m) {
         --m.plan.protocol.senders;
         return m.plan.way != scatter_way::store_to_peers;
       }},
  };
  for (const unsigned seed : plans_test::seeds()) {
    numbers number(seed + 200);
    for (scatter_subject& subject : scatters(number)) {
      ASSERT_FALSE(schedule_notices(subject.ranks)) << subject.name;
      for (const scatter_model& m : subject.ranks)
        ASSERT_FALSE(validator_notices(m)) << subject.name;
      scatter_model& m = subject.ranks.front();
      for (comm::transfer_lists* lists : {&m.lists.senders, &m.lists.open, &m.lists.close}) {
        each_change(*lists, number, [&](const std::string& what) {
          found.count(fmt::format("{}: {} (seed {})", subject.name, what, seed),
                      validator_notices(m), schedule_notices(subject.ranks));
        });
      }
      for (const auto& [name, make] : changes) {
        scatter_model mutant = m;
        if (!make(mutant)) continue;
        found.count(fmt::format("{}: {} (seed {})", subject.name, name, seed),
                    validator_notices(mutant), false,
                    mutant.plan.agreed() != subject.ranks.back().plan.agreed());
      }
    }
  }
  found.expect_none_left(200);
}

}  // namespace
