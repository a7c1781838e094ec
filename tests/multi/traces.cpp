// Traces of ranks that are processes: parts add up to the time of each run, and a planted fault is
// found at the right rank.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include <fmt/format.h>

#include <untax/flow/fault_plan.hpp>
#include <untax/trace/json.hpp>

#include "ranks.hpp"
#include "tests/trace/support.hpp"

namespace {

using namespace multi_test;
using namespace untax::testing;
using untax::trace_part;
using untax::world;

constexpr const char* fault_variable = "UNTAX_TEST_FAULT";
constexpr const char* file_variable = "UNTAX_TEST_TRACE";
constexpr auto late = 200ms;

untax::operator_options options_with(const std::string& fault) {
  untax::operator_options options = traced_way(untax::pattern::fused_specialized);
  if (fault == "launch") options.faults = std::make_shared<late_launch>(late);
  if (fault == "link") {
    untax::fault slow{untax::fault_kind::delay, 1, untax::channel_verb::publish, struck_epoch};
    slow.duration = late;
    options.faults = std::make_shared<untax::fault_plan>(slow);
  }
  return options;
}

const rank_body traced("traced", [] {
  const std::string fault = std::getenv(fault_variable);
  untax::start_trace({.path = std::getenv(file_variable)});
  untax::world_options sizes;
  sizes.heap_bytes = untax::heap_for(traced_problem, launched_size()) * 2;
  {
    world w = world::from_environment(sizes);
    w.run([&](world& self) {
      untax::workload load(self, untax::operator_named("all_gather_gemm"), traced_problem,
                           options_with(fault), 1);
      for (std::uint64_t epoch = 1; epoch <= epochs; ++epoch) {
        self.barrier();
        if (fault == "entry" && self.rank() == 1 && epoch == struck_epoch)
          std::this_thread::sleep_for(late);
        load.run();
      }
    });
  }
  (void)untax::stop_trace();
});

untax::trace_record traced_processes(const std::string& fault) {
  const std::string path = fmt::format(
      "{}/untax-trace-{}-{}", std::filesystem::temp_directory_path().string(), getpid(), fault);
  const outcome o = launch("traced", 2, {{fault_variable, fault}, {file_variable, path}});
  expect_ok(o);
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove(path);
  return untax::trace_from_json(text);
}

TEST(traces_of_processes, name_the_rank_and_the_cause) {
  struct planted {
    const char* fault;
    trace_part part;
    int untax::path_piece::*where;
  };
  const planted plants[] = {{"entry", trace_part::entry, &untax::path_piece::rank},
                            {"link", trace_part::in_flight, &untax::path_piece::peer},
                            {"launch", trace_part::launch, &untax::path_piece::rank}};
  for (const planted& p : plants) {
    const untax::trace_record record = traced_processes(p.fault);
    const diagnosis result = diagnosed(record);
    EXPECT_EQ(result.worst.part, p.part) << p.fault;
    EXPECT_EQ(result.worst.*p.where, 1) << p.fault;
    EXPECT_GE(result.seconds, 0.5e-3 * static_cast<double>(late.count())) << p.fault;
    for (const auto& account : untax::accounts_of(record)) {
      EXPECT_EQ(account.runs.size(), epochs);
      for (const untax::run_account& run : account.runs) {
        const double near = run.wall() * 0.01 + 1e-9;
        EXPECT_NEAR(run.path.total(), run.wall(), near);
        for (const auto& rank : run.ranks) EXPECT_NEAR(rank.total(), run.wall(), near);
      }
    }
  }
}

}  // namespace
