#include "spmv.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>
#include <untax/select/emit.hpp>
#include <untax/select/table.hpp>
#include <untax/sparse/matrix_market.hpp>

#include "arguments.hpp"
#include "bench/suites/spmv.hpp"
#include "files.hpp"
#include "names.hpp"
#include "output.hpp"
#include "terminal.hpp"

namespace untax::cli {
namespace {

using bench::spmv_figure;
using bench::spmv_figures;
using sparse::all_spmv_kernels;
using sparse::spmv_kernel;

int threads_of(int asked) {
  return asked > 0 ? asked : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// Refuses options that other operators have, so that nobody believes they did something.
void refuse_others(const CLI::App& verb) {
  std::vector<std::string> own = {"OPERATOR", "--dtype", "--repeat", "--seed",
                                  "--verify", "--json",  "--help"};
  own.insert(own.end(), spmv_run_options.begin(), spmv_run_options.end());
  for (const CLI::Option* option : verb.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || std::ranges::find(own, name) != own.end()) continue;
    throw error(errc::invalid_argument,
                fmt::format("{} means nothing to spmv, which runs on threads of one process; leave "
                            "it out",
                            name));
  }
}

std::vector<spmv_kernel> kernels_named(const std::string& text) {
  std::vector<std::string> known;
  for (const spmv_kernel one : all_spmv_kernels) known.emplace_back(name_of(one));
  known.emplace_back("all");
  const std::size_t place = place_in("--kernel", text, known);
  if (place < all_spmv_kernels.size()) return {all_spmv_kernels[place]};
  return {all_spmv_kernels.begin(), all_spmv_kernels.end()};
}

double total_of(const spmv_figure& figure, int iterations) {
  return figure.setup_seconds + iterations * figure.seconds;
}

bool right(const spmv_figure& figure, bool single) {
  const double most = single ? sparse::spmv_tolerance<float> : sparse::spmv_tolerance<double>;
  return !figure.error || *figure.error <= most;
}

/// What a selector takes for this matrix, and whether it looks at it.
std::string chosen_by(const select::selector& chooser, const sparse::row_profile& profile,
                      int iterations) {
  std::vector<double> known;
  std::vector<double> gathered;
  for (const select::feature& one : chooser.what().features) {
    if (one.given) (one.gathered ? gathered : known).push_back(bench::feature_of(profile, one.is));
  }
  const select::choice taken = chooser.choose(known, iterations, [&] { return gathered; });
  return fmt::format("{}{}",
                     chooser.what().candidates[static_cast<std::size_t>(taken.candidate)].name,
                     taken.gathered ? ", by the lengths of rows" : ", by size alone");
}

std::string refusals_of(const spmv_figures& figures) {
  std::string text;
  for (const spmv_figure& one : figures.kernels) {
    if (!one.refused.empty()) text += fmt::format("{}: {}\n", name_of(one.kernel), one.refused);
  }
  return text;
}

void print_figures(const spmv_figures& figures, const spmv_request& request, bool single) {
  using side = table::align;
  table rows({{"kernel"},
              {"conversion", side::right},
              {"product", side::right},
              {"GB/s", side::right},
              {"in all", side::right},
              {"bits"},
              {"error", side::right}});
  for (const spmv_figure& one : figures.kernels) {
    if (!one.refused.empty()) continue;
    rows.add(
        {std::string(name_of(one.kernel)), fmt::format("{:.1f}", 1e6 * one.setup_seconds),
         fmt::format("{:.2f}", 1e6 * one.seconds),
         fmt::format("{:.2f}", 1e-9 * bytes_of(figures, single) / std::max(one.seconds, 1e-9)),
         fmt::format("{:.1f}", 1e6 * total_of(one, request.iterations)),
         is_reproducible(one.kernel) ? "same" : "by threads",
         one.error ? fmt::format("{:.1e}{}", *one.error, right(one, single) ? "" : " WRONG") : ""});
  }
  const sparse::row_profile& p = figures.profile;
  show(
      "{}: {} x {}, {} elements, rows of {:.0f} to {:.0f}; {} threads, {}\n"
      "times in us; in all: a conversion and {} products\n",
      figures.name, p.rows, p.cols, p.nnz, p.row_min, p.row_max, threads_of(request.threads),
      request.type, request.iterations);
  show(rows.render(width(stream::out), style(stream::out).utf8));
  show("{}", refusals_of(figures));
}

std::string json_of(const spmv_figures& figures, const spmv_request& request) {
  using json = nlohmann::ordered_json;
  json out = {{"format", "untax-run-spmv"},
              {"matrix", figures.name},
              {"rows", figures.profile.rows},
              {"cols", figures.profile.cols},
              {"nnz", figures.profile.nnz},
              {"threads", threads_of(request.threads)},
              {"dtype", request.type},
              {"iterations", request.iterations},
              {"gathering_seconds", figures.gathering_seconds},
              {"kernels", json::array()}};
  for (const spmv_figure& one : figures.kernels) {
    json kernel = {{"kernel", name_of(one.kernel)}};
    if (one.refused.empty()) {
      kernel["setup_seconds"] = one.setup_seconds;
      kernel["seconds"] = one.seconds;
      kernel["total_seconds"] = total_of(one, request.iterations);
      kernel["reproducible"] = is_reproducible(one.kernel);
      if (one.error) kernel["error"] = std::isfinite(*one.error) ? json(*one.error) : json();
    } else {
      kernel["refused"] = one.refused;
    }
    out["kernels"].push_back(std::move(kernel));
  }
  return out.dump(1) + "\n";
}

/// Matrix Market files in a folder, by name.
std::vector<std::string> matrices_in(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code wrong;
  for (std::filesystem::directory_iterator at(folder, wrong), end; !wrong && at != end;
       at.increment(wrong)) {
    const std::string path = at->path().string();
    if (path.ends_with(".mtx") || path.ends_with(".mtx.gz")) found.push_back(path);
  }
  if (wrong || found.empty()) {
    throw error(
        errc::invalid_argument,
        fmt::format("--matrices is {}; it has to be a folder with .mtx or .mtx.gz files", folder));
  }
  std::ranges::sort(found);
  return found;
}

/// Those of a table that are small enough, evenly over it.
std::vector<sparse::named_profile> profiles_for(const spmv_bench_request& request) {
  auto all = sparse::read_profiles(request.twins);
  std::erase_if(all, [&](const auto& one) {
    return one.profile.nnz > request.most_nnz || one.profile.rows > request.most_nnz;
  });
  std::vector<sparse::named_profile> some;
  const std::size_t count = std::min(all.size(), static_cast<std::size_t>(request.take));
  for (std::size_t i = 0; i < count; ++i) some.push_back(all[i * all.size() / count]);
  return some;
}

void print_best(const std::vector<spmv_figures>& all) {
  using side = table::align;
  table rows({{"matrix"},
              {"elements", side::right},
              {"best"},
              {"us", side::right},
              {"csr_rows, us", side::right}});
  for (const spmv_figures& figures : all) {
    const spmv_figure* best = &figures.kernels.front();
    for (const spmv_figure& one : figures.kernels) {
      if (one.refused.empty() && one.seconds < best->seconds) best = &one;
    }
    rows.add({figures.name, std::to_string(figures.profile.nnz), std::string(name_of(best->kernel)),
              fmt::format("{:.2f}", 1e6 * best->seconds),
              fmt::format("{:.2f}", 1e6 * figures.kernels.front().seconds)});
  }
  show(rows.render(width(stream::out), style(stream::out).utf8));
}

}  // namespace

void add_spmv_options(CLI::App& verb, spmv_request& request) {
  verb.add_option("--matrix", request.matrix,
                  "of spmv: a Matrix Market file, which may be compressed (.gz)");
  verb.add_option("--iterations", request.iterations, "of spmv: products of one conversion")
      ->check(between(1, 1'000'000'000))
      ->capture_default_str();
  verb.add_option("--kernel", request.kernel, "of spmv: one, or all")->capture_default_str();
  verb.add_option("--threads", request.threads, "of spmv; 0: one for each processor")
      ->check(between(0, 1024))
      ->capture_default_str();
  verb.add_option("--selector", request.selector,
                  "of spmv: what this file of `untax select train` would choose");
}

int run_spmv(const CLI::App& verb, const spmv_request& request) {
  refuse_others(verb);
  if (request.matrix.empty()) {
    throw error(errc::invalid_argument,
                "--matrix is missing; spmv takes the path of a Matrix Market file");
  }
  const bool single = place_in("--dtype", request.type, {"fp64", "fp32"}) == 1;
  std::optional<select::selector> chooser;
  if (!request.selector.empty())
    chooser = select::read_selector(select::text_of_file(request.selector), request.selector);
  bench::spmv_options options;
  options.kernels = kernels_named(request.kernel);
  options.threads = threads_of(request.threads);
  options.repeats = request.repeats;
  options.verify = request.verify;
  options.single = single;
  options.seed = request.seed;
  const spmv_figures figures =
      bench::measure_spmv(std::filesystem::path(request.matrix).filename().string(),
                          sparse::load_matrix_market(request.matrix), options);
  if (request.json != "-") {
    print_figures(figures, request, single);
    if (chooser)
      show("the selector takes {}\n", chosen_by(*chooser, figures.profile, request.iterations));
  }
  if (!request.json.empty()) write_json(request.json, json_of(figures, request));
  return std::ranges::all_of(figures.kernels,
                             [&](const spmv_figure& one) { return right(one, single); })
             ? 0
             : 1;
}

void add_spmv_bench_options(CLI::App& verb, spmv_bench_request& request) {
  verb.add_option("--matrices", request.folder, "of spmv: a folder of Matrix Market files");
  verb.add_option("--twins", request.twins,
                  "of spmv: a table of lengths of rows; matrices like its records are made up");
  verb.add_option("--take", request.take, "of spmv: twins, at most")
      ->check(between(1, 1'000'000))
      ->capture_default_str();
  verb.add_option("--most-elements", request.most_nnz, "of spmv: of a twin")
      ->check(between(1, std::numeric_limits<std::int32_t>::max()))
      ->capture_default_str();
  verb.add_option("--band", request.band,
                  "of spmv: how far a twin's elements are from the diagonal; 0: anywhere")
      ->check(at_least(0));
  verb.add_option("--threads", request.threads, "of spmv; 0: one for each processor")
      ->check(between(0, 1024));
  verb.add_option("--schema", request.schema,
                  "of spmv: write what `untax select` takes with --json")
      ->check(writable_file());
}

int run_spmv_bench(const spmv_bench_request& request, int repeats, const std::string& json) {
  std::vector<std::string> files;
  std::vector<sparse::named_profile> profiles;
  if (!request.folder.empty()) files = matrices_in(request.folder);
  if (!request.twins.empty()) profiles = profiles_for(request);
  if (files.empty() && profiles.empty()) {
    throw error(errc::invalid_argument,
                "spmv has nothing to measure; --matrices names a folder of Matrix Market files, "
                "--twins a table of lengths of rows");
  }
  bench::spmv_options options;
  options.kernels = {all_spmv_kernels.begin(), all_spmv_kernels.end()};
  options.threads = threads_of(request.threads);
  options.repeats = repeats;
  std::vector<spmv_figures> all;
  {
    progress_bar bar("bench spmv", static_cast<std::int64_t>(files.size() + profiles.size()));
    for (const std::string& path : files) {
      all.push_back(bench::measure_spmv(std::filesystem::path(path).filename().string(),
                                        sparse::load_matrix_market(path), options));
      bar.advance();
    }
    for (std::size_t i = 0; i < profiles.size(); ++i) {
      all.push_back(bench::measure_spmv("twin of " + profiles[i].name,
                                        sparse::twin_of(profiles[i].profile, request.band, i + 1),
                                        options));
      bar.advance();
    }
  }
  if (json != "-") print_best(all);
  if (!json.empty()) write_json(json, bench::table_of(all));
  if (!request.schema.empty())
    write_json(request.schema, select::to_json(bench::schema_of_table(fmt::format(
                                   "SpMV by {} threads of this host", options.threads))));
  return 0;
}

}  // namespace untax::cli
