#pragma once

#include <CLI/CLI.hpp>

namespace untax::cli {

/// Adds `untax taxes` to `app`. When it is the verb that was asked for, `status` becomes its exit
/// code.
void add_taxes(CLI::App& app, int& status);

}  // namespace untax::cli
