// Operators on a machine of made-up numbers: what holds whatever the numbers are.
#include <algorithm>
#include <ctime>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include <untax/core/error.hpp>

#include <untax/tile/shard.hpp>

#include "ops/timing/judgement.hpp"
#include "ops/timing/predictor.hpp"
#include "random_work.hpp"
#include "tests/errors.hpp"
#include "tests/slower_build.hpp"

namespace timing_test {
namespace {

using untax::calibration;
using untax::predictor;
using untax::timed_case;

constexpr const char* gemm_ways[] = {
    "bulk_library graph", "bulk_synchronous",  "producer_consumer",     "copy_engine",
    "fused_sequential",   "fused_specialized", "fused_warp_specialized"};
constexpr const char* sum_ways[] = {"bulk_library graph", "producer_consumer", "fused_sequential",
                                    "fused_specialized", "fused_warp_specialized"};
constexpr const char* attention_ways[] = {"bulk_library graph", "bulk_synchronous",
                                          "producer_consumer", "fused_sequential"};

/// Random problems of every operator that is predicted, each in every way.
std::vector<timed_case> random_cases(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t most) { return static_cast<std::int64_t>(random() % most); };
  std::vector<timed_case> cases;
  const int ranks = 2 + static_cast<int>(below(7));
  for (const char* way : gemm_ways) {
    timed_case c;
    c.ranks = ranks;
    c.by = way;
    c.m = std::int64_t{1} << below(13);
    c.n = 8 * (64 + below(900));
    c.k = 8 * (64 + below(900));
    c.op = "all_gather_gemm";
    c.gather = below(2) == 0 ? untax::gather_axis::rows : untax::gather_axis::k;
    cases.push_back(c);
    c.op = "gemm_all_scatter";
    cases.push_back(c);
  }
  for (const char* way : sum_ways) {
    timed_case c;
    c.ranks = ranks;
    c.by = way;
    c.m = 1 + below(1 + below(2) * 4000);
    c.n = 8 * (64 + below(900));
    c.k = 8 * (64 + below(900));
    c.op = below(2) == 0 ? "gemm_reduce_scatter" : "gemm_all_reduce";
    cases.push_back(c);
  }
  for (const char* way : attention_ways) {
    timed_case c;
    c.op = "flash_decode";
    c.by = way;
    c.ranks = ranks;
    c.m = 1 + below(32);
    c.kv_heads = 1 + below(8);
    c.heads = c.kv_heads * 8;
    c.head_dim = 128;
    c.keys = 1024 * (1 + below(30));
    cases.push_back(c);
  }
  for (const char* op : {"all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast"}) {
    for (const char* way : {"NCCL", "untax", "untax direct"})
      cases.push_back({.op = op,
                       .by = way,
                       .ranks = ranks,
                       .bytes = static_cast<double>(std::int64_t{1024} << below(14))});
  }
  return cases;
}

/// Bytes that a rank has to send at least, and seconds that it has to compute.
double bound_of(predictor& p, const timed_case& c) {
  const double others = c.ranks - 1.0;
  const double link = p.numbers().link_rate;
  if (c.op == "flash_decode") {
    timed_case alone = c;
    alone.by = "local";
    return p.predict(alone).seconds;
  }
  if (c.bytes > 0) return c.bytes / c.ranks * (c.op == "all_to_all" ? others : 1) / link;
  const std::int64_t columns =
      c.op == "gemm_all_scatter" ? untax::sharding{c.n, c.ranks, 8}.of(c.ranks - 1).size : c.n;
  const std::int64_t depth = c.sums() ? c.k / c.ranks : c.k;
  const double flops = 2.0 * static_cast<double>(c.m * columns) * static_cast<double>(depth);
  return flops / 1700 / 2 / 132 / p.numbers().hertz;
}

TEST(predicted, no_quicker_than_the_bound_and_no_slower_for_a_faster_link) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    timing::machine m = sample_machine();
    predictor p(m, {});
    m.numbers.link_rate *= 2;
    m.numbers.read_rate *= 2;
    predictor faster(m, {});
    for (const timed_case& c : random_cases(seed)) {
      const double seconds = p.predict(c).seconds;
      EXPECT_GE(seconds, bound_of(p, c)) << c.text() << ", seed " << seed;
      EXPECT_LE(faster.predict(c).seconds, seconds * 1.01) << c.text() << ", seed " << seed;
      EXPECT_EQ(p.predict(c).seconds, seconds) << "not the same again";
    }
  }
}

