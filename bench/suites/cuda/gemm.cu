#include "bench/suites/gemm.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/locality/library.hpp>
#include <untax/taxes/timing.hpp>
#include <untax/trace/session.hpp>

#include "bench/suites/cuda/vectors.cuh"
#include "bench/suites/gemm_raster.hpp"
#include "bench/suites/locality.hpp"
#include "engines/bulk/library_gemm.hpp"
#include "engines/gpu/gemm/launcher.hpp"
#include "engines/gpu/gemm/plan.hpp"
#include "engines/gpu/gemm_alone/gemm.hpp"
#include "engines/gpu/matrix/matrix.hpp"
#include "ops/common/deviation.hpp"
#include "src/symmetric/cuda/graph.hpp"
#include "src/symmetric/cuda/stopwatch.hpp"

namespace untax::bench {
namespace {

constexpr std::int64_t rotated_bytes = std::int64_t{200} << 20;  // more than three times L2
constexpr double largest_error = 5e-3;

bool right(double relative_error) { return relative_error < largest_error; }

std::string text_of_wrong(const gemm_row& row, const std::string& plan, double relative_error) {
  return fmt::format("bench gemm: m {}, n {}, k {} ({}): relative error {:.2g}", row.m, row.n,
                     row.k, plan, relative_error);
}

/// One shape, with matrices in several places.
class gemm_trial {
 public:
  gemm_trial(gemm_row& row, dtype type, const gpu::stopwatch& clock)
      : row_(row),
        type_(type),
        clock_(clock),
        library_({row.m, row.n, row.k, type, type}),
        op_(not_recorded({row.m, row.n, row.k, type})),
        a_bytes_(2 * row.m * row.k),
        b_bytes_(2 * row.n * row.k),
        c_bytes_(2 * row.m * row.n),
        places_(static_cast<int>(
            std::clamp<std::int64_t>(rotated_bytes / (a_bytes_ + b_bytes_ + c_bytes_) + 1, 2, 16))),
        a_(bytes_of(a_bytes_)),
        b_(bytes_of(b_bytes_)),
        c_(bytes_of(c_bytes_)) {
    fill(a_, places_ * row.m * row.k, type, 1);
    fill(b_, places_ * row.n * row.k, type, 2);
    row.plan = op_.plan().text();
    row.relative_error = error_of(op_);
    if (!right(row.relative_error))
      throw error(errc::internal, text_of_wrong(row, row.plan, row.relative_error));
    // Enough products to hide the launch of a graph.
    const double flops = 2.0 * static_cast<double>(row.m) * static_cast<double>(row.n * row.k);
    products_ = flops < 1e11 ? 16 : flops < 1e12 ? 4 : flops < 4e12 ? 2 : 1;
  }

  void measure(int repeats) {
    const std::vector<spread> times = times_of({&op_}, repeats);
    row_.library_time = times[0];
    row_.time = times[1];
  }

  /// As `measure`, with the plan for which rows have the same bits in any batch.
  void measure_invariant(int repeats) {
    row_.invariant_time =
        measured_beside(gpu::gemm({row_.m, row_.n, row_.k, type_, true}), repeats);
  }
  /// As `measure`, with the usual plan, while a trace is recorded.
  void measure_traced(int repeats) {
    row_.traced_time = measured_beside(gpu::gemm({row_.m, row_.n, row_.k, type_}), repeats);
  }

