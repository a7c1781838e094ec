#include "src/core/config_reader.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace untax {
namespace {

[[noreturn]] void refuse_file(const std::string& where, const std::string& what) {
  throw error(errc::invalid_argument,
              fmt::format("{}: {}; {}", where, what, config_reader::advice));
}

}  // namespace

config_reader::config_reader(std::string_view text, std::string origin)
    : origin_(std::move(origin)) {
  // Python writes NaN and Infinity, and texts for people may contain any characters.
  fields_ =
      parse_json(text, origin_, {.non_finite = true, .control_characters = true, .advice = advice});
  if (!fields_.is_object()) {
    refuse_file(origin_, fmt::format("is {} {}, not an object", fields_.is_array() ? "an" : "a",
                                     fields_.type_name()));
  }
  while (!has("hidden_size") && enter_text_part()) {
  }
}

/// Goes on with the object that describes the text part of a larger model. False if there is none.
bool config_reader::enter_text_part() {
  for (const char* part : {"text_config", "llm_config", "language_config", "thinker_config"}) {
    if (!fields_.contains(part) || !fields_[part].is_object()) continue;
    nlohmann::json inner = std::move(fields_[part]);
    for (const char* outer : {"architectures", "dtype", "torch_dtype", "quantization_config"}) {
      if (!inner.contains(outer) && fields_.contains(outer))
        inner[outer] = std::move(fields_[outer]);
    }
    fields_ = std::move(inner);
    prefix_ += part + std::string(".");
    return true;
  }
  return false;
}

bool config_reader::has(const std::string& key) const {
  const auto match = fields_.find(key);
  return match != fields_.end() && !match->is_null();
}

std::int64_t config_reader::whole(const std::string& key, std::int64_t least,
                                  std::int64_t most) const {
  const std::string right = fmt::format("should be a whole number from {} to {}", least, most);
  if (!has(key)) refuse(key, "is missing", right);
  const nlohmann::json& value = fields_.at(key);
  const bool fits =
      value.is_number_integer() &&
      (!value.is_number_unsigned() || value.get<std::uint64_t>() <= std::uint64_t{INT64_MAX});
  if (!fits || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most) {
    refuse_value(key, right);
  }
  return value.get<std::int64_t>();
}

std::int64_t config_reader::size(const std::string& key, std::int64_t most) const {
  return whole(key, 1, most);
}

std::int64_t config_reader::count(const std::string& key, std::int64_t most) const {
  return whole(key, 0, most);
}

std::optional<std::int64_t> config_reader::optional_size(const std::string& key,
                                                         std::int64_t most) const {
  if (!has(key)) return std::nullopt;
  return whole(key, 1, most);
}

std::string config_reader::text(const std::string& key) const {
  if (!has(key)) refuse(key, "is missing", "should be a text");
  const nlohmann::json& value = fields_.at(key);
  if (!value.is_string()) refuse_value(key, "should be a text");
  refuse_control_characters(key, value.get_ref<const std::string&>());
  return value.get<std::string>();
}

std::string config_reader::first_of(const std::string& key) const {
  const std::vector<std::string> names = texts(key);
  return names.empty() ? "" : names.front();
}

std::vector<std::string> config_reader::texts(const std::string& key) const {
  if (!has(key)) return {};
  const nlohmann::json& value = fields_.at(key);
  const bool right =
      value.is_array() && std::all_of(value.begin(), value.end(),
                                      [](const auto& element) { return element.is_string(); });
  if (!right) refuse_value(key, "should be a list of texts");
  auto names = value.get<std::vector<std::string>>();
  for (const std::string& name : names) refuse_control_characters(key, name);
  return names;
}

bool config_reader::flag(const std::string& key) const {
  if (!has(key)) return false;
  const nlohmann::json& value = fields_.at(key);
  if (!value.is_boolean()) refuse_value(key, "should be true or false");
  return value.get<bool>();
}

std::optional<double> config_reader::optional_real(const std::string& key, double least,
                                                   double most) const {
  if (!has(key)) return std::nullopt;
  const nlohmann::json& value = fields_.at(key);
  const double number = value.is_number() ? value.get<double>() : std::nan("");
  if (!(number >= least && number <= most)) {
    refuse_value(key, fmt::format("should be a number from {} to {}", least, most));
  }
  return number;
}

config_reader config_reader::part(const std::string& key) const {
  if (!has(key)) refuse(key, "is missing", "should be an object");
  if (!fields_.at(key).is_object()) refuse_value(key, "should be an object");
  config_reader inner;
  inner.origin_ = origin_;
  inner.prefix_ = prefix_ + key + ".";
  inner.fields_ = fields_.at(key);
  return inner;
}

std::vector<std::string> config_reader::keys() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : fields_.items()) names.push_back(name);
  return names;
}

bool config_reader::list_contains(const std::string& key, std::int64_t value) const {
  if (!has(key)) return false;
  const nlohmann::json& list = fields_.at(key);
  if (!list.is_array()) refuse_value(key, "should be a list of layer numbers");
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool config_reader::list_contains_only(const std::string& key, std::int64_t value) const {
  const nlohmann::json& list = fields_.at(key);
  if (!list.is_array()) refuse_value(key, "should be a list of numbers");
  return std::all_of(list.begin(), list.end(),
                     [&](const auto& element) { return element == value; });
}

/// Texts are printed, and a terminal would act on control characters in them.
void config_reader::refuse_control_characters(const std::string& key,
                                              const std::string& text) const {
  const std::string character = control_character_in(text);
  if (character.empty()) return;
  refuse(key, "contains the control character " + character, "should be a text that can be shown");
}

void config_reader::refuse_value(const std::string& key, const std::string& right) const {
  refuse(key, "is " + shown(fields_.at(key)), right);
}

void config_reader::refuse(const std::string& key, const std::string& what,
                           const std::string& right) const {
  throw error(errc::invalid_argument,
              fmt::format("{}: {}{} {}; {}", origin_, prefix_, key, what, right));
}

}  // namespace untax
