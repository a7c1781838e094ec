#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

// The verbs of the command, one file each. A function adds its verb to `app`. The verb runs while
// the arguments are parsed, if they contain it, and sets `status` to the exit code. Errors are
// thrown; an `invalid_argument` is the caller's mistake.

namespace untax::cli {

void add_doctor(CLI::App& app, int& status);
/// `arguments` are those of this process, from which it starts its ranks.
void add_run(CLI::App& app, int& status, const std::vector<std::string>& arguments);
void add_taxes(CLI::App& app, int& status);
void add_bench(CLI::App& app, int& status);
/// Returns `arguments` with the suite of `untax bench` moved before its options, which may stand
/// before it. Throws `invalid_argument` if there is no such suite.
[[nodiscard]] std::vector<std::string> suite_first(const CLI::App& app,
                                                   std::vector<std::string> arguments);
void add_check(CLI::App& app, int& status);
void add_generate(CLI::App& app, int& status);
void add_select(CLI::App& app);
void add_machine(CLI::App& app);
void add_locality(CLI::App& app, int& status);
void add_completion(CLI::App& app);

}  // namespace untax::cli
