#include <untax/taxes/report.hpp>

#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>

namespace untax {
namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view format_name = "untax-taxes";
constexpr int format_version = 1;

json from_breakdown(const tax_breakdown& parts) {
  json out;
  out["total"] = parts.total();
  for (const tax_part& part : tax_parts) out[std::string(part.key)] = parts.*part.value;
  return out;
}

json from_row(const tax_row& row, int repeats) {
  json out;
  out["name"] = row.op.name;
  out["operator"] = row.op.operator_name;
  out["m"] = row.op.m;
  out["n"] = row.op.n;
  out["k"] = row.op.k;
  out["dtype"] = name_of(row.op.type);
  out["per_layer"] = row.op.per_layer;
  out["layers"] = row.op.layers;
  out["steps"] = json::array();
  for (const tax_step& step : row.steps) {
    out["steps"].push_back({{"id", step.id},
                            {"ran", step.ran},
                            {"median", step.time.median},
                            {"p10", step.time.p10},
                            {"p90", step.time.p90}});
  }
  out["compute_seconds"] = row.compute_seconds;
  out["link_seconds"] = row.link_seconds;
  out["derived"] = from_breakdown(row.breakdown());
  out["derived_uncertainty"] = from_breakdown(row.uncertainty(repeats));
  return out;
}

dtype type_from(const std::string& name) {
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
    if (name == name_of(type)) return type;
  }
  throw error(errc::invalid_argument,
              fmt::format("tax report: dtype is \"{}\"; should be fp32, fp16 or bf16", name));
}

tax_row to_row(const json& in) {
  tax_row row;
  in.at("name").get_to(row.op.name);
  in.at("operator").get_to(row.op.operator_name);
  in.at("m").get_to(row.op.m);
  in.at("n").get_to(row.op.n);
  in.at("k").get_to(row.op.k);
  row.op.type = type_from(in.at("dtype").get<std::string>());
  in.at("per_layer").get_to(row.op.per_layer);
  in.at("layers").get_to(row.op.layers);
  for (const json& step : in.at("steps")) {
    row.steps.push_back(
        {step.at("id"), step.at("ran"), {step.at("median"), step.at("p10"), step.at("p90")}});
  }
  in.at("compute_seconds").get_to(row.compute_seconds);
  in.at("link_seconds").get_to(row.link_seconds);
  return row;
}

// Visits every plain field under its name, so that writing and reading cannot drift apart.
template <class Report, class Visit>
void visit_fields(Report& report, Visit&& visit) {
  visit("machine", report.machine);
  visit("cpu", report.cpu);
  visit("cores", report.cores);
  visit("backend", report.backend);
  visit("commit", report.commit);
  visit("date", report.date);
  visit("version", report.version);
  visit("model", report.model);
  visit("tensor_parallel", report.tensor_parallel);
  visit("tokens", report.tokens);
  visit("layers", report.layers);
  visit("repeats", report.repeats);
  visit("notes", report.notes);
}

}  // namespace

std::string to_json(const tax_report& report) {
  check(report);
  json out;
  out["format"] = format_name;
  out["format_version"] = format_version;
  visit_fields(report, [&](const char* name, const auto& field) { out[name] = field; });
  out["dtype"] = name_of(report.type);
  out["rows"] = json::array();
  for (const tax_row& row : report.rows) out["rows"].push_back(from_row(row, report.repeats));
  out["average_layer"] = from_breakdown(layer_total(report));
  out["average_layer_uncertainty"] = from_breakdown(layer_uncertainty(report));
  out["whole_model"] = from_breakdown(model_total(report));
  out["finding"] = finding(report);
  return out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

tax_report from_json(std::string_view text) {
  tax_report report;
  try {
    const json in = json::parse(text.begin(), text.end());
    if (in.at("format") != format_name || in.at("format_version") != format_version) {
      throw error(
          errc::invalid_argument,
          fmt::format("tax report: format is {} {}; should be \"{}\" {}", in.at("format").dump(),
                      in.at("format_version").dump(), format_name, format_version));
    }
    visit_fields(report, [&](const char* name, auto& field) { in.at(name).get_to(field); });
    report.type = type_from(in.at("dtype").get<std::string>());
    for (const json& row : in.at("rows")) report.rows.push_back(to_row(row));
  } catch (const json::exception& wrong) {
    throw error(errc::invalid_argument,
                fmt::format("tax report: not what `untax taxes --json` writes: {}", wrong.what()));
  }
  check(report);
  return report;
}

}  // namespace untax
