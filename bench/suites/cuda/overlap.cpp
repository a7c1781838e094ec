#include "bench/suites/overlap.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include <untax/core/error.hpp>
#include <untax/taxes/timing.hpp>

#include "bench/suites/cuda/gpu_team.hpp"
#include "bench/suites/cuda/overlap_work.hpp"
#include "bench/suites/cuda/peak_rates.hpp"
#include "bench/suites/cuda/rank_graphs.hpp"
#include "ops/common/registry.hpp"

namespace untax::bench {
namespace {

constexpr double signal_seconds = 2.7e-6;  ///< there and back over a link: in the bound of decode

/// How many runs one graph holds: enough that what surrounds them does not count.
int runs_in_graph(const gemm_problem& p, std::int64_t columns) {
  const double m = static_cast<double>(p.m);
  const double weights = static_cast<double>(columns) * static_cast<double>(p.k);
  const double guess = std::max(2 * m * weights / 7e14, 2 * weights / 4e12) + 5e-6;
  return std::clamp(static_cast<int>(6e-4 / guess) + 1, 1, 20);
}

/// One thing that is run in turn with the others.
struct contender {
  int figure = 0;
  int number = -1;  ///< of the operator; -1: it is none, but a part
  bool eager = false;
  std::function<void(int rank, int i, cudaStream_t stream)> run;
  std::optional<rank_graphs> graphs;
  std::vector<double> seconds = {};
};

class suite {
 public:
  suite(const overlap_options& options, gpu_team& team, double link, double memory)
      : options_(options),
        team_(team),
        entry_(operator_named(options.operator_name)),
        link_rate_(link),
        memory_rate_(memory),
        work_(static_cast<std::size_t>(team.size())),
        communicators_(work_.size()) {
    for (int rank = 0; rank < team.size(); ++rank) everybody_.push_back(rank);
    // All operators share it, so that it is made once.
    team_.together([&](world& w) {
      communicators_[static_cast<std::size_t>(w.rank())] = bulk::communicator_of(w);
    });
  }
  suite(const suite&) = delete;
  suite& operator=(const suite&) = delete;
  ~suite() {
    team_.together([&](world& w) {
      work_[static_cast<std::size_t>(w.rank())].reset();
      communicators_[static_cast<std::size_t>(w.rank())].reset();
    });
  }

  overlap_row measure(const gemm_problem& problem) {
    overlap_row row;
    row.problem = problem;
    row.shapes = options_.shapes;
    row.tolerance = tolerance_of(problem);
    team_.together([&](world& w) {
      work_[static_cast<std::size_t>(w.rank())] =
          std::make_unique<overlap_work>(w, entry_, problem, team_.stream_of(w.rank()));
    });
    std::vector<contender> all = plan(row);
    const std::int64_t columns = entry_.share(problem, team_.size(), 0).b_rows.size;
    const int times = runs_in_graph(problem, columns);
    capture(all, times);
    verify(row, all, times);
    time(all, times);
    for (const contender& one : all)
      row.figures[static_cast<std::size_t>(one.figure)].time = spread_of(one.seconds);
    verify(row, all, times);
    all.clear();
    team_.together([&](world& w) { work_[static_cast<std::size_t>(w.rank())].reset(); });
    bound(row, columns);
    return row;
  }

 private:
  overlap_work& at(int rank) { return *work_[static_cast<std::size_t>(rank)]; }

  std::vector<contender> plan(overlap_row& row) {
    std::vector<contender> all;
    const auto add = [&](overlap_figure f, int number, bool eager,
                         std::function<void(int, int, cudaStream_t)> run) {
      row.figures.push_back(std::move(f));
      all.push_back({static_cast<int>(row.figures.size()) - 1, number, eager, std::move(run), {}});
    };
    std::vector<pattern> patterns = {pattern::bulk_library};
    for (const pattern how : options_.patterns) {
      if (how != pattern::bulk_library) patterns.push_back(how);
    }
    for (const pattern how : patterns) {
      const bool library = how == pattern::bulk_library;
      overlap_figure f;
      f.by = library ? "bulk_library graph" : std::string(name_of(how));
      f.how = how;
      f.library = library;
      const int number = plan(f, how);
      if (number < 0) {
        row.figures.push_back(std::move(f));
        continue;
      }
      const auto run = [this, number](int rank, int i, cudaStream_t stream) {
        at(rank).run(number, i, stream);
      };
      add(f, number, false, run);
      f.by = "bulk_library eager";
      if (library) add(f, number, true, run);
    }
    team_.together([&](world& w) { at(w.rank()).plan_parts(team_.stream_of(w.rank())); });
    const auto add_part = [&](const char* by, bool library, auto run) {
      overlap_figure f;
      f.by = by;
      f.library = library;
      add(std::move(f), -1, false, std::move(run));
    };
    add_part("GEMM alone", false,
             [this](int rank, int i, cudaStream_t stream) { at(rank).run_own_gemm(i, stream); });
    add_part("cuBLASLt alone", true, [this](int rank, int i, cudaStream_t stream) {
      at(rank).run_library_gemm(i, stream);
    });
    add_part("NCCL alone", true,
             [this](int rank, int /*i*/, cudaStream_t stream) { at(rank).run_gather(stream); });
    return all;
  }

