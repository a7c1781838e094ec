// all_reduce_norm on GPUs: random shapes against fp64, poisoned results, in one phase and in two,
// with every output, and the bits of adding in rank order in every run.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/core/half.hpp>
#include <untax/ops/all_reduce_norm.hpp>
#include <untax/world/launch.hpp>

#include "gpus.hpp"
#include "operator_runs.hpp"
#include "ops/all_reduce_norm/reference.hpp"

namespace {

using namespace gpu_test;
using untax::all_reduce_norm;
using untax::all_reduce_norm_problem;
using untax::bf16;
using untax::const_matrix;
using untax::f16;
using untax::norm_inputs;
using untax::norm_output;
using untax::norm_results;

/// N(0, 1) or so, as it stands in an element: what a rank adds (0, 1, ...), the residual (-1), the
/// weight (-2).
template <class T>
std::vector<T> part(int number, std::uint64_t seed, std::int64_t count) {
  std::mt19937_64 random(seed * 64 + static_cast<std::uint64_t>(number + 2));
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) {
    // The sum of four evenly distributed ones.
    const std::uint64_t r = random();
    float sum = 0;
    for (int k = 0; k < 4; ++k) sum += static_cast<float>((r >> (16 * k)) & 0xffffU) / 65536.0F;
    values.emplace_back((sum - 2) * 1.7F);
  }
  return values;
}

/// One rank's operator and its arguments in GPU memory.
template <class T>
class norm_trial {
 public:
  norm_trial(world& w, const all_reduce_norm_problem& p, int phases, bool in_place,
             bool any_tokens = false)
      : w_(w),
        p_(p),
        count_(p.tokens * p.hidden),
        op_(w, p, {.phases = phases, .varying_rows = any_tokens}),
        in_place_(in_place),
        in_(w.allocate<T>(static_cast<std::size_t>(count_), "in")),
        residual_(w.allocate<T>(static_cast<std::size_t>(count_), "residual")),
        weight_(w.allocate<T>(static_cast<std::size_t>(p.hidden), "weight")) {}

  /// Of an operator for any number of tokens up to those that it was made for.
  void set_tokens(std::int64_t tokens) {
    p_.tokens = tokens;
    count_ = tokens * p_.hidden;
  }

  /// All ranks come here; this one's kernel begins `late` microseconds behind the meeting.
  void launch(const stream& s, std::uint64_t seed, std::int64_t late = 0) {
    seed_ = seed;
    const auto put = [&](T* at, const std::vector<T>& values) {
      copy(at, values.data(), values.size(), s);
    };
    poison(s);
    // Without a new run of a peer no rank writes there.
    put(in_.local(), part<T>(w_.rank(), seed, count_));
    put(residual(), part<T>(-1, seed, count_));
    put(weight_.local(), part<T>(-2, seed, p_.hidden));
    run(s, late);
  }
  /// With inputs whose bits are all set.
  void launch_nothing(const stream& s) {
    launch(s, 1);
    ok(cudaMemsetAsync(in_.local(), 0xff, static_cast<std::size_t>(count_) * sizeof(T), s.get()));
    ok(cudaStreamSynchronize(s.get()));
    const norm_results to = op_.result();
    ok(cudaMemsetAsync(to.x, 0, static_cast<std::size_t>(count_) * sizeof(T), s.get()));
    ok(cudaMemsetAsync(to.out, 0, static_cast<std::size_t>(count_) * normed_bytes(), s.get()));
    run(s, 0);
  }
  /// The same with what the last launch had; not in place, which overwrites it.
  void launch_again(const stream& s, std::int64_t late) {
    poison(s);
    run(s, late);
  }

  /// Of so many rows from the first on, both results as they stand there; `output` is `same`.
  [[nodiscard]] std::vector<std::uint16_t> bits(std::int64_t rows, const stream& s) const {
    const norm_results to = op_.result();
    const auto count = static_cast<std::size_t>(rows * p_.hidden);
    std::vector<std::uint16_t> all(2 * count);
    copy(all.data(), static_cast<const std::uint16_t*>(to.x), count, s);
    copy(all.data() + count, static_cast<const std::uint16_t*>(to.out), count, s);
    return all;
  }

