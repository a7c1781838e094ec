#include "check_gpu.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "names.hpp"
#include "ops/common/device_runner.hpp"
#include "ops/common/planning.hpp"
#include "ops/common/registry.hpp"

namespace untax::cli {
namespace {

struct gpu_model {
  const char* name;
  int multiprocessors;
};
constexpr gpu_model models[] = {
    {"h200", 132}, {"h100", 132}, {"gh200", 132}, {"h100-pcie", 114}, {"h20", 78}};

constexpr pattern own_kernels[] = {pattern::bulk_synchronous,       pattern::producer_consumer,
                                   pattern::fused_sequential,       pattern::fused_specialized,
                                   pattern::fused_warp_specialized, pattern::copy_engine};

/// The most elements of a matrix. With as many, each plan takes some seconds.
constexpr double most_elements = 1 << 30;

std::vector<std::string> names_of_patterns() {
  std::vector<std::string> names;
  for (const pattern how : own_kernels) names.emplace_back(name_of(how));
  return names;
}

void require_possible(const gpu_check_request& r) {
  const std::string& name = r.entry.name;
  if (!r.check) {
    throw error(errc::invalid_argument, fmt::format("{} has no kernels of its own for GPUs", name));
  }
  constexpr int most_ranks = 16;
  if (r.ranks < 1 || r.ranks > most_ranks)
    throw error(errc::invalid_argument,
                fmt::format("--ranks is {}; with --gpu it has to be between 1 and {}", r.ranks,
                            most_ranks));
  if (!r.entry.gathers && (r.gather || r.move))
    throw error(errc::invalid_argument,
                fmt::format("{} gathers nothing; --gather and --move do not fit it", name));
  if (!r.entry.sums_to && r.partials)
    throw error(errc::invalid_argument,
                fmt::format("{} sends no partial results; --partials does not fit it", name));
  require_size(name, 0, "m", r.problem.m);
  require_size(name, 0, "n", r.problem.n);
  require_size(name, 0, "k", r.problem.k);
  const double elements =
      static_cast<double>(r.problem.m) * static_cast<double>(std::max(r.problem.n, r.problem.k));
  if (elements > most_elements) {
    throw error(errc::invalid_argument,
                fmt::format("{}: m {}, n {}, k {} would take too long; --gpu validates each "
                            "transfer, so m times n and m times k may be at most {:.0f}",
                            name, r.problem.m, r.problem.n, r.problem.k, most_elements));
  }
  if (find_operator(name) != nullptr)
    require_device_problem(name, 0, r.problem.type, r.problem.n, r.problem.k);
}

template <class T, std::size_t count>
std::vector<T> wanted(const char* option, const std::optional<std::string>& text,
                      const T (&all)[count]) {
  if (!text) return {std::begin(all), std::end(all)};
  return {named(option, *text, std::vector<T>(std::begin(all), std::end(all)))};
}

/// A plan to check.
struct gpu_plan {
  std::string way;
  gemm_problem problem;
  operator_options options;
};

/// All plans that the request asks for.
std::vector<gpu_plan> plans_of(const gpu_check_request& request) {
  const bool gathers = request.entry.gathers;
  constexpr gather_axis axes[] = {gather_axis::rows, gather_axis::k};
  constexpr direction directions[] = {direction::push, direction::pull};
  const bool sums = request.entry.sums_to.has_value();
  constexpr dtype partials[] = {dtype::f32, dtype::bf16};
  std::vector<pattern> patterns(std::begin(own_kernels), std::end(own_kernels));
  if (request.how) patterns = {patterns[place_in("--pattern", *request.how, names_of_patterns())]};
  std::vector<gpu_plan> plans;
  for (const pattern how : patterns) {
    const bool pulls = how == pattern::producer_consumer || how == pattern::fused_specialized;
    for (const gather_axis axis : wanted("--gather", request.gather, axes)) {
      if (!gathers && axis != gather_axis::rows) continue;
      for (const direction move : wanted("--move", request.move, directions)) {
        if (move == direction::pull && !(gathers && pulls)) continue;
        for (const dtype sent : wanted("--partials", request.partials, partials)) {
          if (!sums && sent != dtype::f32) continue;
          gemm_problem problem = request.problem;
          problem.gather = axis;
          problem.partials = sent;
          operator_options options;
          options.how = how;
          options.move = move;
          std::string way(name_of(how));
          if (gathers) way += fmt::format(", gather {}", name_of(axis));
          if (gathers && pulls) way += fmt::format(", {}", name_of(move));
          if (sums) way += fmt::format(", {} partials", name_of(sent));
          plans.push_back({way, problem, options});
        }
      }
    }
  }
  return plans;
}

}  // namespace

bool gpu_check_report::right() const {
  return std::ranges::all_of(rows, [](const auto& row) { return row.found.faults.empty(); });
}

const std::vector<std::string>& gpu_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> findings;
    for (const gpu_model& model : models) findings.emplace_back(model.name);
    return findings;
  }();
  return names;
}

gpu_check_report check_gpu_plans(const gpu_check_request& request,
                                 const gpu_check_progress& progress) {
  gpu_check_report report{
      request, models[place_in("--gpu", request.gpu, gpu_names())].multiprocessors, {}};
  require_possible(request);
  const std::vector<gpu_plan> plans = plans_of(request);
  if (plans.empty())
    throw error(
        errc::invalid_argument,
        "none of the chosen patterns can pull; producer_consumer and fused_specialized can");
  for (const gpu_plan& plan : plans) {
    if (progress) progress(plan.way, report.rows.size(), plans.size());
    report.rows.push_back({plan.way, request.check(plan.problem, request.ranks, plan.options,
                                                   report.multiprocessors)});
  }
  return report;
}

std::string table_of(const gpu_check_report& report, int columns, text_style how) {
  using side = table::align;
  table rows({{"plan"},
              {"lanes", side::right},
              {"transfers", side::right},
              {"waits", side::right},
              {"verdict"}});
  std::uint64_t waits = 0;
  std::size_t transfers = 0;
  for (const gpu_check_row& row : report.rows) {
    const device_findings& f = row.found;
    rows.add({row.way, fmt::to_string(f.lanes), fmt::to_string(f.transfers),
              fmt::to_string(f.waits),
              !f.refusal.empty()  ? "not planned"
              : !f.faults.empty() ? "WRONG"
                                  : "right"});
    waits += f.waits;
    transfers += f.transfers;
  }
  const gemm_problem& p = report.request.problem;
  std::string text = fmt::format("{}, m {}, n {}, k {}, {} ranks, {} with {} multiprocessors\n\n",
                                 report.request.entry.name, p.m, p.n, p.k, report.request.ranks,
                                 report.request.gpu, report.multiprocessors);
  text += rows.render(columns, how.utf8);
  text += fmt::format("\n{} plans, {} transfers validated, {} waits proved\n", report.rows.size(),
                      transfers, waits);
  for (const gpu_check_row& row : report.rows) {
    for (const std::string& fault : row.found.faults)
      text += fmt::format("\n{}: {}\n", row.way, fault);
    if (!row.found.refusal.empty()) text += fmt::format("\n{}: {}\n", row.way, row.found.refusal);
  }
  return text;
}

}  // namespace untax::cli
