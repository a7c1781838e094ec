#include "bench/suites/collectives.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <untax/core/error.hpp>
#include <untax/taxes/timing.hpp>

#include "bench/suites/cuda/collective_runs.hpp"
#include "bench/suites/cuda/vectors.cuh"
#include "engines/bulk/cuda/window.hpp"
#include "src/taxes/cuda/gpu_team.cuh"
#include "src/taxes/cuda/rank_graphs.hpp"

namespace untax::bench {
namespace {

/// NCCL between memory that is registered as symmetric windows.
constexpr const char* windows_name = "NCCL windows";

/// Heap for the buffers of variants that exist at the same time, without the vectors.
constexpr std::size_t heap_bytes = std::size_t{12} << 30;

/// The number of runs in a graph, so many that its launch is negligible.
int runs_in_graph(std::int64_t bytes) {
  return bytes <= 1 << 20 ? 20 : bytes <= 16 << 20 ? 8 : bytes <= 128 << 20 ? 3 : 1;
}

/// The memory of a rank for all measurements of the suite.
struct rank_state {
  rank_state(std::size_t bytes, world& w)
      : in(w.allocate<std::byte>(bytes, "input")),
        out(w.allocate<std::byte>(bytes, "result")),
        expected(bytes),
        differences(sizeof(unsigned long long)) {
    if (!bulk::nccl().there) return;
    library.emplace(w);
    try {
      for (auto& window : windows) window = std::make_unique<bulk::window>(w, *library, bytes);
    } catch (const error& e) {
      if (e.code() != errc::unsupported) throw;
      no_windows = e.what();
    }
  }
  symmetric<std::byte> in;
  symmetric<std::byte> out;
  device_buffer expected;
  device_buffer differences;
  std::optional<bulk::communicator> library;
  std::unique_ptr<bulk::window> windows[2];  ///< for the input and the result
  std::string no_windows;                    ///< the reason why there are none
};

/// One variant at all ranks: its runs, and graphs of several runs.
class lined_up {
 public:
  explicit lined_up(int ranks) : runs_(static_cast<std::size_t>(ranks)), graphs_(ranks) {}

  planned_run& at(int rank) { return runs_[static_cast<std::size_t>(rank)]; }

  void capture(gpu_team& team, int rank, int times) {
    cudaStream_t stream = team.stream_of(rank);
    graphs_.capture(rank, stream, times, [&](int /*i*/) { at(rank).run(stream); });
  }
  void launch(int rank, cudaStream_t stream) const { graphs_.launch(rank, stream); }

 private:
  std::vector<planned_run> runs_;
  rank_graphs graphs_;  // end before the runs
};

class suite {
 public:
  suite(const collective_suite_options& options, gpu_team& team)
      : options_(options), team_(team), states_(static_cast<std::size_t>(team.size())) {
    for (int rank = 0; rank < team.size(); ++rank) everybody_.push_back(rank);
    const std::int64_t most = *std::max_element(options.sizes.begin(), options.sizes.end());
    team.together([&](world& w) {
      const auto padding = static_cast<std::size_t>(4 * w.size());
      states_[static_cast<std::size_t>(w.rank())] =
          std::make_unique<rank_state>(static_cast<std::size_t>(most) + padding, w);
    });
  }
  ~suite() {
    // NCCL's communicators end together, each on its GPU.
    team_.together([&](world& w) { states_[static_cast<std::size_t>(w.rank())].reset(); });
  }

  /// The reason why there are no windows, empty if there are.
  [[nodiscard]] const std::string& no_windows() const { return states_[0]->no_windows; }

  collective_row measure(collective_kind kind, std::int64_t bytes) {
    collective_row row{kind, bytes, {}};
    // Operators need symmetric memory, so only a few variants of a sweep exist at a time.
    constexpr std::size_t together = 3;
    for (std::size_t i = 0; i < options_.variants.size(); i += together) {
      const std::size_t end = std::min(i + together, options_.variants.size());
      const collective_row some = measure(kind, bytes, i, end);
      for (const collective_figure& f : some.figures) {
        if (!f.library || i == 0) row.figures.push_back(f);
      }
    }
    return row;
  }

 private:
  /// Measures variants begin to end - 1, and NCCL, in turn.
  collective_row measure(collective_kind kind, std::int64_t bytes, std::size_t begin,
                         std::size_t end) {
    collective_row row{kind, bytes, {}};
    std::vector<std::optional<lined_up>> all;
    if (bulk::nccl().there) {
      for (const std::string_view name : {"NCCL", windows_name}) {
        if (name == windows_name && !no_windows().empty()) continue;
        row.figures.push_back({std::string(name), true, {}, {}, {}});
        all.push_back(plan(row.figures.back(), row, nullptr));
      }
    }
    for (std::size_t i = begin; i < end; ++i) {
      const collective_variant& v = options_.variants[i];
      row.figures.push_back({v.name, false, {}, {}, {}});
      all.push_back(plan(row.figures.back(), row, &v));
    }
    verify(row, all);
    time(row, all);
    team_.together([&](world& w) {  // operators end together
      for (auto& variant : all) {
        if (variant) variant->at(w.rank()) = {};
      }
    });
    return row;
  }

