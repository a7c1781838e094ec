#include "decoder/convert.hpp"

#include <cstring>

#include <untax/core/half.hpp>

namespace untax {

float element_at(const void* elements, dtype type, std::int64_t i) {
  switch (type) {
    case dtype::f32:
      return static_cast<const float*>(elements)[i];
    case dtype::f16:
      return static_cast<float>(static_cast<const f16*>(elements)[i]);
    case dtype::bf16:
      return static_cast<float>(static_cast<const bf16*>(elements)[i]);
  }
  return 0;
}

void set_element(void* elements, dtype type, std::int64_t i, float value) {
  switch (type) {
    case dtype::f32:
      static_cast<float*>(elements)[i] = value;
      return;
    case dtype::f16:
      static_cast<f16*>(elements)[i] = f16(value);
      return;
    case dtype::bf16:
      static_cast<bf16*>(elements)[i] = bf16(value);
      return;
  }
}

void convert_elements(const void* from, dtype from_type, void* to, dtype to_type,
                      std::int64_t count) {
  if (from_type == to_type) {
    if (from != to && count > 0) {
      std::memcpy(to, from, static_cast<std::size_t>(count) * size_of(to_type));
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    set_element(to, to_type, i, element_at(from, from_type, i));
  }
}

}  // namespace untax
