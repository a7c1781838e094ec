// With `invariant` a row of the result has the same bits alone and in any batch, wherever it lies,
// in every pattern and however the work is cut.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include <untax/core/error.hpp>
#include <untax/world/launch.hpp>

#include "ops/common/random_matrix.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"
#include "tests/batches.hpp"

namespace untax::testing {
namespace {

using untax_test::batch;
using untax_test::looked_at;
using untax_test::random_batch;
using untax_test::seen_rows;

constexpr std::int64_t most_rows = 512;
constexpr std::int64_t n = 45;
constexpr std::int64_t k = 83;

struct invariant_case {
  gemm_problem problem;
  operator_options options;
  int world = 1;
};

std::string text_of(const operator_entry& entry, const invariant_case& c, std::uint64_t seed) {
  return fmt::format(
      "{} of {} ranks, {}, gather {}, partials {}, {} {}, phases {}, {} workers, tile {} x {}, "
      "panel {}, seed {}",
      entry.name, c.world, name_of(c.problem.type), name_of(c.problem.gather),
      name_of(partials_type(c.problem)), name_of(c.options.how), name_of(c.options.move),
      c.options.phases, c.options.workers, c.options.tile_m, c.options.tile_n, c.options.panel_k,
      seed);
}

/// One rank with operands for the most rows.
class rank_of_case {
 public:
  rank_of_case(world& w, const operator_entry& entry, const invariant_case& c)
      : w_(w), entry_(entry), case_(c), op_(entry.make(w, c.problem, c.options)) {}

  /// How many rows have other bits than before.
  int run(const batch& rows, seen_rows& seen) {
    gemm_problem p = case_.problem;
    p.m = static_cast<std::int64_t>(rows.size());
    const gemm_share share = entry_.share(p, case_.world, w_.rank());
    const auto own = [&](std::vector<std::byte>& memory, const range& down, const range& across) {
      memory.resize(static_cast<std::size_t>(down.size * across.size) * size_of(p.type));
      return matrix(memory.data(), p.type, down.size, across.size);
    };
    const matrix a = own(a_, share.a_rows, share.a_cols);
    const matrix b = own(b_, share.b_rows, share.b_cols);
    matrix c = op_->result();
    if (c.data == nullptr) c = own(c_, share.c_rows, share.c_cols);
    c.rows = share.c_rows.size;
    for (std::int64_t i = 0; i < a.rows; ++i) {
      const std::int64_t row = rows[static_cast<std::size_t>(share.a_rows.begin + i)];
      auto* const at = static_cast<std::byte*>(a.data) +
                       static_cast<std::size_t>(i * a.stride) * size_of(p.type);
      random_matrix{1}.fill({at, p.type, 1, a.cols}, {row, 1}, share.a_cols);
    }
    random_matrix{2 + share.b_of_rank}.fill(b, share.b_rows, share.b_cols);
    op_->run(as_const(a), as_const(b), c, {});
    return seen.compare(w_.rank(), rows, share.c_rows, c);
  }

