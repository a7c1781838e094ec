// JSON of the suites that measure GPUs.
#include <cstdlib>

#include <untax/world/devices.hpp>

#include "bench/suites/public_kernels.hpp"
#include "engines/bulk/communicator.hpp"
#include "json_output.hpp"
#include "json_parts.hpp"
#include "ops/common/registry.hpp"
#include "src/taxes/pattern_figure.hpp"

namespace untax::cli {
namespace {

/// The first fields of the JSON of a suite that measures GPUs.
json device_head(std::string_view format, int ranks, int repeats) {
  json out = head(format);
  const device_survey survey = survey_devices(false);
  if (!survey.devices.empty()) out["device"] = survey.devices.front().name;
  out["driver"] = survey.driver;
  out["runtime"] = survey.runtime;
  out["ranks"] = ranks;
  out["repeats"] = repeats;
  return out;
}

/// Variables that change what NCCL runs. Its other variables may name hosts and files.
constexpr const char* nccl_variables[] = {
    "NCCL_ALGO",          "NCCL_PROTO",        "NCCL_NVLS_ENABLE",    "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL",     "NCCL_MIN_CTAS",     "NCCL_MAX_CTAS",       "NCCL_MIN_NCHANNELS",
    "NCCL_MAX_NCHANNELS", "NCCL_NTHREADS",     "NCCL_BUFFSIZE",       "NCCL_CTA_POLICY",
    "NCCL_WIN_ENABLE",    "NCCL_CUMEM_ENABLE", "NCCL_LOCAL_REGISTER", "NCCL_GRAPH_REGISTER"};

/// Adds the version of NCCL, the form of its calls, and the variables of NCCL that are set.
void add_nccl(json& out, const std::string& library) {
  out["library"] = library;
  out["nccl_calls"] = bulk::nccl_calls;
  json set = json::object();
  for (const char* name : nccl_variables) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): untax never sets one
    if (value != nullptr) set[name] = value;
  }
  out["nccl_environment"] = std::move(set);
}

template <class Bars>
void add_bars(json& out, const Bars& bars) {
  for (const auto& b : bars) {
    out["bars"].push_back({{"what", b.what},
                           {"value", b.value},
                           {b.at_most ? "at_most" : "at_least", b.bar},
                           {"met", b.met()}});
  }
}

json from(const bench::timed_plan& timed) {
  const gpu::tile_config& c = timed.plan.config;
  const gpu::tile_schedule& order = timed.plan.schedule;
  return {{"block_n", c.block_n},
          {"cluster", c.cluster},
          {"stages", c.stages},
          {"swap_ab", c.swap_ab},
          {"epilogue_buffers", c.epilogue_buffers},
          {"warpgroup_split_k", c.warpgroup_split_k},
          {"cluster_split_k", c.cluster_split_k},
          {"m_tiles", order.m_tiles},
          {"n_tiles", order.n_tiles},
          {"clusters", order.clusters},
          {"stream_k_tiles", order.stream_k_tiles},
          {"raster_group", order.raster_group},
          {"cycles", timed.plan.cycles},
          {"seconds", timed.seconds},
          {"relative_difference", timed.relative_error}};
}

}  // namespace

std::string to_json(const bench::rma_report& report, int repeats) {
  constexpr const char* tables[] = {"blocks", "sizes", "pairs", "all", "latency", "atomics"};
  json out = device_head("untax-bench-rma", report.ranks, repeats);
  for (const bench::rma_figure& f : report.figures) {
    json object = {{"table", tables[static_cast<std::size_t>(f.table)]},
                   {"what", f.what},
                   {"method", f.method},
                   {"from", f.from},
                   {"to", f.to},
                   {"blocks", f.blocks},
                   {"bytes", f.bytes},
                   {"seconds", from(f.time)},
                   {"bound", f.bound}};
    if (f.bytes > 0) object["bytes_per_second"] = f.rate();
    if (f.bar > 0) {
      object["bar"] = f.bar;
      object["met"] = f.met();
      object["met_by_any"] = met_by_any(report, f);
    }
    out["figures"].push_back(std::move(object));
  }
  return text_of(out);
}

