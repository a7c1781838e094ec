#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ranks.hpp"
#include "tests/faults/cases.hpp"

namespace multi_test {

/// One launch of an operator as processes.
struct operator_launch {
  untax::testing::faulty_case operation;
  int epochs = 3;
  std::string fault = "";  ///< see fault::parse; "" for none
  std::chrono::milliseconds wait_limit = patient;
  std::chrono::milliseconds join_limit = patient;
  std::uint64_t seed = 1;

  [[nodiscard]] std::string describe() const;
};

/// Runs the body that says, line by line: "PROCESS <id>", "RUNNING" after the first epoch,
/// "STRUCK <ns>" when a fault strikes, "RIGHT <epochs>" or "WRONG <epoch>" at the end.
outcome launch_operator(const operator_launch& o,
                        const std::function<void(int rank, const std::string& line)>& hears = {});

/// Objects of untax that outlive processes.
struct leftovers {
  belongings of_this_process;
  std::vector<std::string> shared_memory;  ///< names under /dev/shm

  static leftovers now();
  bool operator==(const leftovers&) const = default;
};

/// Expects that `rank` did all epochs and that their results are right.
void expect_right(const outcome& o, const operator_launch& l, int rank);

/// Expects that `rank` is right, or that it ended with an error with all these parts soon after
/// `struck` on the monotonic clock. True if it failed.
bool expect_right_or_lost(const outcome& o, const operator_launch& l, int rank,
                          std::uint64_t struck, const std::vector<std::string>& parts);

}  // namespace multi_test
