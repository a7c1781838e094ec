#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <untax/tile/row_sequence.hpp>

#include "engines/schedule/plan.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/row_table.hpp"

namespace untax::test {

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

inline constexpr std::int64_t capacity = 6;
inline constexpr std::uint64_t most_uses = 64;

/// The program of a rank for a number of rows, and the callers' matrices that it accesses.
struct subject {
  std::string name;
  int world = 1;
  std::function<untax::program(int rank, std::int64_t rows)> program_of;
  std::function<schedule::operand_extents(int rank, std::int64_t rows)> operands_of;
  std::function<gemm_share(int rank, std::int64_t rows)> share = nullptr;  ///< of GEMM operators
};

inline std::vector<schedule::rank_plan> plans_of(const subject& s,
                                                 const std::vector<std::int64_t>& rows) {
  std::vector<schedule::rank_plan> plans;
  for (int rank = 0; rank < s.world; ++rank) {
    const row_program programs(row_ends(capacity), most_uses, [&](std::int64_t m, auto&& use) {
      use(protocol_of{s.program_of(rank, m)});
    });
    schedule::operand_extents operands;
    const auto grow = [](extent& whole, const extent& part) {
      whole = {std::max(whole.rows, part.rows), std::max(whole.cols, part.cols)};
    };
    for (std::int64_t m = 1; m <= capacity; ++m) {
      const auto rank_operands = s.operands_of(rank, m);
      grow(operands.a, rank_operands.a);
      grow(operands.b, rank_operands.b);
      grow(operands.c, rank_operands.c);
    }
    std::vector<extent> results;
    for (const std::int64_t m : rows)
      results.push_back(m == 0 ? extent{} : s.operands_of(rank, m).c);
    plans.emplace_back(untax::program(row_sequence(programs, rows)), operands, rows.size(),
                       results);
  }
  return plans;
}

/// Every way to carry out the GEMM operators.
inline std::vector<subject> gemms(int world) {
  std::vector<subject> subjects;
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
        subjects.push_back({fmt::format("{} {}, {} {}, {} ranks", entry.name, name_of(how),
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
                            },
                            [=, &entry](int rank, std::int64_t rows) {
                              return entry.share(problem(rows), world, rank);
                            }});
      }
    }
  }
  return subjects;
}

}  // namespace untax::test
