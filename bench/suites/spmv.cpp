#include "bench/suites/spmv.hpp"

#include <algorithm>
#include <limits>
#include <random>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>
#include <untax/taxes/timing.hpp>

#include "bench/suites/seconds_of.hpp"
#include "src/core/json.hpp"

namespace untax::bench {
namespace {

using namespace sparse;
using json = nlohmann::ordered_json;

constexpr const char* known_names[] = {"rows", "cols", "nnz"};
constexpr const char* gathered_names[] = {"row_min", "row_q1",       "row_median", "row_q3",
                                          "row_max", "row_variance", "padded"};
constexpr const char* bounds_names[] = {"row_min", "row_max", "row_variance", "padded"};

template <class Value>
std::vector<Value> random_values(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Value> values;
  values.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<Value>(static_cast<double>(random() >> 11U) * 0x1p-52 - 1));
  return values;
}

template <class Value, class Offset>
spmv_figures measure(const std::string& name, const csr<Value, Offset>& matrix,
                     const spmv_options& options) {
  spmv_figures figures;
  figures.name = name;
  const auto gather = [&] {
    figures.profile = profile_of(std::span<const Offset>(matrix.offsets), matrix.cols);
  };
  gather();
  figures.gathering_seconds = seconds_of(gather);
  const auto x = random_values<Value>(matrix.cols, options.seed);
  if (options.on_gpu) {
    measure_on_gpu(matrix, std::span<const Value>(x), options, figures);
    return figures;
  }
  std::vector<Value> y(static_cast<std::size_t>(matrix.rows));
  for (const spmv_kernel kernel : options.kernels) {
    spmv_figure figure;
    figure.kernel = kernel;
    try {
      spmv<Value, Offset> product(matrix.view(), kernel, options.threads);
      figure.setup_seconds = product.setup_seconds();
      std::vector<double> times;
      for (int i = -1; i < options.repeats; ++i) {
        const double seconds = seconds_of([&] { product.run(1, x, 0, y); });
        if (i >= 0) times.push_back(seconds);
      }
      figure.seconds = spread_of(std::move(times)).median;
      if (options.verify)
        figure.error = spmv_error(matrix.view(), 1, std::span<const Value>(x), 0, {},
                                  std::span<const Value>(y));
    } catch (const error& e) {
      if (e.code() != errc::unsupported) throw;
      figure.refused = e.what();
    }
    figures.kernels.push_back(std::move(figure));
  }
  return figures;
}

}  // namespace

spmv_figures measure_spmv(const std::string& name, const coordinates& matrix,
                          const spmv_options& options) {
  if (options.single) return measure(name, csr_of<float, std::int32_t>(matrix), options);
  return measure(name, csr_of<double, std::int32_t>(matrix), options);
}

spmv_figures measure_spmv(const std::string& name, const csr<double, std::int64_t>& matrix,
                          const spmv_options& options) {
  if (options.on_gpu) {
    require_offsets_for<std::int32_t>(matrix.view().size());
    const std::vector<std::int32_t> offsets(matrix.offsets.begin(), matrix.offsets.end());
    if (!options.single)
      return measure(name,
                     csr<double, std::int32_t>{matrix.rows, matrix.cols, offsets, matrix.columns,
                                               matrix.values},
                     options);
    csr<float, std::int32_t> less{matrix.rows, matrix.cols, offsets, matrix.columns, {}};
    less.values.assign(matrix.values.begin(), matrix.values.end());
    return measure(name, less, options);
  }
  if (!options.single) return measure(name, matrix, options);
  csr<float, std::int64_t> less{matrix.rows, matrix.cols, matrix.offsets, matrix.columns, {}};
  less.values.assign(matrix.values.begin(), matrix.values.end());
  return measure(name, less, options);
}

double bytes_of(const spmv_figures& figures, bool single) {
  const row_profile& p = figures.profile;
  const double value = single ? 4 : 8;
  return static_cast<double>(p.nnz) * (value + 4) + 4 * static_cast<double>(p.rows + 1) +
         value * static_cast<double>(p.rows + p.cols);
}

double feature_of(const row_profile& p, std::string_view name) {
  if (name == "rows") return static_cast<double>(p.rows);
  if (name == "cols") return static_cast<double>(p.cols);
  if (name == "nnz") return static_cast<double>(p.nnz);
  if (name == "row_min") return p.row_min;
  if (name == "row_q1") return p.row_q1;
  if (name == "row_median") return p.row_median;
  if (name == "row_q3") return p.row_q3;
  if (name == "row_max") return p.row_max;
  if (name == "row_variance") return p.row_variance;
  if (name == "padded") return p.padded;
  throw error(
      errc::invalid_argument,
      fmt::format(
          "the selector asks for {}; a matrix has the known features rows, cols and nnz, and the "
          "gathered ones row_min, row_q1, row_median, row_q3, row_max, row_variance, padded",
          name));
}