  /// The chosen plan and, if they differ from it, plans with other raster groups: the usual one,
  /// and that of a search.
  [[nodiscard]] std::vector<gpu::gemm_plan> rasters(const std::string& gpu_name) const {
    const locality::device d = description_of(gpu_name).value_or(locality::device_named("h200"));
    std::vector<gpu::gemm_plan> plans = {op_.plan()};
    gpu::gemm_plan usual = op_.plan();
    usual.schedule.raster_group = gpu::tile_schedule{}.raster_group;
    for (const gpu::gemm_plan& one :
         {usual, with_searched_raster(usual, {row_.m, row_.n, row_.k, type_}, d)}) {
      const int band = one.schedule.raster_group;
      if (std::ranges::none_of(
              plans, [&](const gpu::gemm_plan& p) { return p.schedule.raster_group == band; }))
        plans.push_back(one);
    }
    return plans;
  }
  /// As `measure`, with each of `plans`, of which the first is the chosen one. Plans for which this
  /// GPU has too few multiprocessors are left out.
  void measure_plans(const std::vector<gpu::gemm_plan>& plans, int repeats) {
    std::vector<gpu::gemm> ops;
    ops.reserve(plans.size());
    for (const gpu::gemm_plan& plan : plans) {
      try {
        ops.emplace_back(gpu::gemm_shape{row_.m, row_.n, row_.k, type_}, plan);
      } catch (const error& e) {
        if (e.code() != errc::unsupported) throw;
      }
    }
    std::vector<const gpu::gemm*> all;
    for (const gpu::gemm& op : ops) all.push_back(&op);
    const std::vector<spread> times = times_of(all, repeats);
    row_.library_time = times[0];
    row_.time = times[1];
    for (std::size_t i = 0; i < ops.size(); ++i)
      row_.plans.push_back({ops[i].plan(), times[i + 1].median, error_of(ops[i])});
  }

 private:
  [[nodiscard]] static gpu::gemm not_recorded(const gpu::gemm_shape& shape) {
    const trace_pause pause;
    return gpu::gemm(shape);
  }
  /// As `measure`; returns the times of another product, timed in turn with it, which has to be
  /// right.
  [[nodiscard]] spread measured_beside(const gpu::gemm& other, int repeats) {
    const double relative_error = error_of(other);
    if (!right(relative_error))
      throw error(errc::internal, text_of_wrong(row_, other.plan().text(), relative_error));
    const std::vector<spread> times = times_of({&op_, &other}, repeats);
    row_.library_time = times[0];
    row_.time = times[1];
    return times[2];
  }
  /// Times one product by the library and by each of `ops`, in turn.
  [[nodiscard]] std::vector<spread> times_of(const std::vector<const gpu::gemm*>& ops,
                                             int repeats) {
    library_.settle();
    std::vector<gpu::graph> graphs;
    graphs.push_back(captured([this](int i) { run_library(i); }));
    for (const gpu::gemm* op : ops) graphs.push_back(captured([this, op](int i) { run(*op, i); }));
    std::vector<std::vector<double>> seconds(graphs.size());
    for (int repeat = -2; repeat < repeats; ++repeat) {
      for (std::size_t i = 0; i < graphs.size(); ++i) {
        const double one = seconds_of(graphs[i]);
        if (repeat >= 0) seconds[i].push_back(one);
      }
    }
    std::vector<spread> times;
    for (const std::vector<double>& all : seconds) times.push_back(spread_of(all));
    return times;
  }
  /// A graph of several products in sequence.
  [[nodiscard]] gpu::graph captured(const std::function<void(int)>& product) const {
    return {clock_.stream(), [&] {
              for (int i = 0; i < products_; ++i) product(i);
            }};
  }
  /// The seconds of one product.
  [[nodiscard]] double seconds_of(const gpu::graph& products) const {
    clock_.start();
    products.launch(clock_.stream());
    return clock_.stop() / products_;
  }
  [[nodiscard]] std::size_t bytes_of(std::int64_t one) const {
    return static_cast<std::size_t>(one) * static_cast<std::size_t>(places_);
  }
  [[nodiscard]] std::byte* at(const device_buffer& all, std::int64_t bytes, int i) const {
    return static_cast<std::byte*>(all.data()) + bytes * (i % places_);
  }
  void run(const gpu::gemm& op, int i) const {
    op.run(at(a_, a_bytes_, i), at(b_, b_bytes_, i), at(c_, c_bytes_, i), clock_.stream());
  }
  void run_library(int i) const {
    library_.run(at(a_, a_bytes_, i), at(b_, b_bytes_, i), at(c_, c_bytes_, i), clock_.stream());
  }

