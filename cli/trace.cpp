#include "trace.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/trace/json.hpp>
#include <untax/trace/session.hpp>

#include "engines/gpu/trace/launch_trace.hpp"
#include "output.hpp"
#include "src/select/packed_file.hpp"
#include "src/taxes/time_text.hpp"
#include "src/trace/json_format.hpp"
#include "src/trace/trace_file.hpp"
#include "terminal.hpp"

namespace untax::cli {

void require_traceable(const std::string& path, memory_kind where) {
  if (path.empty()) return;
  if (path == "-") {
    throw error(errc::invalid_argument, "--trace is -; a trace goes to a file, so give a path");
  }
  if (where == memory_kind::cuda && !gpu::kernels_are_traced) {
    throw error(errc::unsupported,
                "--trace: kernels of this build record nothing, and this runs on GPUs; build with "
                "-DUNTAX_KERNEL_TRACE=ON, leave it out, or take --backend host");
  }
}

trace_recording::trace_recording(std::string path, std::size_t room)
    : path_(std::move(path)), active_(!path_.empty()) {
  if (active_) start_trace({.path = path_, .events_per_worker = room});
}

trace_recording::~trace_recording() {
  if (!active_) return;
  try {
    // After an error, the record may show its cause.
    end_trace();
  } catch (const std::exception& e) {
    complain(e.what());
  }
}

trace_record trace_recording::finish() {
  active_ = false;
  return stop_trace();
}

trace_record read_trace(const std::string& path) {
  return trace_from_json(unpacked_text_of_file(path, {.bytes = trace_format::most_bytes}));
}

std::string text_of(const std::vector<operator_account>& accounts, int width, text_style style) {
  std::vector<table::column> columns = {{"operator"}, {"where"}, {"time", table::align::right}};
  for (std::size_t i = 0; i < trace_parts; ++i)
    columns.push_back({std::string(name_of(static_cast<trace_part>(i))), table::align::right});
  table rows(columns, 2);
  double longest = 0;
  for (const operator_account& account : accounts) longest = std::max(longest, account.wall);
  const time_unit unit = unit_for(longest);
  const auto line = [&](std::string name, std::string where, const trace_breakdown& parts) {
    std::vector<std::string> cells = {std::move(name), std::move(where),
                                      in_unit(parts.total(), unit)};
    for (const double seconds : parts.seconds) cells.push_back(in_unit(seconds, unit));
    rows.add(std::move(cells));
  };
  std::string causes;
  for (const operator_account& account : accounts) {
    const std::string name = account.label.empty() ? account.name : account.label;
    line(name, "critical path", account.path);
    for (std::size_t r = 0; r < account.ranks.size(); ++r)
      line("", fmt::format("rank {}", r), account.ranks[r]);
    causes += wrapped(
        fmt::format("{}: most of the critical path is {} ({}).", name,
                    account.causes.front().text(), with_unit(account.causes.front().seconds, unit)),
        width);
  }
  return fmt::format("Where the time goes, in {}, by the trace\n", unit.name) +
         rows.render(width, style.utf8) + causes;
}

void show_trace(const trace_record& record, const std::string& path) {
  const auto accounts = accounts_of(record);
  if (!accounts.empty()) show("\n" + text_of(accounts, width(stream::out), style(stream::out)));
  show_trace_file(record, path);
}

void show_trace_file(const trace_record& record, const std::string& path) {
  print(fmt::format("Trace: {} ({})\n", path, record.summary()));
}

std::string text_of(const bench::trace_cost& cost) {
  return fmt::format(
      "Recorded it takes {:.4f} times as long, the geometric mean (bar {:.2f}, {})\n"
      "At most {:.4f} times:\n  {}\n",
      cost.mean, bench::trace_cost::bar, cost.met() ? "met" : "MISSED", cost.most, cost.where);
}

}  // namespace untax::cli