std::string to_json(const bench::collective_report& report, int repeats) {
  json out = device_head("untax-bench-collectives", report.ranks, repeats);
  out["dtype"] = name_of(report.type);
  add_nccl(out, report.library);
  out["nccl_calls"] =
      std::string(bulk::nccl_calls) +
      "; \"NCCL windows\": from and to memory of ncclMemAlloc that "
      "ncclCommWindowRegister has made symmetric windows, the better of both counts";
  for (const bench::collective_row& row : report.rows) {
    json figures = json::array();
    for (const bench::collective_figure& f : row.figures) {
      json object = {{"by", f.variant}, {"explanation", f.explanation}};
      if (f.time) {
        object["seconds"] = from(*f.time);
      } else {
        object["refusal"] = f.refusal;
      }
      figures.push_back(std::move(object));
    }
    out["collectives"].push_back({{"collective", name_of(row.kind)},
                                  {"bytes", row.bytes},
                                  {"sent_bytes", row.sent_bytes(report.ranks)},
                                  {"figures", std::move(figures)}});
  }
  return text_of(out);
}

std::string to_json(const bench::gemm_report& report, int repeats) {
  json out = head("untax-bench-gemm");
  out["gpu"] = report.device;
  out["dtype"] = name_of(report.type);
  out["library"] = report.library;
  out["repeats"] = repeats;
  if (report.drawn) {
    out["seed"] = report.seed;
    out["left_out"] = report.left_out;
    const auto bar = [&](std::string_view what, double value, double least) {
      out["bars"].push_back(
          {{"what", what}, {"value", value}, {"at_least", least}, {"met", value >= least}});
    };
    bar("cuBLASLt / time to 128 rows, geometric mean", report.mean_ratio(true),
        report.mean_bar(true));
    bar("cuBLASLt / time above 128 rows, geometric mean", report.mean_ratio(false),
        report.mean_bar(false));
    if (report.worst() != nullptr)
      bar("cuBLASLt / time, least", report.worst()->ratio(), report.least_bar());
  }
  for (const bench::gemm_row& row : report.rows) {
    json object = {{"m", row.m},
                   {"n", row.n},
                   {"k", row.k},
                   {"plan", row.plan},
                   {"seconds", from(row.time)},
                   {"library_seconds", from(row.library_time)},
                   {"relative_difference", row.relative_error}};
    if (report.invariant) object["invariant_seconds"] = from(row.invariant_time);
    if (report.traced) object["traced_seconds"] = from(row.traced_time);
    for (const bench::timed_plan& timed : row.plans) object["plans"].push_back(from(timed));
    out["gemms"].push_back(std::move(object));
  }
  return text_of(out);
}

std::string to_json(const bench::shared_report& report, int repeats) {
  json out = device_head("untax-bench-shared", 0, repeats);
  out.erase("ranks");
  out["seed"] = report.seed;
  for (const bench::shared_row& row : report.rows) {
    json figures = json::array();
    for (const pattern_figure& f : row.figures) {
      json object = {{"by", f.by}};
      if (f.time) {
        object["seconds"] = from(*f.time);
        if (f.traced_time) object["traced_seconds"] = from(*f.traced_time);
        object["relative_error"] = f.error;
        object["right"] = f.error <= row.tolerance;
        object["explanation"] = f.explanation;
      } else {
        object["refusal"] = f.refusal;
      }
      figures.push_back(std::move(object));
    }
    const gemm_problem& p = row.problem;
    out["problems"].push_back({{"operator", row.operator_name},
                               {"ranks", row.ranks},
                               {"m", p.m},
                               {"n", p.n},
                               {"k", p.k},
                               {"dtype", name_of(p.type)},
                               {"gather", name_of(p.gather)},
                               {"partials", name_of(partials_type(p))},
                               {"figures", std::move(figures)}});
  }
  return text_of(out);
}

