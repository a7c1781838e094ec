// Sums of a GEMM over ranks that share a GPU, or have their own, or of one rank that sends to
// itself: the bits are those of adding fp32 partial results in rank order, in every pattern, with
// any number of phases, and in every run.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <untax/core/half.hpp>
#include <untax/ops/gemm_all_reduce.hpp>
#include <untax/ops/gemm_reduce_scatter.hpp>
#include <untax/tile/shard.hpp>
#include <untax/world/launch.hpp>

#include "gpus.hpp"
#include "operator_runs.hpp"

namespace {

using namespace gpu_test;
using untax::bf16;
using untax::extent;
using untax::matrix;
using untax::range;
using untax::sharding;

constexpr std::array own_patterns = {pattern::fused_sequential, pattern::fused_specialized,
                                     pattern::producer_consumer};

/// Small whole numbers, so that every product of a rank is exact; what differs by rank is a power
/// of two, so that only additions over ranks are rounded, and their order shows.
float element(std::uint64_t what, std::int64_t row, std::int64_t col) {
  std::uint64_t mixed = what * 1000003 + static_cast<std::uint64_t>(row * 8191 + col);
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
  return static_cast<float>(static_cast<int>((mixed >> 33U) % 7) - 3);
}
std::vector<float> elements(std::uint64_t what, range rows, std::int64_t cols) {
  std::vector<float> values;
  for (std::int64_t row = rows.begin; row < rows.end(); ++row) {
    for (std::int64_t col = 0; col < cols; ++col) values.push_back(element(what, row, col));
  }
  return values;
}
float scale_of(int rank) {
  constexpr int powers[] = {0, 9, -7, 13, -3, 6, 11, -9};
  return std::ldexp(1.0F, powers[rank % 8]);
}

/// Results of some runs, in memory of the host that GPUs reach: they are looked at together. It is
/// allocated before kernels of a rank wait for each other, since that may hold up those behind it.
class kept_results {
 public:
  static constexpr int runs = 10;

  explicit kept_results(std::size_t most_bytes) {
    ok(cudaMallocHost(&memory_, runs * most_bytes + 1));
  }
  kept_results(const kept_results&) = delete;
  kept_results& operator=(const kept_results&) = delete;
  ~kept_results() { cudaFreeHost(memory_); }

  [[nodiscard]] std::byte* of(int run, std::size_t bytes) const {
    return static_cast<std::byte*>(memory_) + static_cast<std::size_t>(run % runs) * bytes;
  }
  [[nodiscard]] std::vector<std::byte> copy_of(int run, std::size_t bytes) const {
    return {of(run, bytes), of(run, bytes) + bytes};
  }
  /// Whether a run has all bits of another one.
  [[nodiscard]] bool same(int run, const std::vector<std::byte>& as) const {
    return as.empty() || std::memcmp(of(run, as.size()), as.data(), as.size()) == 0;
  }

 private:
  void* memory_ = nullptr;
};

/// One rank's part of a sum, and what its C has to be, with partial results of a type.
class exact_sum {
 public:
  exact_sum(world& w, std::int64_t m, std::int64_t n, std::int64_t k, range rows,
            dtype partials = dtype::f32)
      : depth_(sharding{k, w.size(), untax::shard_granularity}.of(w.rank())),
        rows_(rows),
        n_(n),
        a_(w.allocate<bf16>(static_cast<std::size_t>(m * k) + 8, "a")),
        b_(w.allocate<bf16>(static_cast<std::size_t>(n * k) + 8, "weights")),
        c_(w.allocate<bf16>(static_cast<std::size_t>(m * n) + 8, "c")),
        kept(static_cast<std::size_t>(m * n) * 2),
        a(a_.local(), m, depth_.size),
        weights(b_.local(), n, depth_.size),
        c(c_.local(), rows.size, n) {
    fill(a, 1, scale_of(w.rank()));
    fill(weights, 2, 1);
    const sharding depths{k, w.size(), untax::shard_granularity};
    const std::vector<float> left = elements(1, rows, k);
    const std::vector<float> right = elements(2, {0, n}, k);
    for (std::int64_t row = 0; row < rows.size; ++row) {
      for (std::int64_t col = 0; col < n; ++col) {
        float sum = 0;
        for (int rank = 0; rank < w.size(); ++rank) {
          const range rows_of_rank = depths.of(rank);
          const float products =
              std::inner_product(left.begin() + row * k + rows_of_rank.begin,
                                 left.begin() + row * k + rows_of_rank.end(),
                                 right.begin() + col * k + rows_of_rank.begin, 0.0F);
          float partial = products * scale_of(rank);
          if (partials == dtype::bf16) partial = static_cast<float>(bf16(partial));
          sum = rank == 0 ? partial : sum + partial;
        }
        right_.push_back(bf16(sum));
      }
    }
  }