  void fill(const device_buffer& matrix, std::int64_t count, dtype type, std::uint64_t seed) {
    gpu::fill_normal({matrix.data(), type, 1, count}, seed, {0, 1}, {0, count}, clock_.stream());
  }

  /// The error against the library's result, as `deviation` defines it. Both results are added by
  /// tensor cores and rounded.
  [[nodiscard]] double error_of(const gpu::gemm& op) {
    gpu::require(cudaMemsetAsync(c_.data(), 0xff, bytes_of(c_bytes_), clock_.stream()),
                 "poisoning");
    run(op, 0);
    library_.run(a_.data(), b_.data(), at(c_, c_bytes_, 1), clock_.stream());
    const device_buffer sums(sizeof(gpu::comparison));
    const auto square = static_cast<double>(row_.k);
    deviation found(largest_error);
    found.add(gpu::compare({c_.data(), type_, row_.m, row_.n},
                           {at(c_, c_bytes_, 1), type_, row_.m, row_.n},
                           2 * roundoff_of(type_) + addition_share(row_.k), square, sums.data(),
                           clock_.stream()),
              static_cast<double>(row_.m * row_.n), square);
    return found.relative_error();
  }

  gemm_row& row_;
  dtype type_;
  const gpu::stopwatch& clock_;
  bulk::library_gemm library_;
  gpu::gemm op_;
  std::int64_t a_bytes_;
  std::int64_t b_bytes_;
  std::int64_t c_bytes_;
  int places_;
  device_buffer a_;
  device_buffer b_;
  device_buffer c_;
  int products_ = 1;
};

/// Plans that may be the fastest: those whose time by the model is near the least.
std::vector<gpu::gemm_plan> plausible_plans(const gemm_row& row, dtype type) {
  // Long products take long with every plan, so fewer plans are tried.
  const double flops = 2.0 * static_cast<double>(row.m) * static_cast<double>(row.n * row.k);
  const double farthest = flops < 3e11 ? 1.45 : flops < 1e12 ? 1.2 : 1.1;
  const std::size_t most_plans = flops < 3e11 ? 32 : 12;
  std::vector<gpu::gemm_plan> plans =
      gpu::plans_by_model({row.m, row.n, row.k, type}, gpu::gpu_here());
  const double most = plans.front().cycles * farthest;
  std::erase_if(plans, [&](const gpu::gemm_plan& p) { return p.cycles > most; });
  if (plans.size() > most_plans) plans.resize(most_plans);
  return plans;
}

}  // namespace

gemm_report run_gemm_suite(const gemm_suite_options& options) {
  using clock_type = std::chrono::steady_clock;
  const auto start = clock_type::now();
  gemm_report report{device_name("gemm"), bulk::blas().text, options.type, gemm_shapes(options)};
  report.drawn = options.problems > 0;
  report.seed = options.seed;
  report.invariant = options.invariant;
  report.traced = options.traced;
  const gpu::stopwatch clock;
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const std::chrono::duration<double> passed = clock_type::now() - start;
    if (options.seconds > 0 && passed.count() > options.seconds) {
      report.left_out = static_cast<int>(report.rows.size() - i);
      report.rows.resize(i);
      break;
    }
    gemm_row& row = report.rows[i];
    gemm_trial trial(row, options.type, clock);
    if (options.every_plan || options.rasters) {
      trial.measure_plans(
          options.rasters ? trial.rasters(report.device) : plausible_plans(row, options.type),
          options.repeats);
      for (const timed_plan& p : row.plans) {
        if (!right(p.relative_error))
          report.wrong.push_back(text_of_wrong(row, p.plan.text(), p.relative_error));
      }
    } else if (options.invariant) {
      trial.measure_invariant(options.repeats);
    } else if (options.traced) {
      trial.measure_traced(options.repeats);
    } else {
      trial.measure(options.repeats);
    }
    if (options.progress) options.progress();
  }
  return report;
}

}  // namespace untax::bench
