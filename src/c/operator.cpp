#include <untax/c/operator.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "failure.hpp"
#include "ops/common/own_stream.hpp"
#include "ops/operators.hpp"
#include "planned.hpp"
#include "reading.hpp"

using untax::c::guarded;
using untax::c::require;

namespace untax::c {
namespace {

const operator_spec& spec_named(std::string_view name) {
  const auto specs = operator_specs();
  const auto place = std::ranges::find(specs, name, &operator_spec::name);
  if (place != specs.end()) return *place;
  throw error(errc::invalid_argument, fmt::format("there is no operator {}", name));
}

/// The words of a field as text that lives as long as the library.
const char* kept_words(const field& f) {
  static std::mutex guard;
  static std::map<const field*, std::string> texts;
  const std::lock_guard lock(guard);
  const auto [place, added] = texts.try_emplace(&f);
  if (added) place->second = words_text(f);
  return place->second.c_str();
}

field_value value_of(const field& f, const untax_setting& s) {
  const auto refuse = [&](const std::string& value) {
    throw error(errc::invalid_argument,
                fmt::format("{} is {}; it has to be {}", f.name, value,
                            f.kind == field_kind::integers ? "an array of integers" : "a number"));
  };
  switch (s.kind) {
    case untax_field_choice:
      require(s.word, s.name);
      return {.integer = number_of(f, s.word)};
    case untax_field_real:
      if (f.kind != field_kind::real) refuse(fmt::format("{}", s.real));
      return {.real = s.real};
    case untax_field_integers:
      if (f.kind != field_kind::integers) refuse("an array");
      if (s.integers_size > 0) require(s.integers, s.name);
      return {.integers = {s.integers, static_cast<std::size_t>(std::max(s.integers_size, 0))}};
    default:
      if (f.kind == field_kind::integers) refuse(fmt::format("{}", s.integer));
      return {.integer = s.integer, .real = static_cast<double>(s.integer)};
  }
}

/// A field of an operator, and whether it is one of its options.
struct placed_field {
  const field* described;
  bool option;
};

/// The field of this name. Throws `invalid_argument` with the names of all fields if there is none.
placed_field field_of(const operator_spec& operation, std::string_view name) {
  std::string names;
  for (const bool option : {false, true}) {
    for (const field& f : option ? operation.option_fields : operation.problem_fields) {
      if (f.name == name) return {&f, option};
      names += fmt::format("{}{}", names.empty() ? "" : ", ", f.name);
    }
  }
  throw error(errc::invalid_argument,
              fmt::format("there is no {}; {} has {}", name, operation.name, names));
}

element element_of(std::string_view name, std::int32_t type) {
  if (type == untax_i32 || type == untax_e4m3) return static_cast<element>(type);
  if (type < untax_f32 || type > untax_bf16) (void)type_of(fmt::format("type of {}", name), type);
  return static_cast<element>(type);
}

/// The problem and the options of settings. Fields that are not given are zero, as in a structure.
template <class Operator>
struct settled {
  typename spec_of<Operator>::problem problem;
  typename spec_of<Operator>::options options;

  explicit settled(std::span<const untax_setting> settings) {
    const operator_spec& operation = spec<Operator>;
    for (const field& f : operation.problem_fields) f.store(&problem, {});
    for (const untax_setting& s : settings) {
      require(s.name, "the name of a setting");
      const auto [f, option] = field_of(operation, s.name);
      store(*f, option ? static_cast<void*>(&options) : &problem, value_of(*f, s));
    }
  }
};

/// Calls visit.operator()<Operator>() for the operator of this name.
template <class Visit>
void with_operator(const char* operator_name, const Visit& visit) {
  require(operator_name, "operator_name");
  const std::string_view name = spec_named(operator_name).name;
  library_operators::for_each([&]<class Operator>() {
    if (spec<Operator>.name == name) visit.template operator()<Operator>();
  });
}

std::span<const untax_setting> listed(const untax_setting* settings, std::int32_t count) {
  if (count > 0) require(settings, "settings");
  return {settings, static_cast<std::size_t>(std::max(count, 0))};
}

}  // namespace
}  // namespace untax::c

const char* untax_operator_name(int32_t number) {
  const auto specs = untax::operator_specs();
  if (number < 0 || number >= static_cast<int32_t>(specs.size())) return nullptr;
  return specs[static_cast<std::size_t>(number)].name.data();
}

int32_t untax_operator_field(const char* operator_name, int32_t number, untax_field* f) {
  return guarded(nullptr, [&] {
    require(operator_name, "operator_name");
    require(f, "f");
    const untax::operator_spec& operation = untax::c::spec_named(operator_name);
    const auto problem_fields = static_cast<int32_t>(operation.problem_fields.size());
    const auto fields = problem_fields + static_cast<int32_t>(operation.option_fields.size());
    if (number < 0 || number >= fields) {
      throw untax::error(untax::errc::invalid_argument, fmt::format("{} has no field {}; it has {}",
                                                                    operator_name, number, fields));
    }
    const bool option = number >= problem_fields;
    const untax::field& described =
        option ? operation.option_fields[static_cast<std::size_t>(number - problem_fields)]
               : operation.problem_fields[static_cast<std::size_t>(number)];
    const untax_field result{.size = f->size,
                             .name = described.name.data(),
                             .help = described.help.data(),
                             .words = untax::c::kept_words(described),
                             .kind = static_cast<int32_t>(described.kind),
                             .option = option ? 1 : 0};
    std::memcpy(f, &result, std::min(f->size, sizeof result));
  });
}