  /// Whether a result is right; says where it is not. Zeros of either sign are.
  void expect_right(const std::byte* actual) const {
    const auto* const is = reinterpret_cast<const bf16*>(actual);
    for (std::size_t i = 0; i < right_.size(); ++i) {
      if (static_cast<float>(is[i]) == static_cast<float>(right_[i])) continue;
      ADD_FAILURE() << "row " << rows_.begin + static_cast<std::int64_t>(i) / n_ << ", column "
                    << static_cast<std::int64_t>(i) % n_ << ": " << static_cast<float>(is[i])
                    << " instead of " << static_cast<float>(right_[i]);
      return;
    }
  }

 private:
  void fill(const matrix& to, std::uint64_t what, float scale) const {
    std::vector<bf16> host;
    for (std::int64_t row = 0; row < to.rows; ++row) {
      for (std::int64_t col = 0; col < to.cols; ++col)
        host.emplace_back(element(what, row, depth_.begin + col) * scale);
    }
    if (!host.empty())
      ok(cudaMemcpy(to.data, host.data(), host.size() * sizeof(bf16), cudaMemcpyHostToDevice));
  }

  range depth_;
  range rows_;
  std::int64_t n_;
  untax::symmetric<bf16> a_;
  untax::symmetric<bf16> b_;
  untax::symmetric<bf16> c_;
  std::vector<bf16> right_;

 public:
  kept_results kept;
  matrix a;
  matrix weights;
  matrix c;
};

struct sum_shape {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};
/// One tile of few rows; some tiles; rows of two owners in a tile; ranks without rows, also between
/// two, which hear of no owner and so have to ask before they send; ranks without columns of A.
constexpr sum_shape shapes[] = {{16, 136, 200}, {200, 264, 136}, {333, 72, 520},
                                {3, 264, 64},   {1, 264, 64},    {130, 520, 8}};

/// Runs `op` into `c` again and again, behind stalls: the first result has to be right, and the
/// others have to have its bits.
template <class Operator>
void expect_same_bits(world& w, Operator& op, const exact_sum& sum, const matrix& c, int count,
                      const stream& s) {
  std::mt19937_64 stalls(static_cast<std::uint64_t>(w.rank()) + 5);
  const auto bytes = static_cast<std::size_t>(c.rows * c.cols) * 2;
  const kept_results& kept = sum.kept;
  std::vector<std::byte> first;
  for (int i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
    if (bytes > 0) ok(cudaMemsetAsync(c.data, 0xff, bytes, s.get()));
    if (stalls() % 4 == 0) stall(s, static_cast<std::int64_t>(stalls() % 200));
    op.run(as_const(sum.a), as_const(sum.weights), c, {s.get()});
    if (bytes > 0)
      ok(cudaMemcpyAsync(kept.of(i, bytes), c.data, bytes, cudaMemcpyDeviceToHost, s.get()));
    if (i % kept.runs != kept.runs - 1 && i != count - 1) continue;
    EXPECT_TRUE(s.done());
    w.check();
    const int begin = i / kept.runs * kept.runs;
    if (begin == 0) {
      sum.expect_right(kept.of(0, bytes));
      first = kept.copy_of(0, bytes);
    }
    for (int run = begin; run <= i; ++run) {
      if (kept.same(run, first)) continue;
      ADD_FAILURE() << "run " << run << " has other bits than the first";
      sum.expect_right(kept.of(run, bytes));
    }
  }
}

TEST(gpu_sums, of_gemm_reduce_scatter_are_added_in_rank_order) {
  NEEDS_GPUS(1);
  const int count = runs(10 * cases(10));
  untax::run_gpus(
      gpus(),
      [&](world& w) {
        const stream s;
        for (const auto& [m, n, k] : shapes) {
          const exact_sum sum(w, m, n, k, sharding{m, w.size()}.of(w.rank()));
          for (const pattern how : own_patterns) {
            SCOPED_TRACE(fmt::format("rank {} of {}, {} x {} x {}, {}", w.rank(), w.size(), m, n, k,
                                     name_of(how)));
            untax::gemm_reduce_scatter op(
                w, {.m = m, .n = n, .k = k, .type = dtype::bf16, .partials = dtype::f32},
                {.how = how});
            expect_same_bits(w, op, sum, sum.c, count, s);
          }
        }
      },
      roomy_world());
}

/// Both operators with partial results of 16 bits.
class sums_of_16_bits {
 public:
  sums_of_16_bits(world& w, const sum_shape& shape)
      : w_(w),
        shape_(shape),
        own_rows_(w, shape.m, shape.n, shape.k, sharding{shape.m, w.size()}.of(w.rank()),
                  dtype::bf16),
        all_rows_(w, shape.m, shape.n, shape.k, {0, shape.m}, dtype::bf16) {}

