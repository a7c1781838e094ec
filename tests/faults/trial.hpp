#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <untax/core/error.hpp>
#include <untax/flow/fault_plan.hpp>

#include "cases.hpp"

namespace untax::testing {

constexpr int epochs_of_a_trial = 3;  // enough for every room to be used twice

/// A sanitizer makes everything slower, so that short limits would strike where nothing is wrong.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::chrono::milliseconds short_limit{400};
#else
constexpr std::chrono::milliseconds short_limit{120};
#endif
constexpr std::chrono::milliseconds long_limit{60000};

/// How one rank came out of a trial.
struct rank_end {
  bool failed = false;
  errc code = errc::internal;
  std::string text;
  int epochs = 0;       // completed
  int wrong = 0;        // of the completed epochs
  bool struck = false;  // the fault did its harm at this rank
  std::optional<room> room_struck;
};

struct trial {
  std::vector<rank_end> ranks;
  std::chrono::milliseconds took{0};

  [[nodiscard]] bool failed() const;
  [[nodiscard]] bool struck() const;
  /// The texts of all ranks that failed.
  [[nodiscard]] std::string texts() const;
};

/// Runs the case in a world of threads, with fresh inputs and a poisoned result in every epoch. A
/// trial that hangs ends the program.
[[nodiscard]] trial run_trial(const faulty_case& c, const fault& f,
                              std::chrono::milliseconds wait_limit, std::uint64_t seed);

/// The sites that rank after rank passes in a trial without faults.
[[nodiscard]] std::vector<fault_site> sites_of(const faulty_case& c);

/// The fault of a trial whose ranks may fail: a rank that neither failed nor has the right result,
/// or errors none of which names `suspect` and, if given, the room. Empty if there is none.
[[nodiscard]] std::string complaint(const trial& t, int suspect, const std::optional<room>& r);

/// Calls `judge` with `samples` sites of every case, on several threads; how many of how many is
/// printed. `signals`: only those. UNTAX_FAULT_SAMPLES and UNTAX_FAULT_SEED choose more, or
/// other ones.
void for_sampled_sites(const std::string& what, std::size_t samples, bool signals,
                       const std::function<void(const faulty_case&, const fault_site&)>& judge);

/// Expects that no rank fails and that all results are right.
void expect_right(const faulty_case& c, const fault& f);

/// Expects that every rank ends in the right result or in an error, and that the errors name the
/// rank of the fault. With `must_fail` there has to be one. Returns the trial.
trial expect_right_or_named(const faulty_case& c, const fault& f);

}  // namespace untax::testing