std::vector<spmv_kernel> spmv_kernels(bool on_gpu) {
  std::vector<spmv_kernel> some(all_spmv_kernels.begin(), all_spmv_kernels.end());
  std::erase_if(some, [&](spmv_kernel kernel) { return !on_gpu && !way_of(kernel).on_host; });
  return some;
}

std::vector<std::string> names_in_table(const std::string& text) {
  std::vector<std::string> names;
  const json records = parse_json<json>(text, "the table");
  for (const json& record : records) {
    if (!records.is_array() || !record.is_object() || !record.contains("name") ||
        !record["name"].is_string())
      throw error(errc::invalid_argument, "this table was not written by `untax bench spmv`");
    names.push_back(record["name"]);
  }
  if (!records.is_array())
    throw error(errc::invalid_argument, "this table was not written by `untax bench spmv`");
  return names;
}

std::string table_of(const std::vector<spmv_figures>& suites, const std::string& before) {
  json out = before.empty() ? json::array() : parse_json<json>(before, "the table");
  for (const spmv_figures& figures : suites) {
    json record = {{"name", figures.name}};
    for (const char* name : known_names) record[name] = feature_of(figures.profile, name);
    for (const char* name : gathered_names) record[name] = feature_of(figures.profile, name);
    record["gather"] = figures.gathering_seconds;
    if (figures.memory_rate > 0) record["memory_rate"] = figures.memory_rate;
    for (const spmv_figure& figure : figures.kernels) {
      const std::string kernel(name_of(figure.kernel));
      const bool ran = figure.refused.empty();
      record["t_" + kernel] = ran ? json(figure.seconds) : json();
      record["setup_" + kernel] = figure.setup_seconds;
    }
    out.push_back(std::move(record));
  }
  return out.dump(1) + "\n";
}

namespace {

/// The number of rows that have a block each on a GPU of 132 multiprocessors, at once or in a
/// second turn. So few rows cost little even if they are short.
constexpr int few_rows = 2 * 8 * 132;

/// The guard of a kernel excludes inputs for which it takes much longer than others, or too much
/// memory. A long row takes its lanes about a tenth of a microsecond for each element; large inputs
/// may have longer rows.
std::string guard_of(spmv_kernel kernel, bool on_gpu) {
  if (kernel == spmv_kernel::ell) return "padding <= 3";
  if (!on_gpu) return {};
  if (kernel == spmv_kernel::sellp || kernel == spmv_kernel::cusparse_sell) return "sliced <= 4";
  if (kernel == spmv_kernel::csr_block)
    return fmt::format("max(mean / 32, {} / max(rows, 1)) >= 1", few_rows);
  if (kernel == spmv_kernel::csr_adaptive) return "row_max <= 65536 + nnz / 64";
  const spmv_way& way = way_of(kernel);
  if (way.unit != unit_of_work::row) return {};
  const int lanes = lanes_of_row(way.lanes, way.mixed, std::numeric_limits<std::int64_t>::max());
  return fmt::format("row_max <= {} + nnz / {}", 256 * lanes, 16384 / lanes);
}

/// The guard if the longest row is unknown: no row is longer than all rows together, or than the
/// number of columns. Mixed lanes, which use more lanes for longer rows, need no guard: a product
/// takes at most some tens of times as long as the best, and trees learn from the table where it
/// does.
std::string known_guard_of(const spmv_way& way, const std::string& guard) {
  if (way.mixed && !guard.empty()) return "nnz >= 0";
  constexpr std::string_view longest = "row_max";
  return guard.starts_with(longest) ? "min(nnz, cols)" + guard.substr(longest.size()) : "";
}

}  // namespace

select::schema schema_of_table(const std::string& title, bool on_gpu) {
  select::schema result;
  result.title = title;
  result.labels = {"name"};
  for (const char* name : known_names) result.features.push_back({name, name, false, true});
  result.features.push_back({"mean", "nnz / max(rows, 1)", false, false});
  const auto gather = [&](const char* name) {
    result.features.push_back({name, name, true, true});
  };
  if (on_gpu) {
    std::ranges::for_each(bounds_names, gather);
    result.features.push_back({"sliced", "padded / max(nnz, 1)", true, false});
  } else {
    std::ranges::for_each(gathered_names, gather);
  }
  result.features.push_back({"padding", "rows * row_max / max(nnz, 1)", true, false});
  result.features.push_back({"spread", "sqrt(row_variance) / max(mean, 1)", true, false});
  for (const spmv_kernel kernel : all_spmv_kernels) {
    if (!on_gpu && !way_of(kernel).on_host) continue;
    const std::string name(name_of(kernel));
    const std::string guard = guard_of(kernel, on_gpu);
    // Kernels whose units are rows read the matrix without a conversion.
    const bool converts = way_of(kernel).unit != unit_of_work::row;
    result.candidates.push_back({name, "t_" + name, converts ? "setup_" + name : "0", guard,
                                 known_guard_of(way_of(kernel), guard)});
  }
  result.gathering = "gather";
  result.iterations = {1, 10, 100, 1000};
  return result;
}

}  // namespace untax::bench
