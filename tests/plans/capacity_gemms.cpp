#include <fmt/format.h>
#include <gtest/gtest.h>

#include <barrier>
#include <bit>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include <untax/core/half.hpp>
#include <untax/world/launch.hpp>

#include "engines/host/openblas.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"
#include "tests/plans/allocations.hpp"

namespace untax::testing {
namespace {

/// Whole numbers, so small that sums of products of them are exact in every type.
float number(std::uint64_t seed, std::int64_t row, std::int64_t col) {
  auto x = seed * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(row) * 0xbf58476d1ce4e5b9U +
           static_cast<std::uint64_t>(col) * 0x94d049bb133111ebU;
  x ^= x >> 29U;
  return static_cast<float>(static_cast<int>((x * 0xff51afd7ed558ccdU) >> 61U) - 3) / 2;
}

/// A matrix with room for any number of rows.
class room_of_matrix {
 public:
  room_of_matrix(std::int64_t rows, std::int64_t cols, dtype type)
      : type_(type), memory_(static_cast<std::size_t>(rows * cols) * size_of(type)) {}

  [[nodiscard]] matrix with(std::int64_t rows, std::int64_t cols) {
    return {memory_.data(), type_, rows, cols};
  }

 private:
  dtype type_;
  std::vector<std::byte> memory_;
};

void put(const matrix& m, std::int64_t row, std::int64_t col, float value) {
  std::byte* at = static_cast<std::byte*>(m.data) +
                  (row * m.stride + col) * static_cast<std::int64_t>(size_of(m.type));
  if (m.type == dtype::f32) {
    *reinterpret_cast<float*>(at) = value;  // NOLINT(*-reinterpret-cast)
  } else {
    // The upper half of a float, since these numbers are exact in bf16.
    *reinterpret_cast<std::uint16_t*>(at) =  // NOLINT(*-reinterpret-cast)
        static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U);
  }
}

float get(const matrix& m, std::int64_t row, std::int64_t col) {
  const std::byte* at = static_cast<const std::byte*>(m.data) +
                        (row * m.stride + col) * static_cast<std::int64_t>(size_of(m.type));
  if (m.type == dtype::f32) return *reinterpret_cast<const float*>(at);  // NOLINT
  const auto half = *reinterpret_cast<const std::uint16_t*>(at);         // NOLINT
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16U);
}

/// One operator that is planned once for all the numbers of rows.
struct capacity_case {
  gemm_problem problem;
  operator_options options;
  int world = 1;
  int runs = 1;
  std::uint64_t seed = 1;

  [[nodiscard]] std::string describe(const operator_entry& entry) const {
    return fmt::format(
        "{}, W {}, up to {} rows, n {}, k {}, {}, gather {}, {} {}, workers {}, senders {}, phases "
        "{}, tile {} x {}, panel {}, seed {}",
        entry.name, world, problem.m, problem.n, problem.k, name_of(problem.type),
        name_of(problem.gather), name_of(options.how), name_of(options.move), options.workers,
        options.senders, options.phases, options.tile_m, options.tile_n, options.panel_k, seed);
  }
};

/// One rank: operands with room for the capacity, filled anew for each run.
class runner {
 public:
  runner(world& w, const operator_entry& entry, const capacity_case& c)
      : entry_(entry),
        case_(c),
        rank_(w.rank()),
        op_(entry.make(w, c.problem, c.options)),
        a_(c.problem.m, c.problem.k, c.problem.type),
        b_(c.problem.n, c.problem.k, c.problem.type),
        c_(c.problem.m, c.problem.n, c.problem.type) {}

  /// Runs with so many rows, and counts the elements that are wrong.
  [[nodiscard]] int run(std::int64_t rows, std::uint64_t seed) {
    gemm_problem p = case_.problem;
    p.m = rows;
    const gemm_share share = entry_.share(p, case_.world, rank_);
    const matrix a = a_.with(share.a_rows.size, share.a_cols.size);
    const matrix b = b_.with(share.b_rows.size, share.b_cols.size);
    matrix c = op_->result();
    if (c.data == nullptr) c = c_.with(share.c_rows.size, share.c_cols.size);
    c.rows = share.c_rows.size;
    fill(a, seed, share.a_rows.begin, share.a_cols.begin);
    fill(b, 1000 + share.b_of_rank, share.b_rows.begin, share.b_cols.begin);
    op_->run(as_const(a), as_const(b), c, {});
    int wrong = 0;
    for (std::int64_t i = 0; i < c.rows; ++i) {
      for (std::int64_t j = 0; j < c.cols; ++j) {
        float sum = 0;
        for (std::int64_t k = 0; k < p.k; ++k) {
          sum += number(seed, share.c_rows.begin + i, k) *
                 number(1000 + share.b_of_rank, share.c_cols.begin + j, k);
        }
        if (get(c, i, j) != sum) ++wrong;
      }
    }
    return wrong;
  }

