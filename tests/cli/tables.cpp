// Every table fits into 80 columns: no cell is cut or broken, no line is wider. The figures are as
// wide as those of the machines that were measured, so suites that need GPUs are looked at, too.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cli/bench_reports.hpp"
#include "cli/check_gpu.hpp"
#include "cli/doctor.hpp"
#include "cli/pattern_table.hpp"
#include "cli/taxes_predicted.hpp"

namespace untax::cli::test {
namespace {

constexpr text_style plain{.utf8 = true, .colour = false};
constexpr int as_wide_as_it_gets = 1000;

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The words between gaps of two blanks or more.
std::set<std::string> cells_of(const std::string& text) {
  std::set<std::string> cells;
  for (std::string line : lines_of(text)) {
    while (!line.empty()) {
      const std::size_t end = std::min(line.find("  "), line.size());
      if (end > 0) cells.insert(line.substr(0, end));
      line.erase(0, std::min(line.find_first_not_of(' ', end), line.size()));
    }
  }
  return cells;
}

bool is_rule(const std::string& cell) { return cell.starts_with("\u2500"); }

/// `render` takes a width. Titles and remarks are broken later, as all text is, so only rows of
/// tables count: lines with several cells.
template <class Render>
void expect_fits(const Render& render) {
  const std::set<std::string> whole = cells_of(render(as_wide_as_it_gets));
  for (const int columns : {80, 100}) {
    const std::string text = render(columns);
    for (const std::string& line : lines_of(text)) {
      if (line.find("  ") != std::string::npos || is_rule(line)) {
        EXPECT_LE(columns_of(line), static_cast<std::size_t>(columns)) << line << "\n" << text;
      }
    }
    for (const std::string& cell : cells_of(text)) {
      if (!is_rule(cell)) {
        EXPECT_TRUE(whole.contains(cell)) << "\"" << cell << "\" is part of a cell:\n" << text;
      }
    }
  }
}

spread about(double median) { return {median, 0.9 * median, 1.1 * median}; }

constexpr pattern long_name = pattern::fused_warp_specialized;

TEST(tables, gemm_fits) {
  bench::gemm_report report;
  report.device = "NVIDIA H200";
  report.library = "cuBLASLt 13.1.0";
  for (const std::int64_t m : {1, 64, 128, 16384}) {
    bench::gemm_row& row = report.rows.emplace_back();
    row.m = m;
    row.n = 57344;
    row.k = 28672;
    row.time = row.library_time = about(12345.6e-6);
    row.invariant_time = about(2 * 12345.6e-6);
    row.traced_time = about((m == 64 ? 4 : 1) * 12345.6e-6);
  }
  report.invariant = true;
  EXPECT_TRUE(report.cost_of_trace().where.empty());
  report.traced = true;
  EXPECT_DOUBLE_EQ(report.cost_of_trace().mean, std::sqrt(2));
  EXPECT_DOUBLE_EQ(report.cost_of_trace().most, 4);
  EXPECT_EQ(report.cost_of_trace().where, "m 64, n 57344, k 28672");
  EXPECT_DOUBLE_EQ(report.cost_of_invariant(), 2);
  for (const bool drawn : {true, false}) {
    report.drawn = drawn;
    expect_fits([&](int columns) { return text_of(report, columns, plain); });
  }
  // A suite of few rows alone has no other table.
  report.rows.resize(2);
  EXPECT_EQ(text_of(report, 80, plain).find("More rows"), std::string::npos);
}

TEST(tables, host_fits) {
  std::vector<bench::comparison> all(1);
  all.front() = {"all_gather_gemm, 2 ranks", "one OpenBLAS call, 2 threads", about(230.8e-3),
                 about(215.8e-3)};
  expect_fits([&](int columns) { return text_of(all, columns, plain); });
}

TEST(tables, rma_fits) {
  bench::rma_report report{8, "NVIDIA H200", {}};
  for (const auto which : {bench::rma_table::blocks, bench::rma_table::sizes,
                           bench::rma_table::pairs, bench::rma_table::all}) {
    report.figures.push_back({which, "tile get, rows 12 KB apart", "stores by block", 0, 7, 132,
                              std::int64_t{1} << 30, about(2.5e-3), 450e9, 800e9});
  }
  report.figures.push_back({bench::rma_table::latency, "barrier of 8 ranks in a kernel",
                            "small_put_with_signal", 0, 1, 1, 0, about(12e-6), 1.3e-6, 2e-6});
  report.figures.push_back({bench::rma_table::atomics,
                            "compare-exchange, one word, all threads of both ranks", "relaxed", 0,
                            1, 132, 0, about(1.5e-9)});
  expect_fits([&](int columns) { return text_of(report, columns, plain); });
}

TEST(tables, collectives_fit) {
  bench::collective_report report{8, dtype::bf16, "NVIDIA H200", "NCCL 2.28.9", {}};
  for (const auto kind : bench::all_collective_kinds()) {
    for (const std::int64_t bytes : {8 << 10, 64 << 10, 256 << 20, 1 << 30}) {
      report.rows.push_back({kind,
                             bytes,
                             {{"NCCL", true, "", about(12345e-6), ""},
                              {"automatic direct", false, "", about(12345e-6), ""},
                              {"direct", false, "", {}, "no room for chunks of 120 KB"}}});
    }
  }
  const auto render = [&](int columns) { return text_of(report, columns, plain); };
  expect_fits(render);
  EXPECT_NE(render(80).find("8 KB, direct: no room"), std::string::npos);
}

TEST(tables, attention_fits) {
  bench::attention_report report{8, dtype::bf16, "NVIDIA H200", "NCCL 2.28.9", 4.6e12, {}};
  bench::attention_row row;
  row.name = "mha-64";
  row.problem = {.batch = 16, .heads = 96, .kv_heads = 12, .head_dim = 128, .keys = 524288};
  for (const char* way : {"local", "fused_sequential", "producer_consumer", "bulk_synchronous",
                          "bulk_library", "bulk_library eager"})
    row.figures.push_back({way, about(12345e-6)});
  report.rows = {row};
  expect_fits([&](int columns) { return text_of(report, columns, plain); });
}

TEST(tables, overlap_fits) {
  bench::overlap_report report;
  report.operator_name = "all_gather_gemm";
  report.ranks = 8;
  report.device = "NVIDIA H200";
  report.library = "cuBLASLt 13.1.0, NCCL 2.28.9";
  report.link_rate = 450e9;
  report.memory_rate = 4.6e12;
  bench::overlap_row row;
  row.problem = {.m = 16384, .n = 57344, .k = 28672, .gather = gather_axis::k};
  row.compute_bound = 12e-3;
  row.tolerance = 1e-2;
  for (const pattern how : {pattern::copy_engine, long_name}) {
    pattern_figure& f = row.figures.emplace_back();
    f.by = name_of(how);
    f.how = how;
    f.time = about(12.3456e-3);
    f.error = how == long_name ? 1e-3 : 1;
  }
  for (const char* way :
       {library_eager, library_graph, library_gemm_alone, own_gemm_alone, "NCCL alone"}) {
    pattern_figure& f = row.figures.emplace_back();
    f.by = way;
    f.library = true;
    f.time = about(12.3456e-3);
  }
  for (const char* way : {automatic_exact, automatic_capacity}) {
    pattern_figure& f = row.figures.emplace_back();
    f.by = way;
    f.how = pattern::bulk_library;
    f.asked = pattern::automatic;
    f.time = about(12.5e-3);
    f.error = 1e-3;
  }
  report.rows = {row, row};
  const auto render = [&](int columns) { return text_of(report, columns, plain); };
  expect_fits(render);
  EXPECT_NE(render(80).find("WRONG"), std::string::npos);
  EXPECT_EQ(row.best()->by, name_of(long_name)) << "no pattern is called automatic";
  const std::string text = render(80);
  for (const char* line :
       {"bulk_library graph / automatic: mean 0.988, least 0.988",
        "bulk_library graph / automatic, capacity, least: 0.988 (at least 0.98, met)"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
}

TEST(tables, shared_fits) {
  bench::shared_report report;
  report.device = "NVIDIA H200";
  for (const int ranks : {2, 4}) {
    bench::shared_row row;
    row.operator_name = "gemm_all_scatter";
    row.ranks = ranks;
    row.problem = {
        .m = 16384, .n = 57344, .k = 28672, .type = dtype::bf16, .gather = gather_axis::k};
    for (const double error : {0.0, 1.0}) {
      pattern_figure& f = row.figures.emplace_back();
      f.by = name_of(long_name);
      f.time = about(12.3456e-3);
      f.error = error;
    }
    row.figures.back().traced_time = about(1.03 * 12.3456e-3);
    report.rows.push_back(row);
  }
  report.traced = true;
  EXPECT_NEAR(report.cost_of_trace().mean, 1.03, 1e-9);
  EXPECT_FALSE(report.cost_of_trace().met());
  const auto render = [&](int columns) { return text_of(report, columns, plain); };
  expect_fits(render);
  EXPECT_NE(render(80).find("gemm_all_scatter, 4 ranks"), std::string::npos);
}

TEST(tables, tuning_fits) {
  const tuned_problem problem{"all_gather_gemm", gather_axis::k, 8, 16384, 57344, 28672};
  tuning_table measured;
  measured.entries = {{problem, {{long_name, 12.3e-3}, {pattern::bulk_library, 12.4e-3}}}};
  expect_fits([&](int columns) { return text_of(measured, columns, plain); });
  bench::tune_check check;
  check.rows = {{problem, long_name, long_name, 12.3e-3, 12.3e-3, {}, ""},
                {problem, long_name, pattern::producer_consumer, 12.5e-3, 12.3e-3, {}, ""}};
  expect_fits([&](int columns) { return text_of(check, columns, plain); });
}

TEST(tables, patterns_fit) {
  trial_subject what;
  what.rate_unit = "GFLOP/s";
  what.work = [](int) { return 1e13; };
  std::vector<bench::pattern_result> results = {
      {pattern::automatic, long_name, "", about(12.3456e-3), 1e-8, ""},
      {long_name, long_name, "", about(12.3456e-3), 1, ""},
      {pattern::bulk_library, pattern::bulk_library, "", about(12.3456e-3), 1e-8, ""}};
  const auto render = [&](int columns) {
    return pattern_table(what, 8, results, 1e-5, columns, plain);
  };
  expect_fits(render);
  EXPECT_NE(render(80).find("automatic is fused_warp_specialized"), std::string::npos);
}

TEST(tables, checks_of_gpus_fit) {
  gpu_check_report report;
  report.request.entry.name = "all_gather_gemm";
  gpu_check_row row{"fused_warp_specialized, gather rows, push", {}};
  row.found.transfers = row.found.lanes = row.found.waits = 12345678;
  report.rows = {row};
  expect_fits([&](int columns) { return table_of(report, columns, plain); });
}

TEST(tables, peers_fit) {
  device_survey survey;
  survey.devices.resize(8);
  peer_facts peer;
  peer.access = true;
  peer.push = peer.pull = 389e9;
  peer.signal_time = 1.3e-6;
  survey.peers.assign(8, std::vector<peer_facts>(8, peer));
  expect_fits([&](int columns) { return peers_of(survey, columns, plain); });
}

TEST(tables, predicted_scales_fit) {
  scale_point point;
  point.ranks = 1024;
  point.whole = point.fused = 1.234567;
  for (const tax_part& part : tax_parts) point.parts.*part.value = 1.234567;
  expect_fits([&](int columns) { return text_of({point}, columns, true); });
}

}  // namespace
}  // namespace untax::cli::test
