#include "spmv.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>
#include <untax/select/emit.hpp>
#include <untax/select/table.hpp>
#include <untax/sparse/device_spmv.hpp>
#include <untax/sparse/matrix_market.hpp>

#include "arguments.hpp"
#include "bench/suites/spmv.hpp"
#include "files.hpp"
#include "names.hpp"
#include "output.hpp"
#include "src/core/text_file.hpp"
#include "terminal.hpp"

namespace untax::cli {
namespace {

using bench::spmv_figure;
using bench::spmv_figures;
using sparse::all_spmv_kernels;
using sparse::spmv_kernel;

/// Refuses options of `untax run` that have no effect here, so that none is ignored silently.
void refuse_others(const CLI::App& verb) {
  const std::vector<std::string> own = {"--repeat", "--seed", "--backend",
                                        "--verify", "--json", "--help"};
  for (const CLI::Option* option : verb.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || std::ranges::find(own, name) != own.end()) continue;
    throw error(
        errc::invalid_argument,
        fmt::format("{} means nothing to spmv, which runs on threads of one process or on one "
                    "GPU; leave it out",
                    name));
  }
}

std::vector<spmv_kernel> kernels_named(const std::string& text, bool on_gpu) {
  std::vector<std::string> known;
  for (const spmv_kernel kernel : all_spmv_kernels) known.emplace_back(name_of(kernel));
  known.emplace_back("all");
  const std::size_t place = place_in("--kernel", text, known);
  if (place < all_spmv_kernels.size()) return {all_spmv_kernels[place]};
  return bench::spmv_kernels(on_gpu);
}

/// The device that computes the products: a GPU, or threads.
std::string place_of(const spmv_request& request, bool on_gpu) {
  return on_gpu ? "one GPU, " + sparse::cusparse_text()
                : fmt::format("{} threads", threads_of(request.threads));
}

double total_of(const spmv_figure& figure, int iterations) {
  return figure.setup_seconds + iterations * figure.seconds;
}

bool right(const spmv_figure& figure, bool single) {
  const double most = single ? sparse::spmv_tolerance<float> : sparse::spmv_tolerance<double>;
  return !figure.error || *figure.error <= most;
}

/// The kernel that a selector chooses, and whether the selector used the lengths of rows.
std::string chosen_by(const select::selector& chooser, const sparse::row_profile& profile,
                      int iterations) {
  std::vector<double> known;
  std::vector<double> gathered;
  for (const select::feature& f : chooser.what().features) {
    if (f.given) (f.gathered ? gathered : known).push_back(bench::feature_of(profile, f.is));
  }
  const select::choice taken = chooser.choose(known, iterations, [&] { return gathered; });
  return fmt::format("{}{}",
                     chooser.what().candidates[static_cast<std::size_t>(taken.candidate)].name,
                     taken.gathered ? ", by the lengths of rows" : ", by size alone");
}

/// The selector of a file. Throws `invalid_argument` if it asks for features that are not known of
/// a matrix.
select::selector selector_of(const std::string& path) {
  select::selector read = select::read_selector(text_of_file(path), path);
  for (const select::feature& f : read.what().features) {
    if (f.given) (void)bench::feature_of({}, f.is);
  }
  return read;
}

std::string refusals_of(const spmv_figures& figures) {
  std::string text;
  for (const spmv_figure& kernel : figures.kernels) {
    if (!kernel.refused.empty())
      text += fmt::format("{}: {}\n", name_of(kernel.kernel), kernel.refused);
  }
  return text;
}

/// What the bits of y depend on beside the operands: nothing, the threads or chance.
const char* bits_of(spmv_kernel kernel, bool on_gpu) {
  if (on_gpu) return is_reproducible_on_gpu(kernel) ? "same" : "by chance";
  return is_reproducible(kernel) ? "same" : "by threads";
}

void print_figures(const spmv_figures& figures, const spmv_request& request, bool single,
                   bool on_gpu) {
  using side = table::align;
  table rows({{"kernel"},
              {"conversion", side::right},
              {"product", side::right},
              {"GB/s", side::right},
              {"in all", side::right},
              {"bits"},
              {"error", side::right}});
  for (const spmv_figure& kernel : figures.kernels) {
    if (!kernel.refused.empty()) continue;
    rows.add(
        {std::string(name_of(kernel.kernel)), fmt::format("{:.1f}", 1e6 * kernel.setup_seconds),
         fmt::format("{:.2f}", 1e6 * kernel.seconds),
         fmt::format("{:.2f}", 1e-9 * bytes_of(figures, single) / std::max(kernel.seconds, 1e-9)),
         fmt::format("{:.1f}", 1e6 * total_of(kernel, request.iterations)),
         bits_of(kernel.kernel, on_gpu),
         kernel.error
             ? fmt::format("{:.1e}{}", *kernel.error, right(kernel, single) ? "" : " WRONG")
             : ""});
  }
  const sparse::row_profile& p = figures.profile;
  show(
      "{}: {} x {}, {} elements, rows of {:.0f} to {:.0f}; {}, {}\n"
      "times in us; in all: a conversion and {} products\n",
      figures.name, p.rows, p.cols, p.nnz, p.row_min, p.row_max, place_of(request, on_gpu),
      request.type, request.iterations);
  show(rows.render(width(stream::out), style(stream::out).utf8));
  show("{}", refusals_of(figures));
}

std::string json_of(const spmv_figures& figures, const spmv_request& request, bool on_gpu) {
  using json = nlohmann::ordered_json;
  json out = {{"format", "untax-run-spmv"},
              {"matrix", figures.name},
              {"rows", figures.profile.rows},
              {"cols", figures.profile.cols},
              {"nnz", figures.profile.nnz},
              {"backend", on_gpu ? "cuda" : "host"},
              {"threads", on_gpu ? 0 : threads_of(request.threads)},
              {"dtype", request.type},
              {"iterations", request.iterations},
              {"gathering_seconds", figures.gathering_seconds},
              {"kernels", json::array()}};
  for (const spmv_figure& figure : figures.kernels) {
    json kernel = {{"kernel", name_of(figure.kernel)}};
    if (figure.refused.empty()) {
      kernel["setup_seconds"] = figure.setup_seconds;
      kernel["seconds"] = figure.seconds;
      kernel["total_seconds"] = total_of(figure, request.iterations);
      kernel["reproducible"] =
          on_gpu ? is_reproducible_on_gpu(figure.kernel) : is_reproducible(figure.kernel);
      if (figure.error)
        kernel["error"] = std::isfinite(*figure.error) ? json(*figure.error) : json();
    } else {
      kernel["refused"] = figure.refused;
    }
    out["kernels"].push_back(std::move(kernel));
  }
  return out.dump(1) + "\n";
}

}  // namespace

