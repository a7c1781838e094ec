#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <untax/core/error.hpp>
#include <untax/core/fp8.hpp>
#include <untax/core/half.hpp>
#include <untax/world/launch.hpp>

#include "ops/all_reduce_norm/device_schedule.hpp"
#include "ops/all_reduce_norm/planning.hpp"
#include "ops/all_reduce_norm/workload.hpp"
#include "ops/common/epochs_test.hpp"
#include "ops/plan_check/check.hpp"

namespace untax::testing {
namespace {

constexpr pattern patterns[] = {pattern::automatic, pattern::bulk_synchronous,
                                pattern::fused_sequential, pattern::fused_specialized};

struct norm_case {
  all_reduce_norm_problem problem;
  operator_options options;
  int world = 1;
  int epochs = 3;
  std::uint64_t seed = 1;

  [[nodiscard]] std::string name() const {
    return fmt::format(
        "W {}, tokens {}, hidden {}, {}, out {}, {}, phases {}, workers {}, senders {}, tile {}, "
        "seed {}",
        world, problem.tokens, problem.hidden, name_of(problem.type), name_of(problem.output),
        name_of(options.how), options.phases, options.workers, options.senders, options.tile_m,
        seed);
  }
};

std::vector<std::byte> check_case(const norm_case& c) {
  SCOPED_TRACE(c.name());
  world_options settings;
  settings.heap_bytes = heap_for(c.problem, c.world, c.options.phases);
  return same_at_all_ranks(check_epochs(c, settings, tolerance_of(c.problem), [&](world& w) {
    return norm_workload(w, c.problem, c.options, c.seed);
  }));
}

TEST(all_reduce_norm, is_right_for_random_tokens_worlds_and_patterns) {
  for (std::uint64_t seed = 1; seed <= 250 && !::testing::Test::HasFailure(); ++seed) {
    std::mt19937_64 random(seed);
    const auto between = [&](std::int64_t low, std::int64_t high) {
      return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    };
    norm_case c;
    c.seed = seed;
    c.world = static_cast<int>(between(1, 8));
    c.problem = {.tokens = between(1, 70), .hidden = between(1, 90)};
    c.problem.type = static_cast<dtype>(between(0, 2));
    c.problem.output = static_cast<norm_output>(between(0, 2));
    c.options.how = patterns[between(0, 3)];
    c.options.launch = static_cast<launch_mode>(between(0, 1));
    c.options.phases = static_cast<int>(between(0, 2));
    c.options.workers = static_cast<int>(between(1, 3));
    c.options.senders = static_cast<int>(between(1, 2));
    c.options.tile_m = between(0, 9);
    check_case(c);
  }
}

TEST(all_reduce_norm, is_right_for_sizes_that_models_have) {
  for (const std::int64_t hidden : {2880, 16384}) {
    for (const std::int64_t tokens : {1, 17}) {
      for (const auto output : {norm_output::same, norm_output::e4m3_per_token}) {
        norm_case c;
        c.world = 2;
        c.problem = {.tokens = tokens, .hidden = hidden, .output = output};
        check_case(c);
      }
    }
  }
}

// A row is added and normalised in the same order at every rank, and for any split into tiles.
TEST(all_reduce_norm, has_the_same_bits_at_every_rank_in_every_configuration) {
  for (const auto output : {norm_output::same, norm_output::e4m3, norm_output::e4m3_per_token}) {
    std::set<std::vector<std::byte>> bits;
    for (const pattern how : patterns) {
      for (const int phases : {1, 2}) {
        for (const std::int64_t tile : {1, 5}) {
          norm_case c;
          c.world = 3;
          c.problem = {.tokens = 20, .hidden = 50, .output = output};
          c.options = {.how = how, .workers = 2, .phases = phases, .tile_m = tile};
          bits.insert(check_case(c));
        }
      }
    }
    EXPECT_EQ(bits.size(), 1U) << name_of(output);
  }
}

/// Results go to the caller's memory, x to the place of the residual. Each of two runs adds to x.
TEST(all_reduce_norm, writes_to_the_given_address) {
  constexpr std::int64_t tokens = 5, hidden = 4;
  for (const int phases : {1, 2}) {
    run_threads(3, [&](world& w) {
      all_reduce_norm op(w, {.tokens = tokens, .hidden = hidden, .type = dtype::f32, .epsilon = 0},
                         {.phases = phases});
      EXPECT_NE(op.explain().find(phases == 1 ? "1 phase" : "2 phases"), std::string::npos);
      const std::vector<float> in(tokens * hidden, static_cast<float>(w.rank() + 1));
      const std::vector<float> weight(hidden, 3.0F);
      std::vector<float> x(tokens * hidden, 10.0F);
      std::vector<float> out(tokens * hidden, -1.0F);
      for (int run = 1; run <= 2; ++run) {
        op.run({{in.data(), tokens, hidden}, {x.data(), tokens, hidden}, weight.data()},
               {x.data(), out.data()});
        for (const float value : x) EXPECT_EQ(value, 10.0F + 6.0F * static_cast<float>(run));
        for (const float value : out) EXPECT_FLOAT_EQ(value, 3.0F);
      }
      // The residual of the next layer is the operator's own x.
      const auto own = op.result();
      op.run({{in.data(), tokens, hidden}, {x.data(), tokens, hidden}, weight.data()});
      op.run({{in.data(), tokens, hidden},
              {static_cast<const float*>(own.x), tokens, hidden},
              weight.data()});
      for (std::int64_t i = 0; i < tokens * hidden; ++i)
        EXPECT_EQ(static_cast<const float*>(own.x)[i], 34.0F);
    });
  }
}

/// 257 and 259 are no bf16 numbers: x is 256 and 260, and these are normalised.
TEST(all_reduce_norm, normalises_x_as_it_is_stored) {
  run_threads(2, [](world& w) {
    all_reduce_norm op(w, {.tokens = 1, .hidden = 2, .type = dtype::bf16, .epsilon = 0});
    const bf16 in[] = {bf16(128.0F), bf16(128.0F)}, residual[] = {bf16(1.0F), bf16(3.0F)};
    const bf16 weight[] = {bf16(1.0F), bf16(1.0F)};
    op.run({{in, 1, 2}, {residual, 1, 2}, weight});
    const auto* const out = static_cast<const bf16*>(op.result().out);
    EXPECT_EQ(static_cast<float>(out[0]), 254.0F / 256.0F);
    EXPECT_EQ(static_cast<float>(out[1]), 258.0F / 256.0F);
  });
}

TEST(all_reduce_norm, rows_of_zeros_stay_zero) {
  run_threads(2, [](world& w) {
    all_reduce_norm op(
        w, {.tokens = 2, .hidden = 3, .type = dtype::f32, .output = norm_output::e4m3_per_token});
    const std::vector<float> zeros(6, 0.0F);
    op.run({{zeros.data(), 2, 3}, {zeros.data(), 2, 3}, zeros.data()});
    const auto own = op.result();
    for (int i = 0; i < 6; ++i)
      EXPECT_EQ(static_cast<const std::uint8_t*>(own.out)[i] & 0x7f, 0);  // either sign
    EXPECT_EQ(own.scales[0], 1.0F);
  });
}

template <class Body>
std::string text_of_error(Body&& body) {
  try {
    body();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument) << e.what();
    return e.what();
  }
  return "nothing";
}

TEST(all_reduce_norm, refuses_impossible_problems) {
  run_threads(1, [](world& w) {
    const auto planning = [&](const all_reduce_norm_problem& p, const operator_options& o = {}) {
      return text_of_error([&] { all_reduce_norm op(w, p, o); });
    };
    EXPECT_NE(planning({.tokens = 0, .hidden = 8}).find("tokens is 0"), std::string::npos);
    EXPECT_NE(planning({.tokens = 1, .hidden = 16385}).find("16384 at most"), std::string::npos);
    EXPECT_NE(planning({.tokens = 1, .hidden = 8, .epsilon = -1}).find("epsilon is -1"),
              std::string::npos);
    EXPECT_NE(planning({.tokens = 1, .hidden = 8}, {.how = pattern::bulk_library})
                  .find("no pattern bulk_library"),
              std::string::npos);
    EXPECT_NE(planning({.tokens = 1, .hidden = 8}, {.phases = 3}).find("phases is 3"),
              std::string::npos);

    all_reduce_norm op(w,
                       {.tokens = 2, .hidden = 4, .type = dtype::f32, .output = norm_output::e4m3});
    std::vector<float> in(8), residual(8), weight(4), x(8), out(8);
    const auto running = [&](const void* from, const void* more, void* sum, void* normed,
                             float scale) {
      return text_of_error([&] {
        op.run({{from, dtype::f32, 2, 4}, {more, dtype::f32, 2, 4}, weight.data(), scale},
               {sum, normed});
      });
    };
    EXPECT_EQ(running(in.data(), x.data(), x.data(), out.data(), 1), "nothing");
    EXPECT_NE(running(in.data(), residual.data(), in.data(), out.data(), 1).find("in and the"),
              std::string::npos);
    EXPECT_NE(running(in.data(), residual.data(), x.data(), x.data() + 1, 1).find("x and the"),
              std::string::npos);
    EXPECT_NE(running(in.data(), out.data() + 4, out.data() + 2, x.data(), 1).find("not x"),
              std::string::npos);
    EXPECT_NE(running(in.data(), residual.data(), nullptr, out.data(), 1).find("x is null"),
              std::string::npos);
    EXPECT_NE(running(in.data(), residual.data(), x.data(), nullptr, 1).find("out is null"),
              std::string::npos);
    EXPECT_NE(running(in.data(), residual.data(), x.data(), out.data(), 0).find("scale is 0"),
              std::string::npos);
  });
}

// There is one scale for each row: memory right before and right behind the scales is free.
TEST(all_reduce_norm, has_as_many_scales_as_rows) {
  constexpr std::int64_t most = 5;
  for (const std::int64_t tokens : {most, std::int64_t{2}}) {
    const std::int64_t hidden = tokens == most ? 2 : most;
    run_threads(1, [&](world& w) {
      all_reduce_norm op(w, {.tokens = tokens,
                             .hidden = hidden,
                             .type = dtype::f32,
                             .output = norm_output::e4m3_per_token});
      const std::int64_t count = tokens * hidden;
      std::vector<float> one(40), in(10), residual(10), weight(most), x(10), out(10);
      float* const middle = one.data() + 15;
      // Matrices that are not in the middle do not overlap with it.
      const auto with_scales = [&](const float* a, float* sum, float* normed, float* scales) {
        return text_of_error([&] {
          op.run({{a, tokens, hidden}, {residual.data(), tokens, hidden}, weight.data()},
                 {sum, normed, scales});
        });
      };
      const std::int64_t floats_of_out = (count + 3) / 4;  // of its bytes
      for (const std::int64_t at : {-tokens, count}) {
        EXPECT_EQ(with_scales(middle, x.data(), out.data(), middle + at), "nothing") << at;
        EXPECT_EQ(with_scales(in.data(), middle, out.data(), middle + at), "nothing") << at;
      }
      for (const std::int64_t at : {-tokens, floats_of_out})
        EXPECT_EQ(with_scales(in.data(), x.data(), middle, middle + at), "nothing") << at;
      for (const std::int64_t at : {-tokens + 1, count - 1}) {
        const auto says = [](const std::string& text, const char* what) {
          return text.find(what) != std::string::npos;
        };
        EXPECT_TRUE(says(with_scales(middle, x.data(), out.data(), middle + at), "in and")) << at;
        EXPECT_TRUE(says(with_scales(in.data(), middle, out.data(), middle + at), "x and")) << at;
        if (at < floats_of_out) {
          EXPECT_TRUE(says(with_scales(in.data(), x.data(), middle, middle + at), "out and")) << at;
        }
      }
    });
  }
}

// Where owners pass rows on, peers write the operator's own results, and nothing behind them.
TEST(all_reduce_norm, accepts_inputs_directly_behind_its_own_results) {
  constexpr std::int64_t tokens = 64, hidden = 32, count = tokens * hidden;
  world_options unguarded;
  unguarded.heap_guards = false;
  const auto at_a_rank = [](world& w) {
    const all_reduce_norm_problem problem{.tokens = tokens, .hidden = hidden, .type = dtype::f32};
    const std::size_t room = room_of(problem).bytes;
    const auto hole = w.allocate<std::byte>(room, "a place for the results");
    const auto in = w.allocate<float>(count, "in");
    w.free(hole);
    all_reduce_norm op(w, problem, {.phases = 2});
    ASSERT_EQ(static_cast<const std::byte*>(op.result().x) + room, static_cast<void*>(in.local()));
    std::fill_n(in.local(), count, 1.0F);
    std::vector<float> residual(count), weight(hidden, 1.0F), x(count), out(count);
    const auto run_with = [&](const float* a) {
      return text_of_error([&] {
        op.run({{a, tokens, hidden}, {residual.data(), tokens, hidden}, weight.data()},
               {x.data(), out.data()});
      });
    };
    EXPECT_EQ(run_with(in.local()), "nothing");
    EXPECT_EQ(x, std::vector<float>(count, 2.0F));
    EXPECT_NE(run_with(in.local() - 1).find("in and the"), std::string::npos);
    w.barrier();
  };
  run_threads(2, at_a_rank, unguarded);
}

// All numbers of the type, what lies in the middle between two of them, and what is beyond.
TEST(e4m3, rounds_to_nearest_even_and_saturates) {
  const auto value_of = [](int bits) {
    const int exponent = bits >> 3 & 15;
    const int mantissa = bits & 7;
    return exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  };
  for (int bits = 0; bits < 0x7f; ++bits) {
    const auto value = static_cast<float>(value_of(bits));
    e4m3 same;
    same.bits = static_cast<std::uint8_t>(bits);
    EXPECT_EQ(static_cast<float>(same), value) << bits;
    EXPECT_EQ(e4m3(value).bits, bits);
    EXPECT_EQ(e4m3(-value).bits, bits | 0x80);
    if (bits == 0x7e) continue;
    const auto middle = static_cast<float>((value_of(bits) + value_of(bits + 1)) / 2);
    EXPECT_EQ(e4m3(middle).bits, bits + bits % 2) << bits;
    EXPECT_EQ(e4m3(std::nextafter(middle, 0.0F)).bits, bits);
    EXPECT_EQ(e4m3(std::nextafter(middle, 1000.0F)).bits, bits + 1);
  }
  EXPECT_EQ(e4m3(449.0F).bits, 0x7e);
  EXPECT_EQ(e4m3(-INFINITY).bits, 0xfe);
  EXPECT_EQ(e4m3(NAN).bits & 0x7f, 0x7f);
  EXPECT_TRUE(std::isnan(static_cast<float>(e4m3(NAN))));
}

all_reduce_norm_problem on_gpu_of(std::int64_t tokens, std::int64_t hidden) {
  all_reduce_norm_problem problem;
  problem.tokens = tokens;
  problem.hidden = hidden;
  problem.type = dtype::bf16;
  return problem;
}

/// The findings about plans for GPUs with few multiprocessors, after `change`. With few tokens
/// blocks share rows.
template <class Change>
device_findings on_gpus(std::int64_t tokens, int ranks, int phases, const Change& change) {
  constexpr int multiprocessors = 9;
  const all_reduce_norm_problem problem = on_gpu_of(tokens, 8200);
  device_findings findings;
  std::vector<norm_model> models;
  for (int rank = 0; rank < ranks; ++rank) {
    norm_model& m =
        models.emplace_back(norm_plan_of(problem, ranks, rank, phases, multiprocessors));
    change(m);
    for (const std::string& fault : m.faults()) findings.faults.push_back(fault);
  }
  if (findings.faults.empty()) plan_check::prove(models, findings);
  return findings;
}

TEST(all_reduce_norm, is_planned_right_for_gpus) {
  for (const std::int64_t tokens : {1, 2, 3, 7, 12}) {
    for (int ranks = 1; ranks <= 5; ++ranks) {
      for (const int phases : {1, 2}) {
        SCOPED_TRACE(fmt::format("{} tokens, {} ranks, {} phases", tokens, ranks, phases));
        const auto faults_with = [&](const auto& change) {
          return on_gpus(tokens, ranks, phases, change).faults;
        };
        EXPECT_TRUE(faults_with([](norm_model&) {}).empty());
        // Every rank receives from every rank in each run, so that no reserve is needed.
        EXPECT_TRUE(faults_with([](norm_model& m) { m.reserves = false; }).empty());
        const bool passes_on = phases == 2 && ranks > 1;
        EXPECT_EQ(faults_with([](norm_model& m) { m.closes = false; }).empty(), !passes_on);
        if (ranks == 1) continue;
        EXPECT_FALSE(faults_with([](norm_model& m) {
                       if (m.plan.how.own_rank == 0) m.plan.how.tokens += 1;
                     }).empty());
        EXPECT_FALSE(faults_with([](norm_model& m) {
                       if (m.plan.how.own_rank == 1) m.plan.how.own_rank = 0;
                     }).empty());
      }
    }
  }
}

TEST(all_reduce_norm, shares_long_rows_of_few_tokens_between_blocks) {
  const auto plan = [](std::int64_t tokens, std::int64_t hidden, int phases) {
    return norm_plan_of(on_gpu_of(tokens, hidden), 2, 0, phases, 132);
  };
  // A block takes 4096 elements at a time.
  EXPECT_EQ(plan(1, 8, 1).how.spread, 1);
  EXPECT_EQ(plan(1, 4096, 1).how.spread, 1);
  EXPECT_EQ(plan(1, 4104, 1).how.spread, 2);
  EXPECT_EQ(plan(1, 8200, 1).how.spread, 4);
  EXPECT_EQ(plan(1, 16384, 1).how.spread, 4);
  // Clusters take at most half of the multiprocessors.
  EXPECT_EQ(plan(16, 16384, 1).how.spread, 4);
  EXPECT_EQ(plan(17, 16384, 1).how.spread, 2);
  EXPECT_EQ(plan(33, 16384, 1).how.spread, 2);
  EXPECT_EQ(plan(34, 16384, 1).how.spread, 1);
  EXPECT_EQ(plan(16, 16384, 1).blocks, 64);
  EXPECT_EQ(plan(16, 16384, 1).workers(), 16);
  EXPECT_EQ(plan(1000, 16384, 1).blocks, 132);
  // Owners pass on where there are many.
  EXPECT_EQ(plan(2, 16384, 2).how.spread, 1);
}

TEST(all_reduce_norm, takes_two_phases_on_gpus_for_many_bytes) {
  const auto phases = [](std::int64_t tokens, std::int64_t hidden, int ranks) {
    return plan_norm_on_gpus(ranks, 0, on_gpu_of(tokens, hidden), {}).plan.phases;
  };
  EXPECT_EQ(phases(8192, 4096, 1), 1);
  EXPECT_EQ(phases(512, 4096, 2), 1);
  EXPECT_EQ(phases(1024, 4096, 2), 2);
  EXPECT_EQ(phases(512, 16384, 2), 2);
  EXPECT_EQ(phases(128, 4096, 4), 1);
  EXPECT_EQ(phases(256, 4096, 4), 2);
  EXPECT_EQ(phases(63, 4096, 8), 1);
  EXPECT_EQ(phases(64, 4096, 8), 2);
}

}  // namespace
}  // namespace untax::testing
