#include "src/core/json.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax {
namespace {

/// Placeholder texts for numbers that JSON cannot express, until the document is parsed. No text of
/// a file begins with NUL and these words by chance.
constexpr std::pair<std::string_view, std::string_view> stand_ins[] = {
    {"NaN", R"("\u0000untax NaN")"},
    {"Infinity", R"("\u0000untax inf")"},
    {"-Infinity", R"("\u0000untax -inf")"},
};
constexpr std::string_view stand_in_start("\0untax ", 7);

/// The checks before a document is parsed: its depth, and numbers that are not finite.
class json_text {
 public:
  json_text(std::string_view text, std::string_view origin, const json_rules& rules)
      : origin_(origin), rules_(rules), text_(utf8_text(text, origin)) {
    if (text_.size() > rules.bytes) {
      refuse(fmt::format("{}: has {} bytes; such a document has at most {}", origin_, text_.size(),
                         rules.bytes));
    }
    scan();
  }

  template <class Json>
  [[nodiscard]] Json parse() const {
    try {
      if (!replaced_.empty()) return Json::parse(replaced_, finite_or_not<Json>);
      return Json::parse(text_.begin(), text_.end());
    } catch (const nlohmann::json::parse_error& wrong) {
      const std::size_t offset = wrong.byte == 0 ? 0 : wrong.byte - 1;
      if (offset >= not_finite_) refuse_not_finite();
      if (!replaced_.empty()) refuse(fmt::format("{}: this is not JSON", origin_));
      refuse_at(offset, "this is not JSON");
    } catch (const nlohmann::json::exception&) {
      if (not_finite_ < text_.size()) refuse_not_finite();
      // A number beyond double, followed by letters.
      refuse(fmt::format("{}: this is not JSON", origin_));
    }
  }

  [[noreturn]] void refuse(std::string what) const {
    if (!rules_.advice.empty()) what += fmt::format("; {}", rules_.advice);
    throw error(errc::invalid_argument, what);
  }

  [[nodiscard]] std::string_view origin() const { return origin_; }

 private:
  [[noreturn]] void refuse_at(std::size_t offset, const std::string& what) const {
    const std::string_view before = text_.substr(0, std::min(offset, text_.size()));
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t start = before.rfind('\n');
    const std::size_t column =
        start == std::string_view::npos ? before.size() + 1 : before.size() - start;
    refuse(fmt::format("{}:{}:{}: {}", origin_, line, column, what));
  }

  [[noreturn]] void refuse_not_finite() const {
    constexpr std::size_t enough = 40;
    const auto begin = text_.begin() + static_cast<std::ptrdiff_t>(not_finite_);
    const std::string found(begin, std::find_if_not(begin, text_.end(), is_word));
    refuse_at(not_finite_,
              fmt::format("{} is not finite; numbers of JSON are", found.substr(0, enough)));
  }

  static bool is_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '+' || c == '.';
  }

  [[nodiscard]] std::size_t end_of_string(std::size_t begin) const {
    std::size_t i = begin + 1;
    while (i < text_.size() && text_[i] != '"') i += text_[i] == '\\' ? 2 : 1;
    return std::min(i + 1, text_.size());
  }

  void scan() {
    int levels = 0;
    std::size_t i = 0;
    while (i < text_.size()) {
      const char c = text_[i];
      if (c == '"') {
        i = end_of_string(i);
        continue;
      }
      if (is_word(c)) {
        const auto end =
            std::find_if_not(text_.begin() + static_cast<std::ptrdiff_t>(i), text_.end(), is_word);
        const auto next = static_cast<std::size_t>(end - text_.begin());
        word(i, text_.substr(i, next - i));
        i = next;
        continue;
      }
      if (c == '[' || c == '{') ++levels;
      if (c == ']' || c == '}') --levels;
      if (levels > most_json_levels) {
        refuse_at(
            i, fmt::format("lists and objects are nested deeper than {} levels", most_json_levels));
      }
      ++i;
    }
    if (!replaced_.empty()) replaced_.append(text_.substr(copied_));
  }

