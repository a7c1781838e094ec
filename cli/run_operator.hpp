#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <untax/core/memory_kind.hpp>

#include "ops/common/trial.hpp"

namespace untax::cli {

/// The options of `untax run` that decide where an operator runs.
struct run_place {
  std::string backend = "auto";  ///< auto, host or cuda
  int ranks = 2;
  bool ranks_given = false;
};

/// An operator of `untax run`: a subcommand with an option for each field of the operator's spec.
class run_operator {
 public:
  run_operator() = default;
  run_operator(const run_operator&) = delete;
  run_operator& operator=(const run_operator&) = delete;
  virtual ~run_operator() = default;

  /// Adds the options of the fields.
  virtual void add_options(CLI::App& verb) = 0;
  /// The operator on the problem of the command line. Throws `invalid_argument` for options that
  /// have no effect at this place, and for values that contradict each other.
  [[nodiscard]] virtual trial_subject subject(const CLI::App& verb, const run_place& place) = 0;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::string summary() const = 0;
};

/// All operators that run with inputs of their own, in the order of the library.
[[nodiscard]] std::vector<std::shared_ptr<run_operator>> run_operators();

}  // namespace untax::cli