int32_t untax_operator_plan(untax_world* world, const char* operator_name,
                            const untax_setting* settings, int32_t count, untax_operator** op) {
  return guarded(world, [&] {
    require(world, "world");
    require(op, "op");
    const auto list = untax::c::listed(settings, count);
    untax::c::with_operator(operator_name, [&]<class Operator>() {
      untax::c::settled<Operator> given(list);
      *op = untax::c::make<Operator>(*world, std::move(given.problem), given.options);
    });
  });
}

int32_t untax_operator_shape(const char* operator_name, const untax_setting* settings,
                             int32_t count, int32_t ranks, int32_t rank, int32_t number,
                             untax_operand_shape* shape) {
  return guarded(nullptr, [&] {
    require(shape, "shape");
    if (ranks < 1 || rank < 0 || rank >= ranks) {
      throw untax::error(
          untax::errc::invalid_argument,
          fmt::format("rank is {} of {} ranks; it has to be one of them", rank, ranks));
    }
    const auto list = untax::c::listed(settings, count);
    untax::c::with_operator(operator_name, [&]<class Operator>() {
      const untax::c::settled<Operator> given(list);
      const auto shapes = untax::spec_of<Operator>::operands(given.problem, ranks, rank);
      if (number < 0 || number >= static_cast<int32_t>(shapes.size())) {
        throw untax::error(
            untax::errc::invalid_argument,
            fmt::format("{} has no operand {}; it has {}", operator_name, number, shapes.size()));
      }
      const untax::operand_shape& s = shapes[static_cast<std::size_t>(number)];
      const untax_operand_shape result{.size = shape->size,
                                       .name = s.name.data(),
                                       .rows = s.rows,
                                       .cols = s.cols,
                                       .type = static_cast<int32_t>(s.type),
                                       .written = s.is_written() ? 1 : 0,
                                       .optional = s.is_optional() ? 1 : 0};
      std::memcpy(shape, &result, std::min(shape->size, sizeof result));
    });
  });
}

int32_t untax_operator_destroy(untax_operator* op) {
  if (op == nullptr) return untax_ok;
  return guarded(op->owner, [&] { delete op; });
}

int32_t untax_operator_drop(untax_operator* op) {
  if (op == nullptr) return untax_ok;
  return guarded(op->owner, [&] {
    untax_world& owner = *op->owner;
    const std::uint64_t number = op->number;
    std::shared_ptr<untax_operator> dropped(op);
    op->dropped = true;
    --owner.operators;
    owner.ranks.drop(number, std::move(dropped));
  });
}

int32_t untax_stream_is_captured(void* stream) {
  try {
    return untax::is_captured(untax::c::stream_of(stream)) ? 1 : 0;
  } catch (const untax::error&) {
    return 0;  // a run with this value fails, and names the reason
  }
}

const char* untax_operator_kind(const untax_operator* op) {
  return op == nullptr ? "" : op->kind();
}

const char* untax_operator_explain(const untax_operator* op) {
  return op == nullptr ? "" : op->explain().c_str();
}

int32_t untax_operator_pattern(const untax_operator* op) {
  return op == nullptr ? -1 : static_cast<int32_t>(op->how());
}

int32_t untax_operator_operand(const untax_operator* op, const char* name, int64_t* rows,
                               int64_t* cols, int32_t* type) {
  return guarded(op == nullptr ? nullptr : op->owner, [&] {
    require(op, "op");
    require(name, "name");
    std::string known;
    for (const auto& operand : op->operands) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", operand.name);
      if (operand.name != name) continue;
      if (rows != nullptr) *rows = operand.rows;
      if (cols != nullptr) *cols = operand.cols;
      if (type != nullptr) *type = static_cast<int32_t>(operand.type);
      return;
    }
    throw untax::error(untax::errc::invalid_argument,
                       fmt::format("{} has no operand \"{}\"; it has {}", op->kind(), name, known));
  });
}

int32_t untax_operator_run(untax_operator* op, const untax_operand* operands, int32_t count,
                           void* stream) {
  return guarded(op == nullptr ? nullptr : op->owner, [&] {
    require(op, "op");
    if (count > 0) require(operands, "operands");
    const std::span<const untax_operand> given(operands,
                                               static_cast<std::size_t>(std::max(count, 0)));
    std::vector<untax::operand_value> values;
    values.reserve(given.size());
    for (const untax_operand& o : given) {
      require(o.name, "the name of an operand");
      values.push_back(
          {o.name, o.data, o.rows, o.cols, o.stride, untax::c::element_of(o.name, o.type)});
    }
    op->run(untax::operand_values(values, op->operands), untax::c::stream_of(stream));
  });
}

int32_t untax_operator_result(const untax_operator* op, untax_matrix* result) {
  return guarded(op == nullptr ? nullptr : op->owner, [&] {
    require(op, "op");
    require(result, "result");
    *result = untax::c::c_matrix(op->result());
  });
}
