#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <filesystem>
#include <future>
#include <limits>
#include <new>
#include <optional>
#include <set>

#include <fmt/format.h>

#include <untax/core/environment.hpp>
#include <untax/core/error.hpp>
#include <untax/select/emit.hpp>
#include <untax/select/table.hpp>
#include <untax/sparse/device_spmv.hpp>
#include <untax/sparse/matrix_market.hpp>
#include <untax/sparse/stencil.hpp>

#include "bench/suites/spmv.hpp"
#include "bench_options.hpp"
#include "files.hpp"
#include "names.hpp"
#include "output.hpp"
#include "spmv.hpp"
#include "src/core/text_file.hpp"
#include "src/taxes/memory_room.hpp"
#include "terminal.hpp"

namespace untax::cli {
namespace {

using bench::spmv_figure;
using bench::spmv_figures;
using clock_type = std::chrono::steady_clock;

/// Matrix Market files in a folder, by name.
std::vector<std::string> matrices_in(const std::string& folder) {
  std::vector<std::string> devices;
  std::error_code wrong;
  for (std::filesystem::directory_iterator at(folder, wrong), end; !wrong && at != end;
       at.increment(wrong)) {
    const std::string path = at->path().string();
    if (path.ends_with(".mtx") || path.ends_with(".mtx.gz")) devices.push_back(path);
  }
  if (wrong || devices.empty()) {
    throw error(
        errc::invalid_argument,
        fmt::format("--matrices is {}; it has to be a folder with .mtx or .mtx.gz files", folder));
  }
  std::ranges::sort(devices);
  return devices;
}

/// At most `take` profiles of a table that are small enough, evenly spread over it.
std::vector<sparse::named_profile> profiles_for(const spmv_bench_request& request) {
  auto twins = sparse::read_profiles(request.twins);
  std::erase_if(twins, [&](const auto& twin) {
    return twin.profile.nnz > request.most_nnz || twin.profile.rows > request.most_nnz;
  });
  std::vector<sparse::named_profile> some;
  const std::size_t count = std::min(twins.size(), static_cast<std::size_t>(request.take));
  for (std::size_t i = 0; i < count; ++i) some.push_back(twins[i * twins.size() / count]);
  return some;
}

/// The names of the matrices in the table `text`, which is that of the file `path`.
std::vector<std::string> names_in(const std::string& text, const std::string& path) {
  try {
    return bench::names_in_table(text);
  } catch (const error& e) {
    throw error(e.code(), fmt::format("{}: {}; --resume adds to such a table", path, e.what()));
  }
}

/// The largest distance of elements of twin number `i` from the diagonal; 0: no limit.
std::int64_t band_of_twin(const spmv_bench_request& request, const sparse::row_profile& like,
                          std::size_t i) {
  if (!request.mixed_bands) return request.band;
  constexpr std::int64_t parts[] = {0, 8, 64, 512};
  const std::int64_t part = parts[i % std::size(parts)];
  return part == 0 ? 0 : std::max<std::int64_t>(like.cols / part, 1);
}

/// The matrices to measure: files, stencils, and twins of profiles. If `ahead` is above 0, threads
/// make twins in advance.
class inputs {
 public:
  inputs(const spmv_bench_request& request, const std::set<std::string>& done, bool on_gpu,
         int ahead)
      : request_(request), ahead_(static_cast<std::size_t>(ahead)) {
    if (!request.folder.empty()) files_ = matrices_in(request.folder);
    if (!request.twins.empty()) profiles_ = profiles_for(request);
    if (request.stencils)
      stencils_.assign(sparse::all_stencils.begin(), sparse::all_stencils.end());
    if (files_.empty() && stencils_.empty() && profiles_.empty()) {
      throw error(errc::invalid_argument,
                  "spmv has nothing to measure; --matrices names a folder of Matrix Market files, "
                  "--twins a table of lengths of rows, and --stencils makes up regular ones");
    }
    std::erase_if(files_, [&](const std::string& path) { return done.contains(name_of(path)); });
    std::erase_if(stencils_,
                  [&](const sparse::stencil& s) { return done.contains(std::string(s.name)); });
    if (!stencils_.empty() && on_gpu) memory_rate_ = bench::gpu_memory_rate();
    for (std::size_t i = 0; i < profiles_.size(); ++i) {
      if (!done.contains(name_of(profiles_[i]))) twins_.push_back(i);
    }
  }

  [[nodiscard]] std::size_t count() const {
    return files_.size() + stencils_.size() + twins_.size();
  }