  /// `explained`: words of the plan of gemm_reduce_scatter.
  void expect_right(operator_options options, int count, const stream& s,
                    const std::string& explained = "") const {
    const auto& [m, n, k] = shape_;
    SCOPED_TRACE(fmt::format("rank {} of {}, {} x {} x {}, {}, {} workers", w_.rank(), w_.size(), m,
                             n, k, name_of(options.how), options.workers));
    untax::gemm_reduce_scatter scatter(
        w_, {.m = m, .n = n, .k = k, .type = dtype::bf16, .partials = dtype::bf16}, options);
    EXPECT_NE(scatter.explain().find(explained), std::string::npos) << scatter.explain();
    expect_same_bits(w_, scatter, own_rows_, own_rows_.c, count, s);
    for (options.phases = 1; options.phases <= 2; ++options.phases) {
      SCOPED_TRACE(fmt::format("all reduced in {} phases", options.phases));
      untax::gemm_all_reduce reduce(
          w_, {.m = m, .n = n, .k = k, .type = dtype::bf16, .partials = dtype::bf16}, options);
      expect_same_bits(w_, reduce, all_rows_, reduce.result(), count, s);
      expect_same_bits(w_, reduce, all_rows_, all_rows_.c, 2, s);
    }
  }

 private:
  world& w_;
  sum_shape shape_;
  exact_sum own_rows_;
  exact_sum all_rows_;
};

/// Calls `check(sums, stream)` at each rank, for each of the shapes that `shapes_of(ranks)`
/// returns.
template <class Shapes, class Check>
void each_sum_of_16_bits(const Shapes& shapes_of, const Check& check) {
  untax::run_gpus(
      gpus(),
      [&](world& w) {
        const stream s;
        for (const sum_shape& shape : shapes_of(w.size())) check(sums_of_16_bits(w, shape), s);
      },
      roomy_world());
}

/// Sent as rows, by parts of tiles that may be of several owners.
TEST(gpu_sums, sent_as_rows_are_added_in_rank_order) {
  NEEDS_GPUS(1);
  std::vector<sum_shape> problems = {{521, 264, 200}, {390, 1032, 136}, {700, 72, 64}};
  problems.insert(problems.end(), std::begin(shapes), std::end(shapes));
  const int count = runs(10 * cases(10));
  each_sum_of_16_bits(
      [&](int /*ranks*/) { return problems; },
      [&](const sums_of_16_bits& sums, const stream& s) {
        for (const int workers : {0, 4})
          sums.expect_right({.how = pattern::fused_warp_specialized, .workers = workers}, count, s);
      });
}

/// Where every owner's rows are whole tiles, the MMA warps add the partials of peers that have
/// arrived. Some tiles of each owner to a block, and one; ranks without a shard of k.
TEST(gpu_sums, added_in_the_epilogue_are_added_in_rank_order) {
  NEEDS_GPUS(1);
  const int count = runs(10 * cases(10));
  const auto whole_tiles = [](int ranks) {
    const std::int64_t tile = std::int64_t{256} * ranks;
    return std::array<sum_shape, 3>{{{2 * tile, 520, 136}, {tile, 1032, 64}, {3 * tile, 264, 8}}};
  };
  each_sum_of_16_bits(whole_tiles, [&](const sums_of_16_bits& sums, const stream& s) {
    sums.expect_right({.how = pattern::fused_warp_specialized, .workers = 8}, count, s,
                      "warps that multiply add");
  });
}

/// Partial results of 16 bits, which pass through shared memory where one owner has all rows of a
/// warpgroup. Some tiles to a block and one; rows and columns that end within a tile, owners that
/// meet in one.
TEST(gpu_sums, of_16_bit_partials_are_added_in_rank_order) {
  NEEDS_GPUS(1);
  const auto many_tiles = [](int /*ranks*/) {
    return std::array<sum_shape, 3>{{{384, 768, 72}, {256, 1032, 64}, {390, 512, 136}}};
  };
  const int count = runs(10 * cases(4));
  each_sum_of_16_bits(many_tiles, [&](const sums_of_16_bits& sums, const stream& s) {
    for (const pattern how : own_patterns) {
      for (const int workers : {0, 2, 4, 8})
        sums.expect_right({.how = how, .workers = workers}, count, s);
    }
  });
}

TEST(gpu_sums, of_gemm_all_reduce_are_added_in_rank_order) {
  NEEDS_GPUS(1);
  const int count = runs(10 * cases(10));
  untax::run_gpus(
      gpus(),
      [&](world& w) {
        const stream s;
        for (const auto& [m, n, k] : shapes) {
          const exact_sum sum(w, m, n, k, {0, m});
          for (const pattern how : own_patterns) {
            for (const int phases : {1, 2}) {
              SCOPED_TRACE(fmt::format("rank {} of {}, {} x {} x {}, {}, {} phases", w.rank(),
                                       w.size(), m, n, k, name_of(how), phases));
              untax::gemm_all_reduce op(
                  w, {.m = m, .n = n, .k = k, .type = dtype::bf16, .partials = dtype::f32},
                  {.how = how, .phases = phases});
              expect_same_bits(w, op, sum, op.result(), count, s);
              expect_same_bits(w, op, sum, sum.c, 2, s);
            }
          }
        }
      },
      roomy_world());
}

}  // namespace