 private:
  world& w_;
  const operator_entry& entry_;
  const invariant_case& case_;
  std::unique_ptr<runnable> op_;
  std::vector<std::byte> a_;
  std::vector<std::byte> b_;
  std::vector<std::byte> c_;
};

/// Runs all batches, with one plan for all numbers of rows or one for this number.
void compare(const operator_entry& entry, const invariant_case& c,
             const std::vector<batch>& batches, std::uint64_t seed, seen_rows& seen) {
  SCOPED_TRACE(text_of(entry, c, seed));
  world_options room;
  room.heap_bytes = 4 * heap_for(c.problem, c.world, c.options.phases);
  room.wait_limit = std::chrono::seconds(20);
  std::mutex mutex;
  run_threads(
      c.world,
      [&](world& w) {
        rank_of_case mine(w, entry, c);
        int differ = 0;
        for (const batch& rows : batches) differ += mine.run(rows, seen);
        const std::scoped_lock lock(mutex);
        EXPECT_EQ(differ, 0) << "rank " << w.rank();
      },
      room);
}

invariant_case random_case(const operator_entry& entry, std::mt19937_64& random) {
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  invariant_case c;
  c.options.invariant = true;
  c.options.varying_rows = between(0, 1) == 1;
  c.options.workers = static_cast<int>(between(1, 2));
  c.options.senders = static_cast<int>(between(1, 2));
  c.options.tile_m = between(0, 1) * between(1, 90);
  c.options.tile_n = between(0, 1) * between(1, 50);
  c.options.panel_k = between(0, 1) * between(1, 30);
  if (entry.gathers) c.options.move = static_cast<direction>(between(0, 1));
  if (entry.phases) c.options.phases = static_cast<int>(between(0, 2));
  return c;
}

/// 64 rows alone, and then in batches, in every pattern.
void check(const operator_entry& entry, const gemm_problem& problem, int world,
           std::uint64_t seed) {
  std::mt19937_64 random(seed);
  seen_rows seen;
  seen.expect_one_copy(entry.sums_to.has_value());
  std::vector<batch> alone;
  for (std::int64_t row = 0; row < looked_at; ++row) alone.push_back({row});
  for (const pattern how : host_patterns) {
    invariant_case c = random_case(entry, random);
    c.world = world;
    c.problem = problem;
    c.options.how = how;
    std::vector<batch> batches;
    if (how == host_patterns.front()) {
      batches = alone;
      c.options.varying_rows = true;
    }
    const auto rows_below = [&](std::uint64_t most) {
      return static_cast<std::int64_t>(2 + random() % (most - 1));
    };
    const std::int64_t rows = c.options.varying_rows ? 0 : rows_below(most_rows);
    for (int i = 0; i < 2; ++i)
      batches.push_back(random_batch(random, rows > 0 ? rows : rows_below(i == 0 ? 64 : 512)));
    c.problem.m = rows > 0 ? rows : most_rows;
    compare(entry, c, batches, seed, seen);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GE(seen.compared(), looked_at * 3);
}

class invariant_gemms : public ::testing::TestWithParam<const char*> {};

TEST_P(invariant_gemms, have_the_same_bits_in_every_batch) {
  const operator_entry& entry = *find_operator(GetParam());
  std::uint64_t seed = 1;
  for (int world = 1; world <= 4; ++world) {
    for (const dtype type : {dtype::f32, dtype::bf16}) {
      for (const bool other : {false, true}) {
        gemm_problem p{.m = most_rows, .n = n, .k = k, .type = type};
        if (other && !entry.gathers && (!entry.sums_to || type == dtype::f32)) continue;
        if (other && entry.gathers) p.gather = gather_axis::k;
        if (!other && entry.sums_to) p.partials = dtype::f32;
        check(entry, p, world, seed++);
        if (HasFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(operators, invariant_gemms,
                         ::testing::Values("all_gather_gemm", "gemm_all_scatter",
                                           "gemm_reduce_scatter", "gemm_all_reduce"),
                         [](const auto& info) { return std::string(info.param); });

// Libraries choose the order of additions by the shape, so a run that needs the same bits sets
// `invariant`.
TEST(invariant, is_compared_with_the_other_ranks) {
  std::string text;
  std::mutex mutex;
  try {
    run_threads(2, [&](world& w) {
      const auto op = find_operator("all_gather_gemm")
                          ->make(w, {.m = 8, .n = 8, .k = 8}, {.invariant = w.rank() == 1});
      w.barrier();
    });
    ADD_FAILURE() << "rank 1 alone was to have the same bits in every batch";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::disagreement);
    text = e.what();
  }
  EXPECT_NE(text.find(", invariant"), std::string::npos) << text;
}

}  // namespace
}  // namespace untax::testing
