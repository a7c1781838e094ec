#include "src/taxes/cuda/overlap_measurement.hpp"

#include <algorithm>
#include <utility>

#include <untax/core/error.hpp>

#include "engines/bulk/quickest.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"

namespace untax {
namespace {

/// A rough estimate of the seconds of one run.
double seconds_of(std::int64_t rows, const gemm_share& share) {
  const auto m = static_cast<double>(rows);
  const double weights =
      static_cast<double>(share.b_rows.size) * static_cast<double>(share.b_cols.size);
  return std::max(2 * m * weights / 7e14, 2 * weights / 4e12) + 5e-6;
}

}  // namespace

overlap_measurement::overlap_measurement(gpu_team& team, const operator_entry& entry,
                                         overlap_settings settings)
    : team_(team),
      entry_(entry),
      settings_(std::move(settings)),
      work_(static_cast<std::size_t>(team.size())),
      communicators_(work_.size()) {
  // The communicator is kept here, so that all operators share it.
  team_.together([&](world& w) {
    communicators_[static_cast<std::size_t>(w.rank())] = bulk::communicator_of(w);
  });
}

overlap_measurement::~overlap_measurement() {
  team_.together([&](world& w) {
    work_[static_cast<std::size_t>(w.rank())].reset();
    communicators_[static_cast<std::size_t>(w.rank())].reset();
  });
}

std::vector<pattern_figure> overlap_measurement::measure(const gemm_problem& problem) {
  std::vector<pattern_figure> figures;
  team_.together([&](world& w) {
    work_[static_cast<std::size_t>(w.rank())] =
        std::make_unique<overlap_work>(w, entry_, problem, team_.stream_of(w.rank()));
  });
  std::vector<pattern_case> cases;
  plan_all(figures, cases);
  if (settings_.parts) plan_parts(figures, cases);
  std::vector<benchmark_case*> in_turn;
  for (pattern_case& c : cases) in_turn.push_back(&c.it);
  const int times =
      bulk::runs_in_graph(seconds_of(problem.m, entry_.share(problem, team_.size(), 0)));
  capture(team_, in_turn, times);
  verify(figures, cases, times);
  time_in_turn(team_, in_turn, times, settings_.repeats);
  for (const pattern_case& c : cases) figures[c.figure].time = c.it.time();
  if (settings_.check_after) verify(figures, cases, times);
  cases.clear();
  team_.together([&](world& w) { work_[static_cast<std::size_t>(w.rank())].reset(); });
  return figures;
}

std::size_t overlap_measurement::heap_for_any(const std::vector<gemm_problem>& problems, int ranks,
                                              std::size_t patterns, bool capacity) {
  // A capacity has plans for its number of rows, for half of it, a quarter and so on, and for one
  // number between each two of these. All plans together take less than four times the memory of
  // the largest. One further operator is timed beside them.
  constexpr std::size_t plans = 5;
  std::size_t most = 0;
  for (const operator_entry& entry : operators()) {
    for (gemm_problem p : problems) {
      std::size_t need = device_heap_for(entry, p, ranks) * (patterns + 1);
      p.m = capacity_of(p.m);
      if (capacity) need += plans * device_heap_for(entry, p, ranks);
      most = std::max(most, need);
    }
  }
  return most + (std::size_t{64} << 20U);
}

void overlap_measurement::plan_all(std::vector<pattern_figure>& figures,
                                   std::vector<pattern_case>& cases) {
  std::vector<pattern> patterns = {pattern::bulk_library};
  for (const pattern how : settings_.patterns) {
    if (how != pattern::bulk_library) patterns.push_back(how);
  }
  for (const pattern how : patterns) plan_one(figures, cases, how, 0);
  if (settings_.capacity)
    plan_one(figures, cases, pattern::automatic, capacity_of(at(0).problem().m));
}

void overlap_measurement::plan_one(std::vector<pattern_figure>& figures,
                                   std::vector<pattern_case>& cases, pattern how,
                                   std::int64_t rows) {
  const bool library = how == pattern::bulk_library;
  pattern_figure f;
  f.by = library ? library_graph : rows > 0 ? automatic_capacity : std::string(name_of(how));
  f.how = how;
  f.asked = how;
  f.library = library;
  const int number = plan(f, how, rows);
  figures.push_back(f);
  if (number < 0) return;
  const auto run = [this, number](int rank, int i, cudaStream_t stream) {
    at(rank).run(number, i, stream);
  };
  cases.push_back({figures.size() - 1, number, {run}});
  if (!library || !settings_.eager) return;
  f.by = library_eager;
  figures.push_back(f);
  cases.push_back({figures.size() - 1, number, {run, true}});
}

/// Plans an operator at all ranks, of a capacity if `rows` > 0. Returns its number, or -1 if it
/// refuses.
int overlap_measurement::plan(pattern_figure& figure, pattern how, std::int64_t rows) {
  int number = -1;
  try {
    team_.together([&](world& w) {
      const int mine = at(w.rank()).plan(how, rows);
      if (w.rank() == 0) number = mine;
    });
  } catch (const error& e) {
    if (e.code() != errc::unsupported && e.code() != errc::invalid_argument) throw;
    figure.refusal = e.what();
    return -1;
  }
  figure.how = at(0).pattern_of(number);
  figure.explanation = at(0).explanation_of(number);
  return number;
}

void overlap_measurement::plan_parts(std::vector<pattern_figure>& figures,
                                     std::vector<pattern_case>& cases) {
  team_.together([&](world& w) { at(w.rank()).plan_parts(team_.stream_of(w.rank())); });
  const auto add = [&](const char* way, bool library, auto run) {
    pattern_figure f;
    f.by = way;
    f.library = library;
    figures.push_back(std::move(f));
    cases.push_back({figures.size() - 1, -1, {std::move(run)}});
  };
  add(own_gemm_alone, false,
      [this](int rank, int i, cudaStream_t stream) { at(rank).run_own_gemm(i, stream); });
  add(library_gemm_alone, true,
      [this](int rank, int i, cudaStream_t stream) { at(rank).run_library_gemm(i, stream); });
  add("NCCL alone", true,
      [this](int rank, int /*i*/, cudaStream_t stream) { at(rank).run_transfer(stream); });
}

void overlap_measurement::verify(std::vector<pattern_figure>& figures,
                                 const std::vector<pattern_case>& cases, int times) {
  for (const pattern_case& c : cases) {
    if (c.number < 0) continue;
    std::vector<double> errors(work_.size());
    team_.together([&](world& w) {
      const int rank = w.rank();
      cudaStream_t stream = team_.stream_of(rank);
      errors[static_cast<std::size_t>(rank)] =
          at(rank).error_of(c.number, stream, [&] { c.it.launch(times, rank, stream); });
      w.check();
    });
    double& known = figures[c.figure].error;
    known = std::max(known, *std::max_element(errors.begin(), errors.end()));
  }
}

}  // namespace untax