  void expect_right(const stream& s) const {
    const norm_results to = op_.result();
    const std::vector<T> x =
        values(static_cast<const T*>(to.x), static_cast<std::size_t>(count_), s);
    const auto bytes = static_cast<std::size_t>(count_) * normed_bytes();
    const std::vector<std::byte> out = values(static_cast<const std::byte*>(to.out), bytes, s);
    std::vector<float> scales(static_cast<std::size_t>(p_.tokens), scale_);
    if (p_.output == norm_output::e4m3_per_token)
      scales = values(static_cast<const float*>(to.scales), scales.size(), s);
    std::vector<std::vector<T>> parts;
    for (int rank = 0; rank < w_.size(); ++rank) parts.push_back(part<T>(rank, seed_, count_));
    const std::vector<T> residual = part<T>(-1, seed_, count_);
    std::vector<double> weight;
    for (const T& element : part<T>(-2, seed_, p_.hidden))
      weight.push_back(static_cast<double>(static_cast<float>(element)));
    untax::norm_reference right_rows(p_, w_.size(), std::move(weight));
    const auto width = static_cast<std::size_t>(p_.hidden);
    std::vector<double> sums(width);
    for (std::size_t row = 0; row < scales.size(); ++row) {
      for (std::size_t col = 0; col < width; ++col) {
        const std::size_t i = row * width + col;
        float sum = static_cast<float>(parts[0][i]);
        for (std::size_t rank = 1; rank < parts.size(); ++rank)
          sum += static_cast<float>(parts[rank][i]);
        const T right(sum + static_cast<float>(residual[i]));
        if (right.bits != x[i].bits && static_cast<float>(right) != static_cast<float>(x[i])) {
          ADD_FAILURE() << "x, row " << row << ", column " << col << ": "
                        << static_cast<float>(x[i]) << " instead of " << static_cast<float>(right);
          return;
        }
        sums[col] = static_cast<double>(sum) + static_cast<double>(static_cast<float>(residual[i]));
      }
      right_rows.add_row(sums, {&x[row * width], &out[row * width * normed_bytes()], scales[row]});
    }
    EXPECT_LE(right_rows.relative_error(), tolerance_of(p_));
  }

 private:
  void poison(const stream& s) const {
    const norm_results to = op_.result();
    const auto elements = static_cast<std::size_t>(count_);
    ok(cudaMemsetAsync(to.x, 0xff, elements * sizeof(T), s.get()));
    ok(cudaMemsetAsync(to.out, 0xff, elements * normed_bytes(), s.get()));
    if (to.scales != nullptr)
      ok(cudaMemsetAsync(to.scales, 0xff, static_cast<std::size_t>(p_.tokens) * sizeof(float),
                         s.get()));
    ok(cudaStreamSynchronize(s.get()));
  }
  void run(const stream& s, std::int64_t late) {
    w_.barrier();
    stall(s, late);
    op_.run({const_matrix(in_.local(), p_.type, p_.tokens, p_.hidden),
             const_matrix(residual(), p_.type, p_.tokens, p_.hidden), weight_.local(), scale_},
            op_.result(), s.get());
  }
  [[nodiscard]] T* residual() const {
    return in_place_ ? static_cast<T*>(op_.result().x) : residual_.local();
  }
  [[nodiscard]] std::size_t normed_bytes() const {
    return p_.output == norm_output::same ? sizeof(T) : 1;
  }

  static constexpr float scale_ = 1.0F / 16;  ///< of e4m3 where it is passed

  world& w_;
  all_reduce_norm_problem p_;
  std::int64_t count_;
  all_reduce_norm op_;
  bool in_place_;
  untax::symmetric<T> in_;
  untax::symmetric<T> residual_;
  untax::symmetric<T> weight_;
  std::uint64_t seed_ = 0;
};

