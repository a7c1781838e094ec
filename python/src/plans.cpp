#include "plans.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "raise.hpp"

namespace untax::python {
namespace {

/// Settings with the texts and arrays that they point to.
struct kept_settings {
  std::vector<untax_setting> list;
  std::deque<std::string> texts;
  std::deque<std::vector<std::int64_t>> arrays;

  explicit kept_settings(const nb::dict& settings) {
    for (const auto [key, value] : settings) add(nb::cast<std::string>(key), value);
  }
  [[nodiscard]] std::int32_t count() const { return static_cast<std::int32_t>(list.size()); }

  void add(const std::string& name, nb::handle value) {
    if (value.is_none()) return;
    untax_setting s{};
    s.name = texts.emplace_back(name).c_str();
    try {
      if (nb::isinstance<nb::str>(value)) {
        s.kind = untax_field_choice;
        s.word = texts.emplace_back(nb::cast<std::string>(value)).c_str();
      } else if (nb::isinstance<nb::list>(value)) {
        s.kind = untax_field_integers;
        const auto& numbers = arrays.emplace_back(nb::cast<std::vector<std::int64_t>>(value));
        s.integers = numbers.data();
        s.integers_size = static_cast<std::int32_t>(numbers.size());
      } else if (nb::isinstance<nb::float_>(value)) {
        s.kind = untax_field_real;
        s.real = nb::cast<double>(value);
      } else {
        s.integer = nb::cast<std::int64_t>(value);
      }
    } catch (const nb::cast_error&) {
      refuse(name + " is " + nb::cast<std::string>(nb::repr(value)) + "; it has to be a number");
    }
    list.push_back(s);
  }
};

}  // namespace

untax_operator* plan_operator(untax_world* w, const std::string& name, const nb::dict& settings) {
  const kept_settings kept(settings);
  untax_operator* op = nullptr;
  checked(
      [&] { return untax_operator_plan(w, name.c_str(), kept.list.data(), kept.count(), &op); });
  return op;
}

nb::list fields_of(const std::string& name) {
  nb::list fields;
  untax_field f{};
  f.size = sizeof f;
  checked([&] { return untax_operator_field(name.c_str(), 0, &f); });
  for (std::int32_t i = 0; untax_operator_field(name.c_str(), i, &f) == untax_ok; ++i)
    fields.append(nb::make_tuple(f.name, f.help, f.words, f.kind, f.option != 0));
  return fields;
}

nb::list shapes_of(const std::string& name, const nb::dict& settings, std::int32_t ranks,
                   std::int32_t rank) {
  const kept_settings kept(settings);
  nb::list shapes;
  untax_operand_shape s{};
  s.size = sizeof s;
  const auto describe = [&](std::int32_t number) {
    return untax_operator_shape(name.c_str(), kept.list.data(), kept.count(), ranks, rank, number,
                                &s);
  };
  raise_if_failed(describe(0));
  for (std::int32_t i = 0; describe(i) == untax_ok; ++i)
    shapes.append(nb::make_tuple(s.name, s.rows, s.cols, s.type, s.written != 0, s.optional != 0));
  return shapes;
}

}  // namespace untax::python
