#include "ops/common/field.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax {

std::string words_text(const field& f) {
  std::string text;
  for (const field_word& word : f.words)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", word.name);
  return text;
}

void store(const field& f, void* object, const field_value& value) {
  if (f.kind == field_kind::choice &&
      std::ranges::find(f.words, value.integer, &field_word::number) == f.words.end()) {
    throw error(errc::invalid_argument,
                fmt::format("{} is {}; it can be {} to {}: {}", f.name, value.integer,
                            f.words.front().number, f.words.back().number, words_text(f)));
  }
  if (f.kind != field_kind::real && f.bytes == sizeof(std::int32_t) &&
      !std::in_range<std::int32_t>(value.integer)) {
    throw error(errc::invalid_argument,
                fmt::format("{} is {}; it has to be between {} and {}", f.name, value.integer,
                            std::numeric_limits<std::int32_t>::min(),
                            std::numeric_limits<std::int32_t>::max()));
  }
  f.store(object, value);
}

std::int32_t number_of(const field& f, std::string_view word) {
  const auto place = std::ranges::find(f.words, word, &field_word::name);
  if (place != f.words.end()) return place->number;
  throw error(errc::invalid_argument,
              f.words.empty()
                  ? fmt::format("{} is '{}'; it has to be a number", f.name, word)
                  : fmt::format("{} is '{}'; it can be {}", f.name, word, words_text(f)));
}

}  // namespace untax
