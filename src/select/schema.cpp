#include <untax/select/schema.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>

#include "src/core/json.hpp"
#include "src/select/schema_json.hpp"

namespace untax::select {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(std::string_view origin, const std::string& what) {
  throw error(errc::invalid_argument, fmt::format("{}: {}", origin, what));
}

/// Reads the fields of a JSON object, and refuses unknown ones.
class object_reader {
 public:
  object_reader(const json& object, std::string_view origin, std::string where,
                std::initializer_list<std::string_view> fields)
      : object_(&object), origin_(origin), where_(std::move(where)) {
    if (!object.is_object()) refuse(origin_, where_ + " has to be an object");
    for (const auto& [key, value] : object.items()) {
      if (std::ranges::find(fields, key) == fields.end()) {
        refuse(origin_, fmt::format("{} has a field \"{}\", which means nothing; it may have {}",
                                    where_, key, fmt::join(fields, ", ")));
      }
    }
  }
  [[nodiscard]] bool has(const char* key) const { return object_->contains(key); }
  [[nodiscard]] const json& at(const char* key) const {
    if (!has(key)) refuse(origin_, fmt::format("{} has no field \"{}\"", where_, key));
    return (*object_)[key];
  }
  [[nodiscard]] std::string text(const char* key, const char* otherwise = nullptr) const {
    if (otherwise != nullptr && !has(key)) return otherwise;
    const json& value = at(key);
    if (value.is_number()) return value.dump();
    if (!value.is_string())
      refuse(origin_, fmt::format("{}: \"{}\" has to be a text", where_, key));
    return value.get<std::string>();
  }
  [[nodiscard]] const json& list(const char* key) const {
    const json& value = at(key);
    if (!value.is_array()) refuse(origin_, fmt::format("{}: \"{}\" has to be a list", where_, key));
    return value;
  }
  [[nodiscard]] double positive(const json& value, const char* key) const {
    if (!value.is_number() || !(value.get<double>() > 0) || !std::isfinite(value.get<double>()))
      refuse(origin_, fmt::format("{}: \"{}\" has to be a number above 0", where_, key));
    return value.get<double>();
  }

