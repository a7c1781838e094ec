#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/world/devices.hpp>
#include <untax/world/launch.hpp>
#include <untax/world/placement.hpp>

#include "names.hpp"
#include "output.hpp"
#include "run_request.hpp"
#include "terminal.hpp"
#include "trace.hpp"

namespace untax::cli {
namespace {

constexpr int usual_ranks = 2;

int ranks_of(const run_request& request) {
  if (request.ranks) return *request.ranks;
  return request.work.what.memory == memory_kind::cuda ? std::max(gpus_here(), 1) : usual_ranks;
}

world_options options_for(const run_request& request, int ranks) {
  world_options options;
  options.wait_limit = request.wait_limit;
  options.memory = request.work.what.memory;
  // A size of the heap in the environment takes precedence.
  if (!environment().has(variable::heap_bytes)) {
    options.heap_bytes = bench::heap_for(request.work, ranks);
  }
  return options;
}

/// Runs this rank's part. Every rank gets a report; rank 0 shows its own.
run_report work(world& w, const run_request& request) {
  run_report report;
  report.request = &request;
  report.ranks = w.size();
  report.kind = w.kind();
  report.tolerance = request.tolerance.value_or(request.work.what.tolerance);
  bench::pattern_request mine = request.work;
  std::unique_ptr<progress_bar> bar;
  if (w.rank() == 0) {
    bar = std::make_unique<progress_bar>(mine.what.name, bench::steps_of(mine));
    mine.progress = [&bar] { bar->advance(); };
  }
  report.results = bench::run_patterns(w, mine);
  return report;
}

int run_as_threads(const run_request& request) {
  const int ranks = ranks_of(request);
  bench::require_memory(request.work, ranks);
  run_report report;
  trace_recording recording(request.trace);
  const auto run_all = request.work.what.memory == memory_kind::cuda ? run_gpus : run_threads;
  run_all(
      ranks,
      [&](world& w) {
        run_report mine = work(w, request);
        if (w.rank() == 0) report = std::move(mine);
      },
      options_for(request, ranks));
  present(report);
  if (recording.active()) {
    const trace_record record = recording.finish();
    if (request.json != "-") show_trace(record, request.trace);
  }
  return report.right() ? 0 : 1;
}

/// Only the rank that reported the error prints all of it; for others, its first line suffices.
error shortened(const error& e, const world& w) {
  const std::string text = e.what();
  const auto report = w.state().report();
  const bool echo = report && report->reporter != w.rank();
  return {e.code(), echo ? text.substr(0, text.find('\n')) : text};
}

int run_as_rank(const run_request& request, const placement& place) {
  if (request.ranks && *request.ranks != place.world_size) {
    throw error(errc::invalid_argument,
                fmt::format("--ranks is {}, but {} started {}; leave --ranks out", *request.ranks,
                            place.launcher, place.world_size));
  }
  if (request.processes && place.launcher != "untax") {
    throw error(errc::invalid_argument,
                fmt::format("--processes starts the ranks, but {} has started this one; leave "
                            "--processes out",
                            place.launcher));
  }
  // Ranks allocate when all have joined, so until then all see the same free memory. If untax
  // launched this rank, the launcher has checked it.
  if (place.launcher != "untax") bench::require_memory(request.work, place.world_size);
  trace_recording recording(request.trace);
  world w = world::from_environment(options_for(request, place.world_size));
  run_report report;
  try {
    w.run([&](world& mine) { report = work(mine, request); });
  } catch (const error& e) {
    throw shortened(e, w);
  }
  if (w.rank() == 0) present(report);
  // Ranks add their parts one after the other. If untax run started them, it shows the whole.
  if (recording.active()) {
    (void)recording.finish();
    if (w.rank() == 0 && request.json != "-" && place.launcher != "untax")
      print(fmt::format("Trace: {}, to which each rank adds what it did\n", request.trace));
  }
  return report.right() ? 0 : 1;
}

/// Reports an invalid environment once and not at every rank, since making any world reads it.
void check_environment() {
  world_options small;
  small.heap_bytes = 1 << 16;
  static_cast<void>(world::threads(1, small));
}

int start_processes(const run_request& request) {
  check_environment();
  bench::require_memory(request.work, ranks_of(request));
  process_launch launch;
  launch.ranks = ranks_of(request);
  launch.command = {std::filesystem::read_symlink("/proc/self/exe").string()};
  launch.command.insert(launch.command.end(), request.arguments.begin(), request.arguments.end());
  const launch_result result = launch_processes(launch);
  if (result.interrupt != 0) return 128 + result.interrupt;
  for (const process_end& end : result.ends) {
    if (end.exit_code < 0) complain(end.text());
  }
  if (result.first_failure < 0) {
    if (!request.trace.empty() && request.json != "-")
      show_trace(read_trace(request.trace), request.trace);
    return 0;
  }
  const process_end& first = result.ends[static_cast<std::size_t>(result.first_failure)];
  return first.exit_code > 0 ? first.exit_code : 1;
}

}  // namespace

int gpus_here() { return static_cast<int>(survey_devices(false).devices.size()); }

bool runs_on_gpus(const std::string& backend, dtype type, int ranks) {
  const std::size_t place = place_in("--backend", backend, {"auto", "host", "cuda"});
  return place == 2 || (place == 0 && type != dtype::f32 && gpus_here() >= ranks);
}

int ranks_on_gpus(int asked) { return std::max(asked == 0 ? gpus_here() : asked, 1); }

bool run_report::right() const {
  for (const bench::pattern_result& result : results) {
    if (!right(result)) return false;
  }
  return true;
}

int carry_out(const run_request& request) {
  const placement place = placement_from(environment());
  // A launcher with one rank is usually a shell inside a job, in which ranks may be started.
  if (place.world_size > 1 || place.launcher == "untax") return run_as_rank(request, place);
  return request.processes ? start_processes(request) : run_as_threads(request);
}

}  // namespace untax::cli
