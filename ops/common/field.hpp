#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <untax/core/pattern.hpp>
#include <untax/core/types.hpp>

// The fields of problems and of options, described once. A table of fields says, for each member of
// a structure of the library, its name, how it is written, and a help text. The C ABI, Python, the
// command and the tests go by these tables.

namespace untax {

/// The way in which a field is written. In structures of the C ABI each field has the type named
/// behind it.
enum class field_kind : std::uint8_t {
  integer,   ///< int64_t; int32_t if the member is an int
  flag,      ///< int32_t: 0 or another number
  choice,    ///< int32_t: the number of one of `words`
  real,      ///< float, or double if the member is one
  integers,  ///< int32_t NAME_size, const int64_t* NAME
};

/// One value of a choice, or of a flag that has names for its values.
struct field_word {
  std::string_view name;
  std::int32_t number = 0;  ///< in the C ABI
};

/// The value of a field, in the member for its kind. `integer` also holds flags and the numbers of
/// words.
struct field_value {
  std::int64_t integer = 0;
  double real = 0;
  std::span<const std::int64_t> integers = {};
};

/// The worlds in which a field has an effect.
enum class field_place : std::uint8_t { anywhere, host, gpus };

/// One field of a problem or of options.
struct field {
  std::string_view name;  ///< in the C ABI
  std::string_view help;
  std::string_view member;  ///< the name of the member of the library
  field_kind kind = field_kind::integer;
  std::size_t bytes = 0;              ///< of the number in a structure of the C ABI
  std::span<const field_word> words;  ///< of a choice; of a flag, if its values have names
  void (*store)(void* object, const field_value& value) = nullptr;
  field_value (*load)(const void* object) = nullptr;
  std::int64_t least = 0;  ///< of an integer, as the command accepts it
  std::int64_t most = std::numeric_limits<std::int32_t>::max();
  field_place place = field_place::anywhere;

