#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <untax/core/error.hpp>
#include <untax/world/launch.hpp>

#include "ops/common/registry.hpp"
#include "tests/errors.hpp"

namespace untax::testing {
namespace {

/// Runs with `rows` rows, by rank, and what came of it at every rank.
std::vector<error> errors_of(const operator_entry& entry, pattern how, int world,
                             const std::vector<std::int64_t>& rows) {
  gemm_problem problem{.m = 40, .n = 24, .k = 16};
  operator_options options{.how = how, .varying_rows = true, .tile_m = 4, .tile_n = 8};
  std::vector<error> errors(static_cast<std::size_t>(world), error(errc::internal, "none"));
  world_options limits;
  limits.wait_limit = std::chrono::seconds(20);
  try {
    run_threads(
        world,
        [&](untax::world& w) {
          const auto op = entry.make(w, problem, options);
          const auto run = [&](std::int64_t m) {
            gemm_problem p = problem;
            p.m = m;
            const gemm_share share = entry.share(p, world, w.rank());
            std::vector<float> a(40 * 16);
            std::vector<float> b(24 * 16);
            std::vector<float> own(40 * 24);
            matrix c = op->result();
            if (c.data == nullptr) c = {own.data(), dtype::f32, 0, share.c_cols.size};
            c.rows = share.c_rows.size;
            op->run({a.data(), dtype::f32, share.a_rows.size, share.a_cols.size},
                    {b.data(), dtype::f32, share.b_rows.size, share.b_cols.size}, c, {});
          };
          run(7);
          run(40);
          try {
            run(rows[static_cast<std::size_t>(w.rank())]);
          } catch (const error& e) {
            errors[static_cast<std::size_t>(w.rank())] = e;
            throw;
          }
        },
        limits);
  } catch (const error&) {
    // Looked at by rank.
  }
  return errors;
}

// Each way of moving data hangs somewhere else, or does not hang at all.
TEST(capacity, a_rank_with_other_rows_is_named) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ranks that disagree on who writes what write the same words at the same time, "
                  "which ThreadSanitizer reports";
#endif
  using clock = std::chrono::steady_clock;
  for (const operator_entry& entry : operators()) {
    for (const pattern how : host_patterns) {
      for (const auto& [rows, text] : {std::pair<std::vector<std::int64_t>, std::string>{
                                           {30, 12, 30}, "12 at rank 1, 30 at rank"},
                                       {{0, 40, 40}, "0 at rank 0, 40 at rank"}}) {
        SCOPED_TRACE(fmt::format("{} {}: {}", entry.name, name_of(how), fmt::join(rows, ", ")));
        const auto begin = clock::now();
        const auto errors = errors_of(entry, how, 3, rows);
        EXPECT_LT(clock::now() - begin, std::chrono::seconds(10));
        for (const error& e : errors) {
          EXPECT_EQ(e.code(), errc::disagreement) << e.what();
          EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
          EXPECT_NE(std::string(e.what()).find("in run 3"), std::string::npos) << e.what();
        }
      }
    }
  }
}

TEST(capacity, more_rows_than_planned_are_refused) {
  run_threads(1, [](untax::world& w) {
    for (const operator_entry& entry : operators()) {
      const auto op = entry.make(w, {.m = 8, .n = 8, .k = 8}, {.varying_rows = true});
      std::vector<float> memory(9 * 8);
      const matrix m(memory.data(), dtype::f32, 9, 8);
      const error e = untax_test::error_of([&] {
        op->run(as_const(m), {memory.data(), dtype::f32, 8, 8}, m, {});
      });
      EXPECT_EQ(e.code(), errc::invalid_argument);
      EXPECT_NE(std::string(e.what()).find("has 9 rows; this operator was planned for 0 to 8"),
                std::string::npos)
          << e.what();
    }
  });
}

}  // namespace
}  // namespace untax::testing
