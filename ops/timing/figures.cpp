#include "ops/timing/figures.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>

#include "src/core/json.hpp"

namespace untax {
namespace {

namespace fs = std::filesystem;

double median_of(const nlohmann::json& g) { return g.at("seconds").at("median").get<double>(); }

int ranks_of(const nlohmann::json& in) {
  if (in.contains("tensor_parallel")) return in["tensor_parallel"].get<int>();
  if (in.contains("ranks")) return in["ranks"].get<int>();
  if (in.value("format", "") == "untax-bench-gemm") return 1;
  for (const char* list : {"entries", "problems"}) {
    if (in.contains(list) && !in[list].empty() && in[list][0].contains("ranks"))
      return in[list][0]["ranks"].get<int>();
  }
  return 0;
}
std::string device_of(const nlohmann::json& in) {
  for (const char* key : {"device", "gpu", "gpus"}) {
    if (in.contains(key)) return in[key].get<std::string>();
  }
  return {};
}

timed_case gemm_case(const nlohmann::json& p, std::string op, int ranks) {
  timed_case c;
  c.op = std::move(op);
  c.ranks = ranks;
  c.gather = p.value("gather", "rows") == "k" ? gather_axis::k : gather_axis::rows;
  c.m = p.at("m").get<std::int64_t>();
  c.n = p.at("n").get<std::int64_t>();
  c.k = p.at("k").get<std::int64_t>();
  return c;
}
timed_case attention_case(const nlohmann::json& p, int ranks, const char* batch, const char* keys) {
  timed_case c;
  c.op = "flash_decode";
  c.ranks = ranks;
  c.m = p.at(batch).get<std::int64_t>();
  c.heads = p.at("heads").get<std::int64_t>();
  c.kv_heads = p.at("kv_heads").get<std::int64_t>();
  c.head_dim = p.at("head_dim").get<std::int64_t>();
  c.keys = p.at(keys).get<std::int64_t>();
  return c;
}

/// "bulk_library, graph" becomes "bulk_library graph", and "fused_sequential, graph" the pattern.
std::string by_of_step(const std::string& ran) {
  const std::size_t comma = ran.find(", ");
  const std::string how = ran.substr(0, comma);
  return how == "bulk_library" ? how + " " + ran.substr(comma + 2) : how;
}
/// The name of a pattern of a table. The table's figures of the library are of captured runs.
std::string by_of_pattern(const std::string& name) {
  return name == "bulk_library" ? "bulk_library graph" : name;
}

class file_reader {
 public:
  file_reader(measurements& into, std::string name, int ranks)
      : into_(into), name_(std::move(name)), ranks_(ranks) {}

  void read(const nlohmann::json& in) {
    const std::string format = in.value("format", "");
    if (format == "untax-bench-overlap") read_overlap(in);
    if (format == "untax-bench-gemm") read_gemm(in);
    if (format == "untax-bench-attention") read_attention(in);
    if (format == "untax-bench-collectives") read_collectives(in);
    if (format == "untax-taxes") read_taxes(in);
    if (format == "untax-tune") read_table(in.at("entries"));
    if (format == "untax-bench-tune-check") read_table(in.at("problems"));
  }

 private:
  void add(timed_case c, std::string way, double seconds) {
    c.by = std::move(way);
    into_.figures.push_back({std::move(c), seconds, name_});
  }

