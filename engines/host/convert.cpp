#include "engines/host/convert.hpp"

#include <cstring>

#include <untax/core/half.hpp>

namespace untax::host {
namespace {

template <class T>
const T* row(const tile_memory& tile, std::int64_t i) {
  return reinterpret_cast<const T*>(tile.data) + i * tile.stride;  // NOLINT(*-reinterpret-cast)
}

template <class T, class Body>
void each_row(const tile_memory& from, std::int64_t rows, Body&& body) {
  for (std::int64_t i = 0; i < rows; ++i) body(row<T>(from, i), i);
}

/// Calls `body` with every row of the tile, as a pointer to its element type.
template <class Body>
void dispatch(const tile_memory& from, std::int64_t rows, Body&& body) {
  switch (from.type) {
    case dtype::f32:
      return each_row<float>(from, rows, body);
    case dtype::f16:
      return each_row<f16>(from, rows, body);
    case dtype::bf16:
      return each_row<bf16>(from, rows, body);
  }
}

}  // namespace

void widen(const tile_memory& from, std::int64_t rows, std::int64_t cols, float* to,
           std::int64_t to_stride) {
  dispatch(from, rows, [&](const auto* elements, std::int64_t i) {
    float* out = to + i * to_stride;
    for (std::int64_t j = 0; j < cols; ++j) out[j] = static_cast<float>(elements[j]);
  });
}

void narrow(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t cols,
            const tile_memory& to) {
  dispatch(to, rows, [&]<class T>(const T* elements, std::int64_t i) {
    T* out = const_cast<T*>(elements);  // NOLINT(*-const-cast): `to` is a destination
    const float* in = from + i * from_stride;
    for (std::int64_t j = 0; j < cols; ++j) out[j] = static_cast<T>(in[j]);
  });
}

void round_to(dtype type, float* values, std::int64_t stride, std::int64_t rows,
              std::int64_t cols) {
  const auto round = [&]<class T>(T /*of_type*/) {
    for (std::int64_t i = 0; i < rows; ++i) {
      float* const row_of = values + i * stride;
      for (std::int64_t j = 0; j < cols; ++j)
        row_of[j] = static_cast<float>(static_cast<T>(row_of[j]));
    }
  };
  if (type == dtype::f16) round(f16{});
  if (type == dtype::bf16) round(bf16{});
}

void accumulate(const tile_memory& from, std::int64_t rows, std::int64_t cols, bool overwrite,
                float* sum, std::int64_t sum_stride) {
  if (overwrite) return widen(from, rows, cols, sum, sum_stride);
  dispatch(from, rows, [&](const auto* elements, std::int64_t i) {
    float* out = sum + i * sum_stride;
    for (std::int64_t j = 0; j < cols; ++j) out[j] += static_cast<float>(elements[j]);
  });
}

void copy_tile(const tile_memory& from, std::int64_t rows, std::int64_t cols,
               const tile_memory& to) {
  if (from.data == to.data) return;  // a result that is built in place
  const auto size = static_cast<std::int64_t>(size_of(from.type));
  // The rows are contiguous: one large copy lets memcpy use its fastest method.
  if (from.stride == cols && to.stride == cols) {
    cols *= rows;
    rows = rows > 0 ? 1 : 0;
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    std::memcpy(to.data + i * to.stride * size, from.data + i * from.stride * size,
                static_cast<std::size_t>(cols * size));
  }
}

}  // namespace untax::host