  /// The same field with these limits.
  [[nodiscard]] constexpr field between(std::int64_t low, std::int64_t high) const {
    field f = *this;
    f.least = low;
    f.most = high;
    return f;
  }
  /// The same field, which is at least 1.
  [[nodiscard]] constexpr field positive() const { return between(1, most); }
  /// The same field, which has no effect in a world of GPUs.
  [[nodiscard]] constexpr field of_host() const {
    field f = *this;
    f.place = field_place::host;
    return f;
  }
  /// The same field, which has no effect in a world of the host.
  [[nodiscard]] constexpr field of_gpus() const {
    field f = *this;
    f.place = field_place::gpus;
    return f;
  }
};

namespace fields {

template <auto Member>
struct member;
template <class Object, class Type, Type Object::*Member>
struct member<Member> {
  using object_type = Object;
  using type = Type;
  static Type& of_object(void* object) { return static_cast<Object*>(object)->*Member; }
  static const Type& of_object(const void* object) {
    return static_cast<const Object*>(object)->*Member;
  }
};

/// The name of a member, in the form of the compiler: "... Member = &untax::some_problem::name]".
template <auto Member>
[[nodiscard]] constexpr std::string_view member_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(text.find("Member = "));
  text = text.substr(0, text.find_first_of(";]"));
  return text.substr(text.rfind(':') + 1);
}

/// The words of an enumeration whose values have a `name_of` and count from 0.
template <class Enum, std::size_t Count>
[[nodiscard]] constexpr std::array<field_word, Count> words_of() {
  std::array<field_word, Count> words{};
  for (std::size_t i = 0; i < Count; ++i)
    words[i] = {name_of(static_cast<Enum>(i)), static_cast<std::int32_t>(i)};
  return words;
}

inline constexpr auto type_words = words_of<dtype, 3>();
inline constexpr auto pattern_words = words_of<pattern, all_patterns.size()>();
inline constexpr field_word partials_words[] = {
    {"fp32", -1}, {"type", 0}, {"fp16", 1}, {"bf16", 2}};
inline constexpr field_word launch_words[] = {{"graph", 0}, {"eager", 1}};
inline constexpr auto direction_words = words_of<direction, 2>();

template <auto Member>
[[nodiscard]] constexpr field integer(std::string_view name, std::string_view help) {
  using type = typename member<Member>::type;
  static_assert(std::is_same_v<type, std::int64_t> || std::is_same_v<type, int>);
  return {.name = name,
          .help = help,
          .member = member_name<Member>(),
          .kind = field_kind::integer,
          .bytes = sizeof(type),
          .words = {},
          .store =
              [](void* object, const field_value& value) {
                member<Member>::of_object(object) = static_cast<type>(value.integer);
              },
          .load =
              [](const void* object) {
                return field_value{.integer = member<Member>::of_object(object)};
              }};
}

/// An enumeration whose numbers are those of the C ABI.
template <auto Member>
[[nodiscard]] constexpr field choice(std::string_view name, std::string_view help,
                                     std::span<const field_word> words) {
  return {.name = name,
          .help = help,
          .member = member_name<Member>(),
          .kind = field_kind::choice,
          .bytes = sizeof(std::int32_t),
          .words = words,
          .store =
              [](void* object, const field_value& value) {
                using type = typename member<Member>::type;
                member<Member>::of_object(object) = static_cast<type>(value.integer);
              },
          .load =
              [](const void* object) {
                return field_value{
                    .integer = static_cast<std::int64_t>(member<Member>::of_object(object))};
              }};
}

/// A bool, or an enumeration with the values 0 and 1, whose names are `words`.
template <auto Member>
[[nodiscard]] constexpr field flag(std::string_view name, std::string_view help,
                                   std::span<const field_word> words = {}) {
  field f = choice<Member>(name, help, words);
  f.kind = field_kind::flag;
  f.store = [](void* object, const field_value& value) {
    using type = typename member<Member>::type;
    member<Member>::of_object(object) = static_cast<type>(value.integer != 0 ? 1 : 0);
  };
  return f;
}

/// The launch mode of stages, for which any number but 0 asks for new threads.
template <auto Member>
[[nodiscard]] constexpr field launch() {
  field f = flag<Member>("eager", "start threads for each run", launch_words).of_host();
  f.store = [](void* object, const field_value& value) {
    member<Member>::of_object(object) =
        value.integer != 0 ? launch_mode::eager : launch_mode::graph;
  };
  f.load = [](const void* object) {
    return field_value{.integer = member<Member>::of_object(object) == launch_mode::eager ? 1 : 0};
  };
  return f;
}

template <auto Member>
[[nodiscard]] constexpr field element_type(std::string_view help) {
  return choice<Member>("type", help, type_words);
}

/// The type in which partial results are sent; empty stands for that of the problem.
template <auto Member>
[[nodiscard]] constexpr field partials(std::string_view help) {
  return {.name = "partials",
          .help = help,
          .member = member_name<Member>(),
          .kind = field_kind::choice,
          .bytes = sizeof(std::int32_t),
          .words = partials_words,
          .store =
              [](void* object, const field_value& value) {
                std::optional<dtype>& type = member<Member>::of_object(object);
                type = std::nullopt;
                if (value.integer != 0)
                  type = static_cast<dtype>(std::max<std::int64_t>(value.integer, 0));
              },
          .load =
              [](const void* object) {
                const std::optional<dtype>& type = member<Member>::of_object(object);
                if (!type) return field_value{.integer = 0};
                const auto number = static_cast<std::int64_t>(*type);
                return field_value{.integer = number == 0 ? -1 : number};
              }};
}

/// A float or double. With `ZeroIsDefault`, 0 stands for the value in a new structure.
template <auto Member, bool ZeroIsDefault = false>
[[nodiscard]] constexpr field real(std::string_view name, std::string_view help) {
  using type = typename member<Member>::type;
  return {.name = name,
          .help = help,
          .member = member_name<Member>(),
          .kind = field_kind::real,
          .bytes = sizeof(type),
          .words = {},
          .store =
              [](void* object, const field_value& value) {
                type& number = member<Member>::of_object(object);
                number = static_cast<type>(value.real);
                if constexpr (ZeroIsDefault) {
                  if (value.real == 0) number = typename member<Member>::object_type{}.*Member;
                }
              },
          .load =
              [](const void* object) {
                return field_value{.real = static_cast<double>(member<Member>::of_object(object))};
              }};
}

template <auto Member>
[[nodiscard]] constexpr field integers(std::string_view name, std::string_view help) {
  return {.name = name,
          .help = help,
          .member = member_name<Member>(),
          .kind = field_kind::integers,
          .bytes = sizeof(std::int32_t),
          .words = {},
          .store =
              [](void* object, const field_value& value) {
                member<Member>::of_object(object).assign(value.integers.begin(),
                                                         value.integers.end());
              },
          .load =
              [](const void* object) {
                return field_value{.integers = member<Member>::of_object(object)};
              }};
}

}  // namespace fields

/// Stores a value in a member of `object`. Throws `invalid_argument` with the possible words if a
/// choice has none with that number.
void store(const field& f, void* object, const field_value& value);

/// The number of a word of a field. Throws `invalid_argument` with the possible words.
[[nodiscard]] std::int32_t number_of(const field& f, std::string_view word);

/// The words of a field as text: "fp32, fp16, bf16".
[[nodiscard]] std::string words_text(const field& f);

}  // namespace untax
