#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace untax::cli {

/// Options, and the actions of a verb that have them. Options that are in no list are of every
/// action.
struct option_use {
  std::vector<const char*> options;
  std::vector<std::string> actions;
};

/// Refuses options of `verb` that `action` does not have, so that none is ignored silently: "--size
/// means nothing to the suite host; it is for gemm or shared", where `what` is "the suite ".
void refuse_foreign_options(const CLI::App& verb, const std::vector<option_use>& uses,
                            const std::string& what, const std::string& action);

}  // namespace untax::cli
