#include "config_reader.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace untax {
namespace {

// Line and column, both from 1, of the byte at `offset`.
std::pair<std::size_t, std::size_t> position(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  const std::size_t start = before.rfind('\n');
  return {line, start == std::string_view::npos ? before.size() + 1 : before.size() - start};
}

// Only the type of a list or an object, since these can be arbitrarily long and deep.
std::string shown(const nlohmann::json& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  constexpr std::size_t enough = 40;
  if (text.size() > enough) text = text.substr(0, enough) + "...";
  return text;
}

[[noreturn]] void refuse_file(const std::string& where, const std::string& what) {
  throw error(errc::invalid_argument,
              fmt::format("{}: {}; give the config.json of a Hugging Face model", where, what));
}

}  // namespace

config_reader::config_reader(std::string_view text, std::string origin)
    : origin_(std::move(origin)) {
  try {
    fields_ = nlohmann::json::parse(text.begin(), text.end());
  } catch (const nlohmann::json::parse_error& wrong) {
    const auto [line, column] = position(text, wrong.byte == 0 ? 0 : wrong.byte - 1);
    refuse_file(fmt::format("{}:{}:{}", origin_, line, column), "not JSON here");
  } catch (const nlohmann::json::out_of_range&) {
    refuse_file(origin_, "holds a number that is too large");
  }
  if (!fields_.is_object()) {
    refuse_file(origin_, fmt::format("is {} {}, not an object", fields_.is_array() ? "an" : "a",
                                     fields_.type_name()));
  }
  for (const std::string part : {"text_config", "llm_config", "language_config"}) {
    if (has("hidden_size") || !fields_.contains(part) || !fields_[part].is_object()) continue;
    // Moved: a copy is recursive, and would need stack for each level of nesting.
    nlohmann::json inner = std::move(fields_[part]);
    for (const char* outer : {"architectures", "dtype", "torch_dtype", "quantization_config"}) {
      if (!inner.contains(outer) && fields_.contains(outer))
        inner[outer] = std::move(fields_[outer]);
    }
    fields_ = std::move(inner);
    prefix_ = part + ".";
  }
}

bool config_reader::has(const std::string& key) const {
  const auto found = fields_.find(key);
  return found != fields_.end() && !found->is_null();
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
  return value.get<std::string>();
}

std::string config_reader::first_of(const std::string& key) const {
  if (!has(key)) return "";
  const nlohmann::json& value = fields_.at(key);
  const bool texts =
      value.is_array() &&
      std::all_of(value.begin(), value.end(), [](const auto& one) { return one.is_string(); });
  if (!texts) refuse_value(key, "should be a list of texts");
  return value.empty() ? "" : value.front().get<std::string>();
}

bool config_reader::list_contains(const std::string& key, std::int64_t value) const {
  if (!has(key)) return false;
  const nlohmann::json& list = fields_.at(key);
  if (!list.is_array()) refuse_value(key, "should be a list of layer numbers");
  return std::find(list.begin(), list.end(), value) != list.end();
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