template <class T>
void check(world& w, const all_reduce_norm_problem& p, int phases, bool in_place,
           std::uint64_t seed) {
  SCOPED_TRACE(fmt::format("seed {}, rank {} of {}, {} tokens of {}, {}, {}, {} phases{}", seed,
                           w.rank(), w.size(), p.tokens, p.hidden, name_of(p.type),
                           name_of(p.output), phases, in_place ? ", in place" : ""));
  const stream s;
  norm_trial<T> trial(w, p, phases, in_place);
  std::mt19937_64 stalls(seed + static_cast<std::uint64_t>(w.rank()));
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
    trial.launch(s, seed + epoch, static_cast<std::int64_t>(stalls() % 200));
    EXPECT_TRUE(s.done());
    w.check();
    trial.expect_right(s);
    w.barrier();
  }
}

TEST(gpu_all_reduce_norm, is_right_for_random_shapes) {
  NEEDS_GPUS(1);
  const std::uint64_t seed = std::random_device{}();
  const int count = cases(10);
  untax::run_gpus(
      gpus(),
      [&](world& w) {
        std::mt19937_64 random(seed);
        const auto between = [&](std::int64_t least, std::int64_t most) {
          return std::uniform_int_distribution<std::int64_t>(least, most)(random);
        };
        for (int i = 0; i < count; ++i) {
          constexpr std::int64_t most_tokens[] = {1, 4, 40, 300};
          all_reduce_norm_problem p;
          p.tokens = between(1, most_tokens[between(0, 3)]);
          p.hidden = 8 * between(1, p.tokens > 40 ? 64 : 2048);
          p.type = between(0, 1) == 0 ? dtype::bf16 : dtype::f16;
          p.output = static_cast<norm_output>(between(0, 2));
          const auto phases = static_cast<int>(between(0, 2));
          const bool in_place = between(0, 1) == 0;
          if (p.type == dtype::bf16) {
            check<bf16>(w, p, phases, in_place, seed + static_cast<std::uint64_t>(i));
          } else {
            check<f16>(w, p, phases, in_place, seed + static_cast<std::uint64_t>(i));
          }
          if (::testing::Test::HasFailure()) return;
        }
      },
      roomy_world());
}

TEST(gpu_all_reduce_norm, takes_any_number_of_tokens) {
  NEEDS_GPUS(1);
  const std::uint64_t seed = std::random_device{}();
  const int count = cases(60);
  untax::run_gpus(
      gpus(),
      [&](world& w) {
        std::mt19937_64 random(seed);
        const auto below = [&](std::uint64_t most) {
          return static_cast<std::int64_t>(random() % most);
        };
        for (const int phases : {0, 1, 2}) {
          const all_reduce_norm_problem most{.tokens = 300,
                                             .hidden = 8 * (1 + below(512)),
                                             .type = dtype::bf16,
                                             .output = static_cast<norm_output>(below(3))};
          SCOPED_TRACE(fmt::format("seed {}, rank {} of {}, {}, {} phases", seed, w.rank(),
                                   w.size(), name_of(most.output), phases));
          const stream s;
          norm_trial<bf16> trial(w, most, phases, phases == 1, true);
          for (int i = 0; i < count; ++i) {
            trial.set_tokens(1 + (below(2) == 0 ? below(8) : below(300)));
            const std::int64_t late = below(100) * w.rank();
            trial.launch(s, random(), late);
            ASSERT_TRUE(s.done());
            w.check();
            trial.expect_right(s);
            w.barrier();
            if (::testing::Test::HasFailure()) return;
          }
        }
      },
      roomy_world());
}

