#include "ops/common/operand_values.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/tile/protocol.hpp>

namespace untax {
namespace {

[[noreturn]] void refuse(const std::string& text) { throw error(errc::invalid_argument, text); }

dtype computed_type(const operand_value& v) {
  if (v.type == element::f32 || v.type == element::f16 || v.type == element::bf16)
    return static_cast<dtype>(v.type);
  refuse(fmt::format("{} has elements of {}; they have to be fp32, fp16 or bf16", v.name,
                     name_of(v.type)));
}

/// Refuses gaps between rows.
void require_dense(const operand_value& v) {
  if (v.rows > 1 && v.stride != 0 && v.stride != v.cols) {
    refuse(
        fmt::format("rows of {} lie {} elements apart; they have to follow each other without gaps",
                    v.name, v.stride));
  }
}

}  // namespace

operand_values::operand_values(std::span<const operand_value> values,
                               std::span<const operand_shape> shapes)
    : values_(values), shapes_(shapes) {
  for (const operand_value& v : values) {
    if (std::ranges::find(shapes, v.name, &operand_shape::name) != shapes.end()) continue;
    std::string names;
    for (const operand_shape& s : shapes)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", s.name);
    refuse(fmt::format("there is no operand {}; there are {}", v.name, names));
  }
}

const operand_value* operand_values::find(std::string_view name) const {
  const auto place = std::ranges::find(values_, name, &operand_value::name);
  if (place == values_.end()) return nullptr;
  const bool missing = place->data == nullptr && place->rows * place->cols > 0;
  return missing ? nullptr : &*place;
}

const operand_value& operand_values::needed(std::string_view name) const {
  if (const operand_value* v = find(name)) return *v;
  refuse(fmt::format("{} is missing", name));
}

bool operand_values::has(std::string_view name) const { return find(name) != nullptr; }

const_matrix operand_values::read(std::string_view name) const {
  const operand_value& v = needed(name);
  return {v.data, computed_type(v), v.rows, v.cols, v.stride};
}

matrix operand_values::written(std::string_view name) const {
  const operand_value& v = needed(name);
  return {v.data, computed_type(v), v.rows, v.cols, v.stride};
}

const_array_view operand_values::read_array(std::string_view name) const {
  const operand_value& v = needed(name);
  require_dense(v);
  return {v.data, computed_type(v), v.rows * v.cols};
}

array_view operand_values::written_array(std::string_view name) const {
  const operand_value& v = needed(name);
  require_dense(v);
  return {v.data, computed_type(v), v.rows * v.cols};
}

void* operand_values::dense(std::string_view name, std::optional<std::int64_t> rows,
                            std::optional<std::int64_t> cols) const {
  const operand_value* v = find(name);
  const auto shape = std::ranges::find(shapes_, name, &operand_shape::name);
  if (v == nullptr) {
    if (shape->is_optional()) return nullptr;
    refuse(fmt::format("{} is missing", name));
  }
  require_dense(*v);
  const extent wanted{rows.value_or(shape->rows), cols.value_or(shape->cols)};
  if (v->type != shape->type || v->rows != wanted.rows || v->cols != wanted.cols) {
    refuse(fmt::format("{} is {} x {} of {}; it has to be {} x {} of {}", name, v->rows, v->cols,
                       name_of(v->type), wanted.rows, wanted.cols, name_of(shape->type)));
  }
  return v->data;
}

}  // namespace untax