  /// Measures one matrix. Matrices are measured in order. Prints the reason and returns nothing if
  /// a file is not a matrix, or a profile is not possible.
  std::optional<spmv_figures> measure(std::size_t number, const bench::spmv_options& options) {
    if (number < files_.size()) return measure_file(files_[number], options);
    number -= files_.size();
    if (number < stencils_.size()) return measure_stencil(stencils_[number], options);
    const std::size_t twin = number - stencils_.size();
    for (; begun_ < twins_.size() && begun_ <= twin + ahead_; ++begun_) {
      made_.push_back(std::async(
          ahead_ > 0 ? std::launch::async : std::launch::deferred, [this, i = twins_[begun_]] {
            const sparse::row_profile& like = profiles_[i].profile;
            return sparse::twin_of(like, band_of_twin(request_, like, i), i + 1);
          }));
    }
    auto figures = std::move(made_.front());
    made_.pop_front();
    const std::string name = name_of(profiles_[twins_[twin]]);
    return measure_or_leave(name,
                            [&] { return bench::measure_spmv(name, figures.get(), options); });
  }

 private:
  /// The figures of `measure`. If the matrix is wrong or does not fit, reports that and returns
  /// nothing.
  template <class Measure>
  static std::optional<spmv_figures> measure_or_leave(const std::string& origin,
                                                      const Measure& measure) {
    try {
      return measure();
    } catch (const error& e) {
      const bool is_of_input = e.code() == errc::invalid_argument ||
                               e.code() == errc::out_of_memory || e.code() == errc::unsupported;
      if (!is_of_input) throw;
      const std::string text = e.what();
      complain(fmt::format("left out: {}{}", text.starts_with(origin) ? "" : origin + ": ", text));
    } catch (const std::bad_alloc&) {
      complain(fmt::format("left out: {}: there is not enough memory for it", origin));
    }
    return std::nullopt;
  }
  static std::optional<spmv_figures> measure_file(const std::string& path,
                                                  const bench::spmv_options& options) {
    return measure_or_leave(path, [&] {
      const sparse::coordinates matrix = sparse::load_matrix_market(path);
      require_room_for(matrix.rows, matrix.cols, static_cast<double>(matrix.row.size()));
      return bench::measure_spmv(name_of(path), matrix, options);
    });
  }
  /// Throws `out_of_memory` if this machine lacks the memory in which kernels convert and multiply
  /// such a matrix. One bad file may claim any number of rows.
  static void require_room_for(std::int64_t rows, std::int64_t cols, double elements) {
    // Offsets, x, y and the notes of kernels for each row; elements as read, as CSR and converted.
    constexpr double of_row = 48;
    constexpr double of_element = 64;
    const double need = of_row * static_cast<double>(rows + cols) + of_element * elements;
    const memory_room room = room_on_host();
    if (need <= room.bytes) return;
    throw error(errc::out_of_memory,
                fmt::format("{} x {} with {} elements takes about {} of memory, and {} is free {}",
                            rows, cols, elements, format_bytes(static_cast<std::size_t>(need)),
                            format_bytes(static_cast<std::size_t>(room.bytes)), room.where));
  }
  [[nodiscard]] std::optional<spmv_figures> measure_stencil(
      const sparse::stencil& grid, const bench::spmv_options& options) const {
    const std::string name(grid.name);
    return measure_or_leave(name, [&] {
      spmv_figures figures =
          bench::measure_spmv(name, sparse::matrix_of(grid, request_.most_nnz), options);
      figures.memory_rate = memory_rate_;
      return figures;
    });
  }
  static std::string name_of(const std::string& path) {
    return std::filesystem::path(path).filename().string();
  }
  static std::string name_of(const sparse::named_profile& like) { return "twin of " + like.name; }

