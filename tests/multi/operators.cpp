#include "operators.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include <untax/flow/fault_plan.hpp>
#include <untax/memory/host_memory.hpp>

namespace multi_test {
namespace {

using untax::fault;
using untax::fault_plan;
using untax::fault_site;
using untax::workload;
using untax::world;
using untax::testing::all_cases;
using untax::testing::faulty_case;

constexpr const char* case_variable = "UNTAX_TEST_CASE";
constexpr const char* epochs_variable = "UNTAX_TEST_EPOCHS";
constexpr const char* fault_variable = "UNTAX_TEST_FAULT";
constexpr const char* seed_variable = "UNTAX_TEST_SEED";

std::string text_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr ? text : "";
}

std::uint64_t number_of(const char* variable) { return std::stoull(text_of(variable)); }

std::shared_ptr<fault_plan> plan_from_environment() {
  const std::string text = text_of(fault_variable);
  if (text.empty()) return nullptr;
  return std::make_shared<fault_plan>(fault::parse(text), [](const fault_site&) {
    say(fmt::format("STRUCK {}", untax::host_memory::now()));
  });
}

void run_epochs(world& w, const faulty_case& c, const untax::operator_options& options) {
  const std::uint64_t seed = number_of(seed_variable);
  const std::uint64_t epochs = number_of(epochs_variable);
  workload load(w, c.entry, c.problem, options, seed);
  for (std::uint64_t epoch = 1; epoch <= epochs; ++epoch) {
    load.refresh(seed + epoch);
    load.poison_result();
    load.run();
    if (!(load.relative_error() <= untax::tolerance_of(c.entry, c.problem))) {
      say(fmt::format("WRONG {}", epoch));
      return;
    }
    if (epoch == 1) say("RUNNING");
  }
  say(fmt::format("RIGHT {}", epochs));
}

const rank_body body("operator", [] {
  say(fmt::format("PROCESS {}", getpid()));
  const faulty_case c = all_cases({launched_size()}).at(number_of(case_variable));
  untax::operator_options options = c.options;
  options.faults = plan_from_environment();
  untax::world_options sizes;
  sizes.heap_bytes = untax::heap_for(c.problem, c.world);
  world w = world::from_environment(sizes);
  w.run([&](world& self) { run_epochs(self, c, options); });
});

std::size_t index_of(const faulty_case& wanted) {
  const auto cases = all_cases({wanted.world});
  const auto same = [&](const faulty_case& c) { return c.describe() == wanted.describe(); };
  return static_cast<std::size_t>(
      std::distance(cases.begin(), std::find_if(cases.begin(), cases.end(), same)));
}

}  // namespace

std::string operator_launch::describe() const {
  return fmt::format("{}, {} epochs, seed {}, {}", operation.describe(), epochs, seed,
                     fault.empty() ? "no fault" : fault);
}

outcome launch_operator(const operator_launch& o,
                        const std::function<void(int rank, const std::string& line)>& hears) {
  const auto ms = [](std::chrono::milliseconds limit) { return std::to_string(limit.count()); };
  return launch("operator", o.operation.world,
                {{case_variable, std::to_string(index_of(o.operation))},
                 {epochs_variable, std::to_string(o.epochs)},
                 {fault_variable, o.fault},
                 {seed_variable, std::to_string(o.seed)},
                 {untax::variable::wait_limit.name, ms(o.wait_limit)},
                 {untax::variable::join_limit.name, ms(o.join_limit)}},
                hears);
}

leftovers leftovers::now() {
  leftovers l{belongings::now(), {}};
  std::error_code none;  // the machine has no such directory, or it is not ours to read
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", none))
    l.shared_memory.push_back(entry.path());
  std::sort(l.shared_memory.begin(), l.shared_memory.end());
  return l;
}

void expect_right(const outcome& o, const operator_launch& l, int rank) {
  EXPECT_EQ(o.said(rank, "RIGHT"), std::to_string(l.epochs)) << l.describe() << "\n" << o.all(rank);
  EXPECT_TRUE(o.result.ends[static_cast<std::size_t>(rank)].ok()) << o.all(rank);
}

bool expect_right_or_lost(const outcome& o, const operator_launch& l, int rank,
                          std::uint64_t struck, const std::vector<std::string>& parts) {
  const std::string said = o.said(rank, "ERROR");
  if (said.empty()) {
    expect_right(o, l, rank);
    return false;
  }
  EXPECT_EQ(o.said(rank, "WRONG"), "") << l.describe();
  for (const std::string& part : parts)
    EXPECT_NE(said.find(part), std::string::npos) << l.describe() << "\nmissing: " << part << "\n"
                                                  << o.all(rank);
  unsigned long long noticed = 0;
  EXPECT_EQ(std::sscanf(said.c_str(), "%*s %llu", &noticed), 1) << said;
  const auto taken = static_cast<std::int64_t>(noticed) - static_cast<std::int64_t>(struck);
  EXPECT_LT(std::chrono::nanoseconds(taken), soon) << l.describe() << "\n" << o.all(rank);
  return true;
}

}  // namespace multi_test