 private:
  static void fill(const matrix& m, std::uint64_t seed, std::int64_t row, std::int64_t col) {
    for (std::int64_t i = 0; i < m.rows; ++i) {
      for (std::int64_t j = 0; j < m.cols; ++j) put(m, i, j, number(seed, row + i, col + j));
    }
  }

  const operator_entry& entry_;
  const capacity_case& case_;
  int rank_;
  std::unique_ptr<runnable> op_;
  room_of_matrix a_;
  room_of_matrix b_;
  room_of_matrix c_;
};

world_options room_for(const capacity_case& c) {
  world_options options;
  options.heap_bytes = 4 * heap_for(c.problem, c.world, c.options.phases);
  options.wait_limit = std::chrono::seconds(20);
  return options;
}

capacity_case random_case(const operator_entry& entry, std::mt19937_64& random, int world) {
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  capacity_case c;
  c.seed = random();
  c.world = world;
  c.problem = {.m = between(1, 40), .n = between(1, 40), .k = between(1, 30)};
  c.problem.type = between(0, 1) == 0 ? dtype::f32 : dtype::bf16;
  if (entry.gathers) c.problem.gather = static_cast<gather_axis>(between(0, 1));
  if (entry.sums_to && between(0, 1) == 1) c.problem.partials = dtype::f32;
  if (entry.gathers) c.options.move = static_cast<direction>(between(0, 1));
  c.options.varying_rows = true;
  c.options.workers = static_cast<int>(between(1, 2));
  c.options.senders = static_cast<int>(between(1, 2));
  c.options.tile_m = between(0, 1) * between(1, 20);
  c.options.tile_n = between(1, 20);
  c.options.panel_k = between(1, 20);
  if (entry.phases) c.options.phases = static_cast<int>(between(0, 2));
  return c;
}

/// All ranks run the same random numbers of rows one after the other.
void check(const operator_entry& entry, const capacity_case& c) {
  SCOPED_TRACE(c.describe(entry));
  std::mutex mutex;
  std::barrier meeting(c.world);  // that allocates nothing, unlike one of the world
  run_threads(
      c.world,
      [&](world& w) {
        runner mine(w, entry, c);
        std::mt19937_64 random(c.seed);
        int wrong = 0;
        static_cast<void>(host::blas());  // the first product of a process loads it, and allocates
        meeting.arrive_and_wait();
        if (w.rank() == 0) count_allocations();
        meeting.arrive_and_wait();
        for (int i = 0; i < c.runs; ++i) {
          const auto rows =
              static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(c.problem.m + 1));
          wrong += mine.run(rows, random());
        }
        meeting.arrive_and_wait();
        const std::uint64_t allocated = w.rank() == 0 ? counted_allocations() : 0;
        const std::scoped_lock lock(mutex);
        EXPECT_EQ(wrong, 0) << "rank " << w.rank();
        EXPECT_EQ(allocated, 0U);
      },
      room_for(c));
}

class capacity_of_gemms : public ::testing::TestWithParam<const char*> {};

TEST_P(capacity_of_gemms, run_any_number_of_rows) {
  const operator_entry& entry = *find_operator(GetParam());
  std::mt19937_64 random(1);
  for (const pattern how : host_patterns) {
    for (int world = 1; world <= 4; ++world) {
      for (int i = 0; i < 6; ++i) {
        capacity_case c = random_case(entry, random, world);
        c.options.how = how;
        c.runs = 20;
        check(entry, c);
        if (HasFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(operators, capacity_of_gemms,
                         ::testing::Values("all_gather_gemm", "gemm_all_scatter",
                                           "gemm_reduce_scatter", "gemm_all_reduce"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace untax::testing
