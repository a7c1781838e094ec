
#include <fmt/format.h>

#include "files.hpp"
#include "json_output.hpp"
#include "output.hpp"
#include "pattern_table.hpp"
#include "run_request.hpp"
#include "terminal.hpp"

namespace untax::cli {

void present(const run_report& report) {
  const run_request& request = *report.request;
  const bench::pattern_request& work = request.work;
  if (request.json == "-") return write_json("-", to_json(report));

  std::string text =
      fmt::format("{}; {}{}; {}\n\n", work.what.description, counted(report.ranks, "rank"),
                  report.ranks > 1 ? fmt::format(" as {}", report.kind) : "",
                  work.repeats == 1 ? "one run" : fmt::format("medians of {} runs", work.repeats));
  text += pattern_table(work.what, report.ranks, report.results, report.tolerance,
                        width(stream::out), style(stream::out));
  if (request.explain) {
    text += "\n";
    for (const auto& result : report.results) {
      if (!result.refusal.empty()) continue;
      text += wrapped(result.explanation, width(stream::out));
    }
  }
  show(text);
  if (!request.json.empty()) write_json(request.json, to_json(report));
}

}  // namespace untax::cli
