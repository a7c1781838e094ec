#include <untax/taxes/report.hpp>

#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>
#include <untax/taxes/verdict.hpp>

#include "ops/common/registry.hpp"
#include "src/core/json.hpp"

namespace untax {
namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view format_name = "untax-taxes";
constexpr int format_version = 1;
constexpr std::string_view advice = "`untax taxes --json` writes such files";

/// Parts without a figure of their own say so; the joint tax and the cost of stand-ins are 0 if
/// there is none.
template <class Separates>
json from_breakdown(const tax_breakdown& parts, const Separates& separate) {
  json out;
  out["total"] = parts.total();
  for (const tax_part& part : tax_parts) {
    json& value = out[std::string(part.key)];
    value = parts.*part.value;
    if (!is_sum(part) && !separate(part)) value = not_separable;
  }
  return out;
}

json from_verdict(const tax_verdict& verdict) {
  const auto key = [](const tax_part* part) {
    return part != nullptr ? json(std::string(part->key)) : json();
  };
  json out;
  out["fusing"] = name_of(verdict.fusing);
  out["largest_tax"] = verdict.rival == nullptr ? key(verdict.largest) : json();
  if (verdict.rival != nullptr) out["may_be_largest"] = {key(verdict.largest), key(verdict.rival)};
  out["bound"] = name_of(verdict.bound);
  return out;
}

json from_operation(const layer_operation& op) {
  json out;
  out["name"] = op.name;
  out["operator"] = op.operator_name;
  out["m"] = op.m;
  out["n"] = op.n;
  out["k"] = op.k;
  out["dtype"] = name_of(op.type);
  const operator_entry* entry = find_operator(op.operator_name);
  if (entry != nullptr && entry->gathers) out["gather"] = name_of(op.gather);
  if (op.attention.heads > 0) {
    out["heads"] = op.attention.heads;
    out["kv_heads"] = op.attention.kv_heads;
    out["head_dim"] = op.attention.head_dim;
  }
  out["per_layer"] = op.per_layer;
  out["layers"] = op.layers;
  return out;
}

json from_trace(const trace_breakdown& parts) {
  json out;
  for (std::size_t i = 0; i < trace_parts; ++i)
    out[std::string(name_of(static_cast<trace_part>(i)))] = parts.seconds[i];
  return out;
}

trace_breakdown to_trace(const json& in) {
  trace_breakdown parts;
  for (std::size_t i = 0; i < trace_parts; ++i)
    parts.seconds[i] = in.at(std::string(name_of(static_cast<trace_part>(i))));
  return parts;
}

json from_row(const tax_row& row, const tax_report& report) {
  json out = from_operation(row.op);
  out["steps"] = json::array();
  for (const tax_step& step : row.steps) {
    out["steps"].push_back({{"id", step.id},
                            {"ran", step.ran},
                            {"median", step.time.median},
                            {"p10", step.time.p10},
                            {"p90", step.time.p90}});
  }
  out["compute_seconds"] = row.compute.median;
  out["compute_spread"] = {row.compute.p10, row.compute.p90};
  out["link_seconds"] = row.link.median;
  out["link_spread"] = {row.link.p10, row.link.p90};
  const auto separate = [&](const tax_part& part) { return row.separates(part, report); };
  out["derived"] = from_breakdown(row.breakdown(report), separate);
  out["derived_uncertainty"] = from_breakdown(row.uncertainty(report), separate);
  const std::string why = row.why_not_separable(report);
  if (!why.empty()) out["not_separable"] = why;
  for (const stand_in_cost& cost : row.stand_ins(report)) {
    out["stand_ins"].push_back({{"step", cost.id},
                                {"before", cost.before},
                                {"seconds", cost.seconds},
                                {"uncertainty", cost.uncertainty},
                                {"counted", cost.counted}});
  }
  out["verdict"] = from_verdict(verdict_of(row, report));
  for (const traced_step& step : row.traced) {
    json object = {{"id", step.id}, {"path", from_trace(step.path)}, {"cause", step.cause}};
    for (const trace_breakdown& rank : step.ranks) object["ranks"].push_back(from_trace(rank));
    out["trace"].push_back(std::move(object));
  }
  return out;
}

dtype type_from(const std::string& name) {
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
    if (name == name_of(type)) return type;
  }
  throw error(errc::invalid_argument,
              fmt::format("tax report: dtype is \"{}\"; should be fp32, fp16 or bf16", name));
}

layer_operation to_operation(const json& in) {
  layer_operation op;
  in.at("name").get_to(op.name);
  in.at("operator").get_to(op.operator_name);
  in.at("m").get_to(op.m);
  in.at("n").get_to(op.n);
  in.at("k").get_to(op.k);
  op.type = type_from(in.at("dtype").get<std::string>());
  // Early reports of 0.1.0, from before GPUs were measured, do not have the following fields.
  if (in.value("gather", "rows") == name_of(gather_axis::k)) op.gather = gather_axis::k;
  op.attention = {in.value("heads", std::int64_t{0}), in.value("kv_heads", std::int64_t{0}),
                  in.value("head_dim", std::int64_t{0})};
  in.at("per_layer").get_to(op.per_layer);
  in.at("layers").get_to(op.layers);
  return op;
}

spread to_spread(const json& in, const char* median, const char* ends) {
  spread time = exactly(in.at(median));
  if (!in.contains(ends)) return time;
  time.p10 = in.at(ends).at(0);
  time.p90 = in.at(ends).at(1);
  return time;
}