  /// The number of the operator, or -1 if it refuses.
  int plan(overlap_figure& figure, pattern how) {
    int number = -1;
    try {
      team_.together([&](world& w) {
        const int mine = at(w.rank()).plan(how);
        if (w.rank() == 0) number = mine;
      });
    } catch (const error& e) {
      if (e.code() != errc::unsupported && e.code() != errc::invalid_argument) throw;
      figure.refusal = e.what();
      return -1;
    }
    figure.explanation = at(0).explanation_of(number);
    return number;
  }

  /// What a first run alone would do has been done before it is captured.
  void capture(std::vector<contender>& all, int times) {
    for (contender& one : all) {
      if (one.eager) continue;
      team_.together([&](world& w) { one.run(w.rank(), 0, team_.stream_of(w.rank())); });
      team_.finish();
      one.graphs.emplace(team_.size());
      team_.together([&](world& w) {
        cudaStream_t stream = team_.stream_of(w.rank());
        one.graphs->capture(w.rank(), stream, times,
                            [&](int i) { one.run(w.rank(), times - 1 - i, stream); });
      });
    }
  }

  /// What is timed: runs times - 1 to 0.
  static void launch(const contender& one, int times, int rank, cudaStream_t stream) {
    if (one.graphs) return one.graphs->launch(rank, stream);
    for (int i = times - 1; i >= 0; --i) one.run(rank, i, stream);
  }

  void verify(overlap_row& row, const std::vector<contender>& all, int times) {
    for (const contender& one : all) {
      if (one.number < 0) continue;
      std::vector<double> errors(work_.size());
      team_.together([&](world& w) {
        const int rank = w.rank();
        cudaStream_t stream = team_.stream_of(rank);
        errors[static_cast<std::size_t>(rank)] =
            at(rank).error_of(one.number, stream, [&] { launch(one, times, rank, stream); });
        w.check();
      });
      double& known = row.figures[static_cast<std::size_t>(one.figure)].error;
      known = std::max(known, *std::max_element(errors.begin(), errors.end()));
    }
  }

  void time(std::vector<contender>& all, int times) {
    for (int repeat = -3; repeat < options_.repeats; ++repeat) {
      for (contender& one : all) {
        const double longest = timed(one, times);
        if (repeat >= 0) one.seconds.push_back(longest / times);
      }
    }
  }

  double timed(const contender& one, int times) {
    const auto start = [&](int rank, cudaStream_t stream) { launch(one, times, rank, stream); };
    return one.eager ? team_.timed_eagerly(start) : team_.timed(everybody_, start);
  }

  void bound(overlap_row& row, std::int64_t columns) const {
    const gemm_problem& p = row.problem;
    const bool decode = row.shapes == overlap_shapes::decode;
    const auto size = static_cast<double>(size_of(p.type));
    const double weights = static_cast<double>(columns) * static_cast<double>(p.k) * size;
    double most = 0;
    for (int rank = 0; rank < team_.size(); ++rank)
      most = std::max(most, entry_.bytes_sent(p, team_.size(), rank));
    row.compute_bound = decode ? weights / memory_rate_ : row.seconds_of("cuBLASLt alone");
    row.link_bound = most / link_rate_ + (decode ? signal_seconds : 0);
  }

  const overlap_options& options_;
  gpu_team& team_;
  const operator_entry& entry_;
  double link_rate_;
  double memory_rate_;
  std::vector<int> everybody_;
  std::vector<std::unique_ptr<overlap_work>> work_;
  std::vector<std::shared_ptr<bulk::communicator>> communicators_;
};

/// Symmetric memory for all operators of one problem, the largest.
std::size_t heap_for_all(const overlap_options& options, int ranks) {
  std::size_t most = 0;
  for (const gemm_problem& p : options.problems) most = std::max(most, heap_for(p, ranks));
  return most * (options.patterns.size() + 1) + link_bytes + (std::size_t{64} << 20U);
}

}  // namespace

overlap_report run_overlap_suite(const overlap_options& options) {
  gpu_team team(options.ranks, heap_for_all(options, options.ranks == 0 ? 8 : options.ranks));
  overlap_report report;
  report.operator_name = options.operator_name;
  report.ranks = team.size();
  report.type = options.problems.front().type;
  report.device = team.device_name();
  report.library = bulk::blas().text + ", " + bulk::nccl().text;
  report.shapes = options.shapes;
  report.link_rate = link_rate(team);
  report.memory_rate = memory_rate(team);
  suite measured(options, team, report.link_rate, report.memory_rate);
  for (const gemm_problem& problem : options.problems) {
    report.rows.push_back(measured.measure(problem));
    if (options.progress) options.progress();
  }
  return report;
}

}  // namespace untax::bench
