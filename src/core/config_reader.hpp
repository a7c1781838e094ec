#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>

#include "src/core/json.hpp"

namespace untax {

/// Typed access to the fields of a config.json. Errors are `invalid_argument` with file, field,
/// value and the right values. A field that is null counts as absent, as in Hugging Face's own
/// reader. A multimodal model has its text part in an object such as "text_config", perhaps within
/// another one; then the fields are read from there.
class config_reader {
 public:
  /// The end of errors about the whole file.
  static constexpr std::string_view advice = "give the config.json of a Hugging Face model";

  config_reader(std::string_view text, std::string origin);

  [[nodiscard]] bool has(const std::string& key) const;
  /// A whole number in [1, most].
  [[nodiscard]] std::int64_t size(const std::string& key, std::int64_t most) const;
  /// A whole number in [0, most].
  [[nodiscard]] std::int64_t count(const std::string& key, std::int64_t most) const;
  /// `size`, or nothing when the field is absent.
  [[nodiscard]] std::optional<std::int64_t> optional_size(const std::string& key,
                                                          std::int64_t most) const;
  [[nodiscard]] std::string text(const std::string& key) const;
  /// The first string of a list, "" when absent.
  [[nodiscard]] std::string first_of(const std::string& key) const;
  /// Whether the list `key` holds `value`; an absent list holds nothing.
  [[nodiscard]] bool list_contains(const std::string& key, std::int64_t value) const;
  /// Whether all elements of the list `key` are `value`.
  [[nodiscard]] bool list_contains_only(const std::string& key, std::int64_t value) const;
  /// The strings of a list; none when absent.
  [[nodiscard]] std::vector<std::string> texts(const std::string& key) const;
  /// True or false; false when absent.
  [[nodiscard]] bool flag(const std::string& key) const;
  /// A number in [least, most], finite; nothing when the field is absent.
  [[nodiscard]] std::optional<double> optional_real(const std::string& key, double least,
                                                    double most) const;
  /// The object `key`, whose errors name the fields as "<key>.<field>".
  [[nodiscard]] config_reader part(const std::string& key) const;
  /// The names of all fields.
  [[nodiscard]] std::vector<std::string> keys() const;

  /// Throws "<file>: <field> is <its value, or its type>; <right>".
  [[noreturn]] void refuse_value(const std::string& key, const std::string& right) const;
  /// Throws "<file>: <field> <what>; <right>".
  [[noreturn]] void refuse(const std::string& key, const std::string& what,
                           const std::string& right) const;

 private:
  config_reader() = default;
  bool enter_text_part();
  void refuse_control_characters(const std::string& key, const std::string& text) const;
  [[nodiscard]] std::int64_t whole(const std::string& key, std::int64_t least,
                                   std::int64_t most) const;

  std::string origin_;
  std::string prefix_;  // "text_config." or "thinker_config.text_config." when the fields lie there
  nlohmann::json fields_;
};

}  // namespace untax