 private:
  const json* object_;
  std::string_view origin_;
  std::string where_;
};

void read_features(const object_reader& whole, const char* key, bool gathered,
                   std::string_view origin, schema& s) {
  if (!whole.has(key)) return;
  for (const json& entry : whole.list(key)) {
    if (entry.is_string()) {
      s.features.push_back({entry, entry, gathered, true});
      continue;
    }
    const object_reader one(entry, origin, fmt::format("an entry of \"{}\"", key),
                            {"name", "is", "column"});
    const bool given = one.has("column");
    s.features.push_back(
        {one.text("name"), given ? one.text("column") : one.text("is"), gathered, given});
  }
}

/// Names that an emitted header uses itself, and C++ keywords that look like names.
constexpr std::string_view reserved[] = {
    "known",  "gathered", "iterations", "chosen", "candidate", "node",     "std",    "and",
    "auto",   "bool",     "break",      "case",   "char",      "class",    "const",  "default",
    "delete", "do",       "double",     "else",   "enum",      "explicit", "false",  "float",
    "for",    "goto",     "if",         "inline", "int",       "long",     "new",    "not",
    "or",     "private",  "public",     "return", "short",     "signed",   "sizeof", "static",
    "struct", "switch",   "this",       "true",   "try",       "union",    "void",   "while"};

bool is_identifier(const std::string& name) {
  if (std::ranges::find(reserved, name) != std::end(reserved)) return false;
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::ranges::all_of(name,
                             [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

}  // namespace

std::string identifier_of(const candidate& c) {
  std::string name = c.name;
  std::ranges::replace_if(
      name, [](char letter) { return letter == '-' || letter == '.'; }, '_');
  return name;
}

void require_usable(const schema& s) {
  const auto wrong = [](const std::string& what) {
    throw error(errc::invalid_argument, "what the columns mean: " + what);
  };
  std::set<std::string> names;
  for (const feature& f : s.features) {
    if (!is_identifier(f.name))
      wrong(fmt::format("feature \"{}\" has to be named as a variable is: letters, digits and _",
                        f.name));
    if (!names.insert(f.name).second) wrong(fmt::format("there are two features \"{}\"", f.name));
    if (f.name == "iterations")
      wrong("\"iterations\" is built in; a schema cannot define a feature of this name");
  }
  if (s.features.empty() || s.features.front().gathered)
    wrong("there has to be a feature that costs nothing to know, before those that do");
  if (!std::ranges::is_sorted(s.features, {}, &feature::gathered))
    wrong("features that cost nothing have to come before those that are gathered");
  if (!s.kernel_column.empty() && s.labels.empty())
    wrong("a long table needs \"labels\", which say which lines are of one input");
  names.clear();
  for (const candidate& c : s.candidates) {
    if (!is_identifier(identifier_of(c)))
      wrong(fmt::format("candidate \"{}\" has to be named by letters, digits, _, - and .", c.name));
    if (!names.insert(identifier_of(c)).second)
      wrong(fmt::format("there are two candidates \"{}\", since - and . count as _",
                        identifier_of(c)));
  }
  if (s.candidates.size() < 2)
    wrong(fmt::format("the number of candidates is {}; a selector needs 2 or more",
                      s.candidates.size()));
  if (std::ranges::all_of(s.candidates, [](const candidate& c) { return !c.guard.empty(); }))
    wrong("each candidate has a guard; one has to have none, for inputs that all guards refuse");
  if (s.iterations.empty()) wrong("\"iterations\" has to hold a number");
}

schema read_schema(std::string_view text, std::string_view origin) {
  return schema_of(parse_json(text, origin), origin);
}

schema schema_of(const json& document, std::string_view origin) {
  const object_reader whole(document, origin, "the description of a table",
                            {"title", "labels", "known", "gathered", "candidates", "gathering",
                             "unit", "iterations", "long"});
  schema s;
  s.title = whole.text("title", "");
  if (whole.has("labels")) {
    for (const json& label : whole.list("labels")) {
      if (!label.is_string()) refuse(origin, "\"labels\" has to be a list of texts");
      s.labels.push_back(label);
    }
  }
  read_features(whole, "known", false, origin, s);
  read_features(whole, "gathered", true, origin, s);
  for (const json& entry : whole.list("candidates")) {
    const object_reader one(entry, origin, "a candidate",
                            {"name", "time", "setup", "guard", "known_guard"});
    s.candidates.push_back({one.text("name"), one.text("time"), one.text("setup", "0"),
                            one.text("guard", ""), one.text("known_guard", "")});
  }
  if (whole.has("long")) {
    const object_reader columns(whole.at("long"), origin, "\"long\"", {"kernel", "time"});
    s.kernel_column = columns.text("kernel");
    s.time_column = columns.text("time");
  }
  s.gathering = whole.text("gathering", "0");
  if (whole.has("unit")) s.unit = whole.positive(whole.at("unit"), "unit");
  if (whole.has("iterations")) {
    s.iterations.clear();
    for (const json& number : whole.list("iterations"))
      s.iterations.push_back(whole.positive(number, "iterations"));
  }
  try {
    require_usable(s);
  } catch (const error& e) {
    refuse(origin, e.what());
  }
  return s;
}

std::string to_json(const schema& s) { return json_of(s).dump(2) + "\n"; }

json json_of(const schema& s) {
  json whole = {{"title", s.title},
                {"labels", s.labels},
                {"known", json::array()},
                {"gathered", json::array()},
                {"candidates", json::array()},
                {"gathering", s.gathering},
                {"unit", s.unit},
                {"iterations", s.iterations}};
  if (!s.kernel_column.empty())
    whole["long"] = {{"kernel", s.kernel_column}, {"time", s.time_column}};
  for (const feature& f : s.features)
    whole[f.gathered ? "gathered" : "known"].push_back(
        {{"name", f.name}, {f.given ? "column" : "is", f.is}});
  for (const candidate& c : s.candidates) {
    whole["candidates"].push_back(
        {{"name", c.name}, {"time", c.time}, {"setup", c.setup}, {"guard", c.guard}});
    if (!c.known_guard.empty()) whole["candidates"].back()["known_guard"] = c.known_guard;
  }
  return whole;
}

std::vector<std::string> feature_names(const schema& s) {
  std::vector<std::string> names;
  for (const feature& f : s.features) names.push_back(f.name);
  return names;
}

std::size_t known_features(const schema& s) {
  return static_cast<std::size_t>(std::ranges::count(s.features, false, &feature::gathered));
}

}  // namespace untax::select