  rank_state& of(int rank) { return *states_[static_cast<std::size_t>(rank)]; }
  collective_work work_of(const collective_row& row, const collective_figure& figure, int rank) {
    rank_state& mine = of(rank);
    if (figure.variant == windows_name) {
      return {row.kind, row.bytes, options_.type, mine.windows[0]->data(), mine.windows[1]->data()};
    }
    return {row.kind, row.bytes, options_.type, mine.in.local(), mine.out.local()};
  }

  std::optional<lined_up> plan(collective_figure& figure, const collective_row& row,
                               const collective_variant* variant) {
    lined_up made(team_.size());
    try {
      team_.together([&](world& w) {
        const collective_work work = work_of(row, figure, w.rank());
        made.at(w.rank()) = variant != nullptr
                                ? plan_untax(w, work, variant->options)
                                : plan_library(*of(w.rank()).library, w.size(), work);
      });
    } catch (const error& e) {
      if (e.code() != errc::unsupported && e.code() != errc::invalid_argument) throw;
      figure.refusal = e.what();
      return std::nullopt;
    }
    figure.explanation = made.at(0).explanation;
    return made;
  }

  /// Compares all variants with the first one, which must have the same bits.
  void verify(const collective_row& row, std::vector<std::optional<lined_up>>& all) {
    bool first = true;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i]) continue;
      team_.together([&](world& w) {
        rank_state& mine = of(w.rank());
        cudaStream_t stream = team_.stream_of(w.rank());
        const collective_work work = work_of(row, row.figures[i], w.rank());
        const std::int64_t count = elements_of(work, w.size());
        const std::size_t bytes =
            static_cast<std::size_t>(result_of(work, w.size())) * size_of(work.type);
        fill_exact(work.in, count, work.type,
                   static_cast<std::uint32_t>(977 * w.rank() + row.bytes), stream);
        gpu::require(cudaMemsetAsync(work.out, 0xff, bytes, stream), "poisoning");
        gpu::require(
            cudaMemsetAsync(mine.differences.data(), 0, sizeof(unsigned long long), stream),
            "clearing");
        all[i]->at(w.rank()).run(stream);
        // The next kernel may be loaded only now: loading waits for kernels, which wait for peers.
        gpu::require(cudaStreamSynchronize(stream), row.figures[i].variant);
        if (first) {
          gpu::require(cudaMemcpyAsync(mine.expected.data(), work.out, bytes,
                                       cudaMemcpyDeviceToDevice, stream),
                       "keeping a result");
        }
        count_differences(work.out, mine.expected.data(), bytes,
                          static_cast<unsigned long long*>(mine.differences.data()), stream);
        unsigned long long wrong = 0;
        gpu::require(cudaMemcpyAsync(&wrong, mine.differences.data(), sizeof wrong,
                                     cudaMemcpyDeviceToHost, stream),
                     "reading a count");
        gpu::require(cudaStreamSynchronize(stream), row.figures[i].variant);
        w.check();
        if (wrong > 0) {
          throw error(errc::internal, "rank " + std::to_string(w.rank()) + ": " +
                                          row.figures[i].variant + ", " + name_of(row.kind) +
                                          " of " + std::to_string(row.bytes) +
                                          " bytes: " + std::to_string(wrong) + " words are wrong");
        }
      });
      first = false;
    }
  }

  void time(collective_row& row, std::vector<std::optional<lined_up>>& all) {
    const int times = runs_in_graph(row.bytes);
    std::vector<std::vector<double>> seconds(all.size());
    for (auto& variant : all) {
      if (!variant) continue;
      team_.together([&](world& w) { variant->capture(team_, w.rank(), times); });
    }
    for (int repeat = -2; repeat < options_.repeats; ++repeat) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (!all[i]) continue;
        const double longest = team_.timed(
            everybody_, [&](int rank, cudaStream_t stream) { all[i]->launch(rank, stream); });
        if (repeat >= 0) seconds[i].push_back(longest / times);
      }
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i]) row.figures[i].time = spread_of(seconds[i]);
    }
  }

  const collective_suite_options& options_;
  gpu_team& team_;
  std::vector<int> everybody_;
  std::vector<std::unique_ptr<rank_state>> states_;
};

}  // namespace

collective_report run_collective_suite(const collective_suite_options& options) {
  const std::int64_t most = *std::max_element(options.sizes.begin(), options.sizes.end());
  gpu_team team(options.ranks, heap_bytes + 3 * static_cast<std::size_t>(most));
  collective_report report{team.size(), options.type, team.device_name(), bulk::nccl().text, {}};
  suite measured(options, team);
  if (!measured.no_windows().empty()) report.library += "; " + measured.no_windows();
  for (const collective_kind kind : options.kinds) {
    for (const std::int64_t bytes : options.sizes) {
      report.rows.push_back(measured.measure(kind, bytes));
      if (options.progress) options.progress();
    }
  }
  return report;
}

}  // namespace untax::bench