int threads_of(int asked) {
  return asked > 0 ? asked : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void add_spmv_options(CLI::App& verb, spmv_request& request) {
  verb.add_option("--matrix", request.matrix,
                  "a Matrix Market file, which may be compressed (.gz)");
  verb.add_option("--dtype", request.type, "fp64 or fp32")
      ->check(words({"fp64", "fp32"}))
      ->capture_default_str();
  verb.add_option("--iterations", request.iterations, "products of one conversion")
      ->check(between(1, 1'000'000'000))
      ->capture_default_str();
  verb.add_option("--kernel", request.kernel, "one, or all")->capture_default_str();
  verb.add_option("--threads", request.threads, "0: one for each processor")
      ->check(between(0, 1024))
      ->capture_default_str();
  verb.add_option("--selector", request.selector,
                  "a file of `untax select train`, which chooses a kernel");
}

int run_spmv(const CLI::App& verb, const CLI::App& own, const spmv_request& request) {
  refuse_others(verb);
  if (request.matrix.empty()) {
    throw error(errc::invalid_argument,
                "--matrix is missing; spmv takes the path of a Matrix Market file");
  }
  const bool single = place_in("--dtype", request.type, {"fp64", "fp32"}) == 1;
  const bool on_gpu = place_in("--backend", request.backend, {"auto", "host", "cuda"}) == 2;
  if (on_gpu && own.count("--threads") > 0)
    throw error(errc::invalid_argument,
                "--threads means nothing to spmv with --backend cuda; leave it out");
  std::optional<select::selector> chooser;
  if (!request.selector.empty()) chooser = selector_of(request.selector);
  refuse_same_paths(
      {{"--json", request.json}, {"--matrix", request.matrix}, {"--selector", request.selector}});
  bench::spmv_options options;
  options.kernels = kernels_named(request.kernel, on_gpu);
  options.on_gpu = on_gpu;
  options.threads = threads_of(request.threads);
  options.repeats = request.repeats;
  options.verify = request.verify;
  options.single = single;
  options.seed = request.seed;
  const spmv_figures figures =
      bench::measure_spmv(std::filesystem::path(request.matrix).filename().string(),
                          sparse::load_matrix_market(request.matrix), options);
  if (request.json != "-") {
    print_figures(figures, request, single, on_gpu);
    if (chooser)
      show("the selector takes {}\n", chosen_by(*chooser, figures.profile, request.iterations));
  }
  if (!request.json.empty()) write_json(request.json, json_of(figures, request, on_gpu));
  return std::ranges::all_of(figures.kernels,
                             [&](const spmv_figure& figure) { return right(figure, single); })
             ? 0
             : 1;
}

}  // namespace untax::cli