/// A rank that owns a part of a sum gets that part from each other rank, and passes it on to all of
/// them where all are to have it. A gather, or a scatter, moves every element to all other ranks.
TEST(predicted, links_carry_the_bytes_of_operators) {
  const timing::machine m = sample_machine();
  predictor p(m, {});
  constexpr int ranks = 4;
  constexpr double others = ranks - 1;
  const auto carried = [&](const char* op, const char* way) {
    const timed_case c{.op = op, .by = way, .ranks = ranks, .m = 4096, .n = 4096, .k = 4096};
    double bytes = 0;
    for (const timing::lane& l : p.simulate(c).detail.lanes) bytes += l.what == 'o' ? l.bytes : 0;
    return bytes;
  };
  constexpr double matrix = 2.0 * 4096 * 4096;
  for (const char* way : gemm_ways) {
    if (std::string(way).starts_with("bulk_library")) continue;
    EXPECT_NEAR(carried("all_gather_gemm", way), others * matrix, 1) << way;
    EXPECT_NEAR(carried("gemm_all_scatter", way), others * matrix, 1) << way;
  }
  for (const char* way : sum_ways) {
    if (std::string(way).starts_with("bulk_library")) continue;
    EXPECT_NEAR(carried("gemm_reduce_scatter", way), others * matrix, 1) << way;
    EXPECT_NEAR(carried("gemm_all_reduce", way), 2 * others * matrix, 1) << way;
  }
}