  const spmv_bench_request& request_;
  std::size_t ahead_;
  std::vector<std::string> files_;
  std::vector<sparse::stencil> stencils_;
  double memory_rate_ = 0;  ///< bytes per second, if stencils are measured on a GPU
  std::vector<sparse::named_profile> profiles_;
  std::vector<std::size_t> twins_;  ///< numbers of profiles
  std::size_t begun_ = 0;
  std::deque<std::future<sparse::csr<double, std::int64_t>>> made_;
};

/// The fastest kernel that ran, of untax or of the library; null if none did.
const spmv_figure* quickest(const spmv_figures& figures, bool of_library) {
  const spmv_figure* best = nullptr;
  for (const spmv_figure& kernel : figures.kernels) {
    if (!kernel.refused.empty() || way_of(kernel.kernel).on_host == of_library) continue;
    if (best == nullptr || kernel.seconds < best->seconds) best = &kernel;
  }
  return best;
}

void print_best(const std::vector<spmv_figures>& suites, bool single) {
  using side = table::align;
  constexpr std::size_t most_rows = 150;
  // A host has no cuSPARSE.
  const bool has_library = std::ranges::any_of(
      suites, [](const spmv_figures& figures) { return quickest(figures, true) != nullptr; });
  std::vector<table::column> columns = {{"matrix"},
                                        {"elements", side::right},
                                        {"best of untax"},
                                        {"us", side::right},
                                        {"GB/s", side::right}};
  if (has_library) {
    columns.insert(columns.end(),
                   {{"best of cuSPARSE"}, {"us", side::right}, {"ratio", side::right}});
  }
  table rows(columns);
  double logarithms = 0;
  int compared = 0;
  int slower = 0;
  for (const spmv_figures& figures : suites) {
    const spmv_figure* own = quickest(figures, false);
    const spmv_figure* library = quickest(figures, true);
    if (own == nullptr) continue;
    const double ratio = library == nullptr ? 0 : library->seconds / own->seconds;
    if (library != nullptr) {
      logarithms += std::log(ratio);
      ++compared;
      slower += ratio < 1 ? 1 : 0;
    }
    if (suites.size() > most_rows) continue;
    std::vector<std::string> row = {
        figures.name, std::to_string(figures.profile.nnz), std::string(name_of(own->kernel)),
        fmt::format("{:.2f}", 1e6 * own->seconds),
        fmt::format("{:.0f}", 1e-9 * bytes_of(figures, single) / own->seconds)};
    if (library != nullptr) {
      row.emplace_back(name_of(library->kernel));
      row.push_back(fmt::format("{:.2f}", 1e6 * library->seconds));
      row.push_back(fmt::format("{:.2f}", ratio));
    }
    rows.add(row);
  }
  if (suites.size() <= most_rows) show(rows.render(width(stream::out), style(stream::out).utf8));
  const auto rated = std::ranges::find_if(suites, [](const auto& f) { return f.memory_rate > 0; });
  if (rated != suites.end())
    show("a kernel that only reads memory reaches {:.0f} GB/s\n", 1e-9 * rated->memory_rate);
  if (compared > 0) {
    show(
        "the best of untax beside the best of cuSPARSE, {} matrices: {:.3f} times as fast in the "
        "geometric mean, slower at {}\n",
        compared, std::exp(logarithms / compared), slower);
  }
}

/// Prints the wrong results. Returns whether there are none.
bool all_right(const std::vector<spmv_figures>& suites, bool single) {
  const double most = single ? sparse::spmv_tolerance<float> : sparse::spmv_tolerance<double>;
  bool right = true;
  for (const spmv_figures& figures : suites) {
    for (const spmv_figure& kernel : figures.kernels) {
      if (!kernel.error || *kernel.error <= most) continue;
      complain(fmt::format("{}: {} is wrong by {:.2g} of the sum of absolute values", figures.name,
                           name_of(kernel.kernel), *kernel.error));
      right = false;
    }
  }
  return right;
}

}  // namespace

int run_spmv_bench(const bench_options& asked) {
  const spmv_bench_request& request = asked.spmv;
  const std::string& json = asked.json;
  constexpr std::chrono::seconds between_writes{10};
  bench::spmv_options options;
  options.on_gpu = place_in("--backend", request.backend, {"host", "cuda"}) == 1;
  options.single = place_in("--dtype", request.type, {"fp64", "fp32"}) == 1;
  options.kernels = bench::spmv_kernels(options.on_gpu);
  options.threads = threads_of(request.threads);
  options.repeats = asked.repeats;
  options.verify = request.verify;
  if (request.resume && (json.empty() || json == "-"))
    throw error(errc::invalid_argument, "--resume continues a file; --json has to name it");
  std::string before;
  std::set<std::string> done;
  if (request.resume && std::filesystem::exists(json)) {
    before = text_of_file(json);
    for (std::string& name : names_in(before, json)) done.insert(std::move(name));
  }
  // On a GPU twins are made during measurements; on the host this would disturb threads.
  inputs all(request, done, options.on_gpu, options.on_gpu ? options.threads : 0);
  std::vector<spmv_figures> measured;
  const auto start = clock_type::now();
  auto written = start;
  std::size_t seen = 0;
  const auto passed = [&] {
    return std::chrono::duration<double>(clock_type::now() - start).count();
  };
  {
    progress_bar bar("bench spmv", static_cast<std::int64_t>(all.count()));
    for (std::size_t i = 0; i < all.count(); ++i) {
      if (asked.seconds > 0 && passed() > asked.seconds) break;
      if (auto figures = all.measure(i, options)) measured.push_back(std::move(*figures));
      ++seen;
      bar.advance();
      if (!json.empty() && json != "-" && clock_type::now() - written > between_writes) {
        write_text(json, bench::table_of(measured, before));
        written = clock_type::now();
      }
    }
  }
  if (json != "-") {
    print_best(measured, options.single);
    if (seen < all.count()) show("{} matrices are left; --resume goes on\n", all.count() - seen);
  }
  if (!json.empty()) write_json(json, bench::table_of(measured, before));
  if (!request.schema.empty()) {
    const std::string title =
        options.on_gpu
            ? fmt::format("SpMV on one GPU, {}, {}", request.type, sparse::cusparse_text())
            : fmt::format("SpMV by {} threads of this host", options.threads);
    write_json(request.schema, select::to_json(bench::schema_of_table(title, options.on_gpu)));
  }
  return all_right(measured, options.single) ? 0 : 1;
}

}  // namespace untax::cli