tax_row to_row(const json& in) {
  tax_row row;
  row.op = to_operation(in);
  for (const json& step : in.at("steps")) {
    row.steps.push_back(
        {step.at("id"), step.at("ran"), {step.at("median"), step.at("p10"), step.at("p90")}});
  }
  row.compute = to_spread(in, "compute_seconds", "compute_spread");
  row.link = to_spread(in, "link_seconds", "link_spread");
  if (!in.contains("trace")) return row;
  for (const json& object : in.at("trace")) {
    traced_step step{object.at("id"), to_trace(object.at("path")), {}, object.at("cause")};
    for (const json& rank : object.at("ranks")) step.ranks.push_back(to_trace(rank));
    row.traced.push_back(std::move(step));
  }
  return row;
}

bool is_optional(std::string_view field) {
  return field == "gpus" || field == "driver" || field == "libraries" || field == "predicted" ||
         field == "warnings" || field == "one_operator" || field == "left_out";
}
template <class Field>
bool field_is_empty(const Field& field) {
  if constexpr (requires { field.empty(); }) return field.empty();
  return false;
}

// Visits every plain field under its name, so that writing and reading cannot drift apart.
template <class Report, class Visit>
void visit_fields(Report& report, Visit&& visit) {
  visit("machine", report.machine);
  visit("cpu", report.cpu);
  visit("cores", report.cores);
  visit("backend", report.backend);
  visit("gpus", report.gpus);
  visit("driver", report.driver);
  visit("libraries", report.libraries);
  visit("predicted", report.predicted);
  visit("commit", report.commit);
  visit("date", report.date);
  visit("version", report.version);
  visit("model", report.model);
  visit("tensor_parallel", report.tensor_parallel);
  visit("tokens", report.tokens);
  visit("layers", report.layers);
  visit("repeats", report.repeats);
  visit("one_operator", report.one_operator);
  visit("warnings", report.warnings);
  visit("left_out", report.left_out);
  visit("notes", report.notes);
}

/// Parses a report, and checks its format. Throws `invalid_argument` for anything else.
json document_of(std::string_view text) {
  json in = parse_json<json>(text, "tax report", {.advice = advice});
  if (!in.is_object()) {
    throw error(errc::invalid_argument,
                fmt::format("tax report: it is not a JSON object; {}", advice));
  }
  for (const char* field : {"format", "format_version"}) {
    if (in.contains(field)) continue;
    throw error(
        errc::invalid_argument,
        fmt::format("tax report: \"{}\" is missing; `untax taxes --json` writes it", field));
  }
  if (in["format"] != format_name || in["format_version"] != format_version) {
    throw error(errc::invalid_argument,
                fmt::format("tax report: format is {} {}; should be \"{}\" {}", shown(in["format"]),
                            shown(in["format_version"]), format_name, format_version));
  }
  return in;
}

/// The text of an exception of the JSON library, without the name of the exception in front.
std::string_view without_id(std::string_view text) {
  const std::size_t end = text.find("] ");
  return end == std::string_view::npos ? text : text.substr(end + 2);
}

}  // namespace

std::string to_json(const tax_report& report) {
  check(report);
  json out;
  out["format"] = format_name;
  out["format_version"] = format_version;
  // Optional fields, such as those of GPUs, are left out if they are empty.
  visit_fields(report, [&](const char* name, const auto& field) {
    if (!is_optional(name) || !field_is_empty(field)) out[name] = field;
  });
  out["dtype"] = name_of(report.type);
  out["rows"] = json::array();
  for (const tax_row& row : report.rows) out["rows"].push_back(from_row(row, report));
  for (const auto& [op, reason] : report.unmeasured) {
    json object = from_operation(op);
    object["reason"] = reason;
    out["unmeasured"].push_back(std::move(object));
  }
  if (!report.one_operator) {
    const auto separate = [&](const tax_part& part) { return separates(part, report); };
    out["average_layer"] = from_breakdown(layer_total(report), separate);
    out["average_layer_uncertainty"] = from_breakdown(layer_uncertainty(report), separate);
    out["whole_model"] = from_breakdown(model_total(report), separate);
  }
  out["verdict"] = from_verdict(verdict_of(report));
  out["finding"] = finding(report);
  out["trace_agreement"] = agreement_text(report);
  for (const traced_tax& tax : traced_taxes(report)) {
    json object = {{"operation", tax.operation},     {"tax", tax.tax},
                   {"before", tax.before},           {"after", tax.after},
                   {"by_ablation", tax.by_ablation}, {"uncertainty", tax.uncertainty},
                   {"by_trace", tax.by_trace},       {"same_sign", json()}};
    if (tax.agrees) object["same_sign"] = *tax.agrees;
    if (!tax.difference.empty()) object["difference"] = tax.difference;
    out["traced_taxes"].push_back(std::move(object));
  }
  return out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

tax_report from_json(std::string_view text) {
  tax_report report;
  const json in = document_of(text);
  try {
    visit_fields(report, [&](const char* name, auto& field) {
      if (in.contains(name) || !is_optional(name)) in.at(name).get_to(field);
    });
    report.type = type_from(in.at("dtype").get<std::string>());
    for (const json& row : in.at("rows")) report.rows.push_back(to_row(row));
    if (in.contains("unmeasured")) {
      for (const json& object : in.at("unmeasured"))
        report.unmeasured.push_back({to_operation(object), object.at("reason")});
    }
  } catch (const json::exception& wrong) {
    throw error(errc::invalid_argument,
                fmt::format("tax report: `untax taxes --json` did not write this: {}",
                            without_id(wrong.what())));
  }
  check(report);
  return report;
}

}  // namespace untax
