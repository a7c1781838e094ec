#include <untax/c/operator.h>

#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "failure.hpp"
#include "ops/common/own_stream.hpp"
#include "reading.hpp"

using untax::c::guarded;
using untax::c::require;

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
    return 0;  // the run on it fails, and says why
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
    for (const auto& operand : op->operands()) {
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