  void word(std::size_t begin, std::string_view literal) {
    std::string_view name = literal;
    if (is_beyond_double(literal)) name = literal.starts_with('-') ? "-Infinity" : "Infinity";
    for (const auto& [word, stand_in] : stand_ins) {
      if (name != word) continue;
      if (!rules_.non_finite) {
        not_finite_ = std::min(not_finite_, begin);
        return;
      }
      replaced_.append(text_.substr(copied_, begin - copied_));
      replaced_.append(stand_in);
      copied_ = begin + literal.size();
    }
  }

  /// Whether `text` is a number that no double holds, such as 1e400.
  static bool is_beyond_double(std::string_view text) {
    constexpr std::size_t shortest = 5;  // 1e309
    const char first = text.front();
    const char digit = text.size() < shortest || first != '-' ? first : text[1];
    if (text.size() < shortest || digit < '0' || digit > '9') return false;
    const std::string copy(text);
    char* end = nullptr;
    const double value = std::strtod(copy.c_str(), &end);
    return std::isinf(value) && end == copy.c_str() + copy.size();
  }

  template <class Json>
  static bool finite_or_not(int, typename Json::parse_event_t event, Json& value) {
    if (event != Json::parse_event_t::value || !value.is_string()) return true;
    const auto& text = value.template get_ref<const std::string&>();
    if (text.starts_with(stand_in_start))
      value = std::strtod(text.c_str() + stand_in_start.size(), nullptr);
    return true;
  }

  std::string_view origin_;
  const json_rules& rules_;
  std::string_view text_;
  std::string replaced_;  // empty as long as all numbers are finite
  std::size_t copied_ = 0;
  /// Offset of the first number that is not finite, where the rules do not accept it.
  std::size_t not_finite_ = std::numeric_limits<std::size_t>::max();
};

/// Refuses texts and names with control characters.
template <class Json>
void look_for_control_characters(const Json& document, const json_text& text) {
  const auto look = [&](const std::string& name) {
    const std::string character = control_character_in(name);
    if (!character.empty()) {
      text.refuse(fmt::format("{}: {} contains the control character {}", text.origin(),
                              shown(Json(name)), character));
    }
  };
  std::vector<const Json*> open{&document};
  while (!open.empty()) {
    const Json& value = *open.back();
    open.pop_back();
    if (value.is_string()) look(value.template get_ref<const std::string&>());
    if (!value.is_structured()) continue;
    for (auto member = value.begin(); member != value.end(); ++member) {
      if (value.is_object()) look(member.key());
      if (member->is_string() || member->is_structured()) open.push_back(&*member);
    }
  }
}

}  // namespace

template <class Json>
Json parse_json(std::string_view text, std::string_view origin, const json_rules& rules) {
  const json_text checked(text, origin, rules);
  Json document = checked.parse<Json>();
  if (!rules.control_characters) look_for_control_characters(document, checked);
  return document;
}

template <class Json>
Json read_json(const std::string& path, const json_rules& rules) {
  std::string text;
  try {
    text = text_of_file(path, {.bytes = rules.bytes});
  } catch (const error& wrong) {
    if (rules.advice.empty()) throw;
    throw error(wrong.code(), fmt::format("{}; {}", wrong.what(), rules.advice));
  }
  return parse_json<Json>(text, path, rules);
}

template <class Json>
std::string shown(const Json& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  if (value.is_number_float() && !std::isfinite(value.template get<double>())) {
    const double number = value.template get<double>();
    return std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
  }
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  constexpr std::size_t enough = 40;
  if (text.size() > enough) text = text.substr(0, enough) + "...";
  return text;
}

template nlohmann::json parse_json(std::string_view, std::string_view, const json_rules&);
template nlohmann::ordered_json parse_json(std::string_view, std::string_view, const json_rules&);
template nlohmann::json read_json(const std::string&, const json_rules&);
template nlohmann::ordered_json read_json(const std::string&, const json_rules&);
template std::string shown(const nlohmann::json&);
template std::string shown(const nlohmann::ordered_json&);

}  // namespace untax