  void read_overlap(const nlohmann::json& in) {
    for (const nlohmann::json& p : in.at("problems")) {
      const timed_case c = gemm_case(p, in.at("operator").get<std::string>(), ranks_);
      for (const nlohmann::json& g : p.at("figures")) {
        const auto way = g.at("by").get<std::string>();
        // A figure of `automatic` does not say which pattern ran.
        const bool is_chosen = way.starts_with(name_of(pattern::automatic));
        if (!is_chosen && !g.contains("refusal")) add(c, way, median_of(g));
      }
    }
  }
  void read_gemm(const nlohmann::json& in) {
    for (const nlohmann::json& p : in.at("gemms")) {
      const timed_case c = gemm_case(p, "gemm", 1);
      add(c, "GEMM alone", median_of(p));
      add(c, "cuBLASLt alone", p.at("library_seconds").at("median").get<double>());
    }
  }
  void read_attention(const nlohmann::json& in) {
    for (const nlohmann::json& p : in.at("problems")) {
      // Figures with pages, or with partial results of 16 bits, are variants that no judgement
      // uses.
      if (p.value("page_size", 0) != 0 || p.value("partials", "fp32") != "fp32") continue;
      const timed_case c = attention_case(p, ranks_, "batch", "keys");
      for (const nlohmann::json& g : p.at("figures")) {
        const auto label = g.at("by").get<std::string>();
        add(c, by_of_pattern(label), median_of(g));
      }
    }
  }
  void read_collectives(const nlohmann::json& in) {
    for (const nlohmann::json& p : in.at("collectives")) {
      timed_case c;
      c.op = p.at("collective").get<std::string>();
      c.ranks = ranks_;
      c.bytes = p.at("bytes").get<double>();
      for (const nlohmann::json& g : p.at("figures"))
        add(c, g.at("by").get<std::string>(), median_of(g));
    }
  }
  void read_taxes(const nlohmann::json& in) {
    if (in.value("backend", "") != "cuda") return;
    for (const nlohmann::json& r : in.at("rows")) {
      const auto op = r.at("operator").get<std::string>();
      measured_row row;
      row.what =
          r.contains("heads") ? attention_case(r, ranks_, "m", "k") : gemm_case(r, op, ranks_);
      row.file = name_;
      for (const nlohmann::json& s : r.at("steps")) {
        const auto id = s.at("id").get<std::string>();
        const double seconds = s.at("median").get<double>();
        row.steps[id.at(1) - '0'] = seconds;
        add(row.what, by_of_step(s.at("ran").get<std::string>()), seconds);
      }
      into_.rows.push_back(row);
    }
  }
  void read_table(const nlohmann::json& entries) {
    for (const nlohmann::json& e : entries) {
      const timed_case c = gemm_case(e, e.at("operator").get<std::string>(), ranks_);
      for (const auto& [how, seconds] : e.at("seconds").items())
        add(c, by_of_pattern(how), seconds.get<double>());
    }
  }

  measurements& into_;
  std::string name_;
  int ranks_;
};

std::vector<fs::path> files_of(const std::vector<std::string>& paths) {
  std::vector<fs::path> files;
  for (const std::string& path : paths) {
    std::error_code failed;
    if (!fs::is_directory(path, failed)) {
      files.emplace_back(path);
      continue;
    }
    for (const auto& file : fs::directory_iterator(path, failed)) {
      if (file.path().extension() == ".json") files.push_back(file.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

/// The document of a file of measurements. Throws `invalid_argument` if the file holds none.
nlohmann::json document_of(const fs::path& path) {
  nlohmann::json in =
      read_json(path.string(), {.advice = "give files that `untax bench --json` wrote, or "
                                          "folders of them"});
  if (!in.is_object()) {
    throw error(errc::invalid_argument,
                fmt::format("{}: it is not a JSON object; `untax bench --json` writes such files",
                            path.string()));
  }
  return in;
}

}  // namespace

measurements read_measurements(const std::vector<std::string>& paths, const std::string& device,
                               int least, int most) {
  measurements m;
  for (const fs::path& path : files_of(paths)) {
    const nlohmann::json in = document_of(path);
    try {
      const int ranks = ranks_of(in);
      if (ranks < least || ranks > most) continue;
      if (device_of(in).find(device) == std::string::npos) continue;
      const std::size_t before = m.figures.size();
      file_reader(m, path.filename().string(), ranks).read(in);
      if (m.figures.size() > before) m.files.push_back(path.filename().string());
    } catch (const nlohmann::json::exception& wrong) {
      throw error(errc::invalid_argument, fmt::format("{}: {}", path.string(), wrong.what()));
    }
  }
  return m;
}

}  // namespace untax