std::string to_json(const bench::overlap_report& report, int repeats) {
  json out = device_head("untax-bench-overlap", report.ranks, repeats);
  out["operator"] = report.operator_name;
  out["suite"] = name_of(report.shapes);
  if (report.seed) out["seed"] = *report.seed;
  out["dtype"] = name_of(report.type);
  add_nccl(out, report.library);
  out["constant_weights"] = weights_are_constant;
  out["link_bytes_per_second"] = report.link_rate;
  out["memory_bytes_per_second"] = report.memory_rate;
  const bench::public_kernel* others = bench::public_kernel_of(report.operator_name);
  for (const bench::overlap_row& row : report.rows) {
    json figures = json::array();
    for (const pattern_figure& f : row.figures) {
      json object = {{"by", f.by}, {"whole", f.how.has_value()}, {"library", f.library}};
      if (f.how) object["explanation"] = f.explanation;
      if (f.time) object["seconds"] = from(*f.time);
      if (f.time && f.how) object["relative_error"] = f.error;
      if (f.time && f.how) object["right"] = row.right(f);
      if (!f.time) object["refusal"] = f.refusal;
      figures.push_back(std::move(object));
    }
    json problem = {{"m", row.problem.m}, {"n", row.problem.n}, {"k", row.problem.k}};
    if (operator_named(report.operator_name).gathers)
      problem["gather"] = name_of(row.problem.gather);
    if (operator_named(report.operator_name).sums_to)
      problem["partials"] = name_of(partials_type(row.problem));
    problem["compute_bound_seconds"] = row.compute_bound;
    problem["link_bound_seconds"] = row.link_bound;
    if (others != nullptr && others->seconds(row.problem, report.ranks) > 0)
      problem["public_seconds"] = others->seconds(row.problem, report.ranks);
    problem["figures"] = std::move(figures);
    if (const pattern_figure* best = row.best()) problem["best"] = best->by;
    out["problems"].push_back(std::move(problem));
  }
  add_bars(out, report.bars());
  return text_of(out);
}

std::string to_json(const bench::norm_report& report, int repeats) {
  json out = device_head("untax-bench-norm", report.ranks, repeats);
  out["operator"] = bench::norm_fused;
  out["dtype"] = name_of(report.type);
  add_nccl(out, report.library);
  for (const bench::norm_row& row : report.rows) {
    json problem = {{"tokens", row.tokens}, {"hidden", row.hidden}};
    for (const pattern_figure& f : row.figures) {
      problem["figures"].push_back({{"by", f.by},
                                    {"seconds", from(*f.time)},
                                    {"relative_error", f.error},
                                    {"explanation", f.explanation}});
    }
    out["problems"].push_back(std::move(problem));
  }
  add_bars(out, report.bars());
  return text_of(out);
}

std::string to_json(const bench::attention_report& report, int repeats) {
  json out = device_head("untax-bench-attention", report.ranks, repeats);
  out["operator"] = "flash_decode";
  out["dtype"] = name_of(report.type);
  add_nccl(out, report.library);
  out["memory_bytes_per_second"] = report.memory_rate;
  for (const bench::attention_row& row : report.rows) {
    const flash_decode_problem& p = row.problem;
    json problem = {{"heads_of", row.name},     {"batch", p.batch},
                    {"heads", p.heads},         {"kv_heads", p.kv_heads},
                    {"head_dim", p.head_dim},   {"keys", p.keys},
                    {"page_size", p.page_size}, {"partials", name_of(p.partials)},
                    {"bytes", row.bytes()},     {"bound_seconds", report.bound(row)}};
    for (const bench::attention_figure& f : row.figures)
      problem["figures"].push_back({{"by", f.by}, {"seconds", from(f.time)}});
    out["problems"].push_back(std::move(problem));
  }
  add_bars(out, report.bars());
  return text_of(out);
}

std::string to_json(const bench::tune_check& check, int repeats) {
  json out = head("untax-bench-tune-check");
  out["device"] = check.device;
  out["library"] = check.library;
  out["repeats"] = repeats;
  for (const bench::tune_verdict& row : check.rows) {
    const tuned_problem& p = row.problem;
    json problem = {
        {"operator", p.operator_name}, {"ranks", p.ranks}, {"m", p.m}, {"n", p.n}, {"k", p.k}};
    if (p.gathers()) problem["gather"] = name_of(p.gather);
    if (p.sums_to()) problem["partials"] = name_of(p.partials);
    problem.update({{"chosen", name_of(row.chosen)},
                    {"chosen_seconds", row.chosen_seconds},
                    {"best", name_of(row.best)},
                    {"best_seconds", row.best_seconds},
                    {"explanation", row.reason}});
    for (const auto& [how, seconds] : row.seconds)
      problem["seconds"][std::string(name_of(how))] = seconds;
    out["problems"].push_back(std::move(problem));
  }
  out["at_most_slower"] = bench::tune_check::most_loss;
  out["share"] = check.share();
  out["bar"] = bench::tune_check::least_share;
  out["met"] = check.met();
  return text_of(out);
}

}  // namespace untax::cli
