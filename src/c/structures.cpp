#include "structures.hpp"

#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include <untax/untax.h>
#include <untax/core/error.hpp>
#include <untax/core/norm_output.hpp>
#include <untax/core/reduction.hpp>
#include <untax/order/attention.hpp>

namespace untax::c {
namespace {

// Numbers of words are those of the enumerations of the C ABI.
static_assert(static_cast<int>(dtype::bf16) == untax_bf16);
static_assert(static_cast<int>(pattern::fused_warp_specialized) == untax_fused_warp_specialized);
static_assert(static_cast<int>(reduction::min) == untax_min);
static_assert(static_cast<int>(norm_output::e4m3_per_token) == untax_norm_e4m3_per_token);
static_assert(static_cast<int>(order::attention_order::sections) == untax_attention_sections);

template <class T>
[[nodiscard]] T read(const std::byte* structure, std::size_t offset) {
  T value;
  std::memcpy(&value, structure + offset, sizeof value);
  return value;
}

/// The integers of a field: their number is at `offset`, followed by a pointer.
std::span<const std::int64_t> read_integers(const field& f, const std::byte* structure,
                                            std::size_t offset) {
  const auto count = read<std::int32_t>(structure, offset);
  const auto* numbers =
      read<const std::int64_t*>(structure, round_up(offset + sizeof(std::int32_t), sizeof(void*)));
  if (count < 0) {
    throw error(
        errc::invalid_argument,
        fmt::format("{}_size is {}; it is 0, or the square of the number of ranks", f.name, count));
  }
  if (count > 0) require(numbers, f.name);
  return {numbers, static_cast<std::size_t>(count)};
}

field_value read_field(const field& f, const std::byte* structure, std::size_t offset) {
  switch (f.kind) {
    case field_kind::real:
      if (f.bytes == sizeof(double)) return {.real = read<double>(structure, offset)};
      return {.real = static_cast<double>(read<float>(structure, offset))};
    case field_kind::integers:
      return {.integers = read_integers(f, structure, offset)};
    default:
      if (f.bytes == sizeof(std::int64_t))
        return {.integer = read<std::int64_t>(structure, offset)};
      return {.integer = read<std::int32_t>(structure, offset)};
  }
}

}  // namespace

void store_fields(std::span<const field> table, const void* structure, void* object) {
  const auto* bytes = static_cast<const std::byte*>(structure);
  lay_out(table, [&](const field& f, std::size_t offset) {
    store(f, object, read_field(f, bytes, offset));
  });
}

}  // namespace untax::c