// The bits of x are those of adding in rank order; those of out are compared from run to run.
TEST(gpu_all_reduce_norm, has_the_same_bits_in_every_run) {
  NEEDS_GPUS(1);
  const std::uint64_t seed = std::random_device{}();
  const int count = runs(30);
  untax::run_gpus(
      gpus(),
      [&](world& w) {
        const stream s;
        std::mt19937_64 stalls(seed + static_cast<std::uint64_t>(w.rank()));
        constexpr untax::extent sizes[] = {{1, 16384}, {24, 4096}, {150, 1032}};
        for (const auto& [tokens, hidden] : sizes) {
          for (const int phases : {1, 2}) {
            SCOPED_TRACE(fmt::format("seed {}, rank {} of {}, {} tokens of {}, {} phases", seed,
                                     w.rank(), w.size(), tokens, hidden, phases));
            norm_trial<bf16> trial(w, {.tokens = tokens, .hidden = hidden, .type = dtype::bf16},
                                   phases, false);
            std::vector<std::uint16_t> right;
            for (int i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
              const auto late = static_cast<std::int64_t>(stalls() % 200);
              i == 0 ? trial.launch(s, seed, late) : trial.launch_again(s, late);
              EXPECT_TRUE(s.done());
              w.check();
              if (i == 0) {
                trial.expect_right(s);
                right = trial.bits(tokens, s);
              } else {
                EXPECT_TRUE(trial.bits(tokens, s) == right) << "run " << i;
              }
              w.barrier();
            }
          }
        }
      },
      roomy_world());
}

// Blocks share long rows where there are few of them.
TEST(gpu_all_reduce_norm, rows_have_the_same_bits_in_any_batch) {
  NEEDS_GPUS(1);
  const std::uint64_t seed = std::random_device{}();
  untax::run_gpus(
      gpus(),
      [&](world& w) {
        for (const std::int64_t hidden : {4096, 8192, 12296, 16384}) {
          SCOPED_TRACE(
              fmt::format("seed {}, rank {} of {}, hidden {}", seed, w.rank(), w.size(), hidden));
          const stream s;
          const auto bits = [&](std::int64_t tokens, int phases) {
            norm_trial<bf16> trial(w, {.tokens = tokens, .hidden = hidden, .type = dtype::bf16},
                                   phases, false);
            trial.launch(s, seed);
            EXPECT_TRUE(s.done());
            w.check();
            trial.expect_right(s);
            w.barrier();
            return trial.bits(1, s);
          };
          const auto right = bits(1, 1);
          for (const std::int64_t tokens : {2, 16, 24, 70}) EXPECT_EQ(bits(tokens, 1), right);
          EXPECT_EQ(bits(70, 2), right);
          if (::testing::Test::HasFailure()) return;
        }
      },
      roomy_world());
}

// One NaN has the bits that stand for a word that has not arrived.
TEST(gpu_all_reduce_norm, ends_with_nan_inputs) {
  NEEDS_GPUS(1);
  untax::run_gpus(
      gpus(),
      [&](world& w) {
        const stream s;
        for (const int phases : {1, 2}) {
          norm_trial<bf16> trial(w, {.tokens = 5, .hidden = 1024, .type = dtype::bf16}, phases,
                                 false);
          trial.launch_nothing(s);
          EXPECT_TRUE(s.done());
          w.check();
          for (const std::uint16_t bits : trial.bits(5, s)) ASSERT_GT(bits & 0x7fff, 0x7f80);
          w.barrier();
        }
      },
      roomy_world());
}

TEST(gpu_all_reduce_norm, refuses_impossible_problems) {
  NEEDS_GPUS(1);
  std::vector<world> alone = world::local_gpus(1, roomy_world());
  world& w = alone[0];
  w.use_device();
  const auto refusal = [&](const all_reduce_norm_problem& p, const operator_options& options) {
    return error_of([&] { all_reduce_norm(w, p, options); });
  };
  expect_error(refusal({.tokens = 1, .hidden = 12}, {}), untax::errc::invalid_argument,
               {"rank 0: all_reduce_norm", "hidden is 12", "multiple of 8"});
  expect_error(refusal({.tokens = 1, .hidden = 8, .type = dtype::f32}, {}),
               untax::errc::invalid_argument, {"fp32", "bf16 or fp16"});
  expect_error(refusal({.tokens = 1, .hidden = 8}, {.how = pattern::bulk_synchronous}),
               untax::errc::unsupported, {"bulk_synchronous", "fused_sequential"});
}

}  // namespace
