#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <untax/c/operator.h>
#include <untax/core/pattern.hpp>
#include <untax/core/types.hpp>
#include <untax/symmetric/symmetric.hpp>
#include <untax/world/world.hpp>

/// The object behind a world handle.
struct untax_world {
  explicit untax_world(untax::world w) : ranks(std::move(w)) {}

  untax::world ranks;
  std::map<const void*, untax::symmetric<std::byte>> allocations;  ///< by local address
  int operators = 0;                                               ///< operators of this world
  std::atomic<bool> failed = false;
};

namespace untax::c {

/// The name, shape and type of an operand that a rank passes to a run.
struct operand_size {
  std::string_view name;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  dtype type = dtype::f32;
};

}  // namespace untax::c

/// The object behind an operator handle. `untax::c::planned` derives from it and has the operator.
struct untax_operator {
  explicit untax_operator(untax_world& w) : owner(&w) { ++owner->operators; }
  untax_operator(const untax_operator&) = delete;
  untax_operator& operator=(const untax_operator&) = delete;
  virtual ~untax_operator() { --owner->operators; }

  [[nodiscard]] virtual const char* kind() const noexcept = 0;
  [[nodiscard]] virtual const std::string& explain() const noexcept = 0;
  [[nodiscard]] virtual untax::pattern how() const noexcept = 0;
  [[nodiscard]] virtual std::vector<untax::c::operand_size> operands() const = 0;

  untax_world* owner;
};