TEST(predicted, a_fit_reproduces_its_figures) {
  const timing::machine m = sample_machine();
  untax::measurements known;
  predictor raw(m, {});
  double factor = 1.1;
  for (timed_case& c : random_cases(7)) {
    c.ranks = 2;
    known.figures.push_back({c, raw.simulate(c).simulated * factor, "here"});
    factor = factor > 1.5 ? 0.8 : factor + 0.07;
  }
  predictor fitted(m, untax::fit(m, known));
  const untax::judgement result = untax::judge(fitted, known);
  EXPECT_LT(result.mean_error, 1e-9);
  EXPECT_EQ(result.within_quarter > 0.999, true);
  // A judge that finds nothing wrong could not tell.
  for (untax::figure& f : known.figures) f.seconds *= 1.5;
  const untax::judgement wrong = untax::judge(fitted, known);
  EXPECT_NEAR(wrong.mean_error, 1.0 / 3, 1e-9);
  EXPECT_LT(wrong.within_quarter, 0.001);
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

TEST(predicted, a_thousand_ranks_and_a_layer_are_simulated_in_time) {
  timing::machine m = sample_machine();
  m.gpus = 1024;
  m.cards_of_host = 8;
  predictor p(m, {});
  double begin = processor_seconds();
  const timed_case sum{.op = "all_reduce", .by = "untax", .ranks = m.gpus, .bytes = 65536};
  EXPECT_GT(p.predict(sum).seconds, 2 * m.numbers.card_store);
  EXPECT_LT(processor_seconds() - begin, 30 * untax_test::slower_build());
  // A layer of llama-3.1-70b on 8 ranks, few rows and many.
  for (const std::int64_t tokens : {16, 2048}) {
    begin = processor_seconds();
    const timed_case gathered{
        .op = "all_gather_gemm", .by = "fused_sequential", .ranks = 8, .m = tokens, .k = 8192};
    timed_case qkv = gathered;
    qkv.n = 10240 / 8;
    timed_case gate_up = gathered;
    gate_up.n = 57344 / 8;
    timed_case out = gathered;
    out.op = "gemm_reduce_scatter";
    out.n = 8192;
    timed_case down = out;
    down.k = 28672;
    const timed_case attention{.op = "flash_decode",
                               .by = "fused_sequential",
                               .ranks = 8,
                               .m = tokens,
                               .heads = 64,
                               .kv_heads = 8,
                               .head_dim = 128,
                               .keys = 512};
    for (const timed_case& c : {qkv, attention, out, gate_up, down})
      EXPECT_GT(p.predict(c).seconds, 0) << c.text();
    EXPECT_LT(processor_seconds() - begin, untax_test::slower_build()) << tokens;
  }
}

TEST(predicted, no_eager_run_is_quicker_than_its_host) {
  const timing::machine m = sample_machine();
  predictor p(m, {});
  timed_case c{.op = "all_gather_gemm", .by = "", .ranks = 8, .m = 1, .n = 512, .k = 512};
  c.by = "bulk_library eager";
  EXPECT_EQ(p.predict(c).seconds, m.numbers.library_run);
  c.gather = untax::gather_axis::k;
  EXPECT_EQ(p.predict(c).seconds, m.numbers.library_run + m.numbers.launch_eager);
  c.by = "bulk_library graph";
  EXPECT_LT(p.predict(c).seconds, m.numbers.library_run);
}

TEST(predicted, cores_are_refused) {
  timing::machine m = sample_machine();
  m.cores = true;
  m.numbers.processors = 1;
  EXPECT_EQ(timing::to_json(timing::parse_machine(timing::to_json(m), "cores")),
            timing::to_json(m));
  untax_test::expect_error(untax_test::error_of([&] { (void)predictor(m, {}); }),
                           untax::errc::invalid_argument,
                           {"sample describes cores", "--backend host"});
}

TEST(calibrations, are_interpolated_by_size) {
  calibration c;
  c.add({"a", 1, 64, 64}, 1);
  c.add({"a", 4, 64, 64}, 4);
  c.add({"a", 1, 4096, 64}, 16);
  EXPECT_NEAR(c.ratio({"a", 1, 64, 64}), 1, 1e-6);
  EXPECT_NEAR(c.ratio({"a", 4, 64, 64}), 4, 1e-6);
  EXPECT_NEAR(c.ratio({"a", 1, 4096, 64}), 16, 1e-6);
  const double between = c.ratio({"a", 2, 64, 64});
  EXPECT_NEAR(between, 2, 0.01);
  EXPECT_EQ(c.ratio({"b", 1, 64, 64}), 1);
  // Twice measured is the geometric mean.
  c.add({"a", 1, 64, 64}, 4);
  EXPECT_NEAR(c.ratio({"a", 1, 64, 64}), 2, 1e-6);
  const calibration again = untax::parse_calibration(to_json(c), "again");
  EXPECT_NEAR(again.ratio({"a", 2, 64, 64}), c.ratio({"a", 2, 64, 64}), 1e-3);
}

TEST(calibrations, invalid_ones_are_refused) {
  const auto refused = [](const char* text, const char* why) {
    untax_test::expect_error(
        untax_test::error_of([&] { (void)untax::parse_calibration(text, "file"); }),
        untax::errc::invalid_argument, {"file:", why});
  };
  refused("[", "file:1:2: this is not JSON; `untax machine --fit` writes such files");
  refused("[]", "it is not a JSON object");
  refused("{}", "its format has to be");
  const std::string head = R"({"format": "untax-calibration", "format_version": 1, )";
  refused((head + R"("files": []})").c_str(), "\"device\" has to be a text");
  refused((head + R"("device": "x", "files": [], "entries": [["a", 1, 1, 1]]})").c_str(),
          "entry 1 is [\"a\",1,1,1]");
  refused((head + R"("device": "x", "files": [], "entries": [["a", 1, 1, 1, -2]]})").c_str(),
          "above 0");
}

TEST(machines, network_cards_share_the_traffic_to_other_hosts) {
  timing::machine m = sample_machine();
  m.gpus = 16;
  m.gpus_of_host = 8;
  m.cards_of_host = 4;
  // 8 of 15 parts leave the host, through half a card each.
  EXPECT_NEAR(m.seconds_to_send(15e9, 16), 8e9 * 2 / m.numbers.card_rate, 1e-6);
  EXPECT_NEAR(m.seconds_to_send(7e9, 8), 7e9 / m.numbers.link_rate, 1e-6);
  EXPECT_EQ(m.seconds_to_send(7e9, 1), 0);
  m.links = timing::link_kind::pairs;
  EXPECT_NEAR(m.seconds_to_send(7e9, 8), 6e9 / m.numbers.host_rate, 1e-6);
}

}  // namespace
}  // namespace timing_test
