#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <untax/core/matrix.hpp>

#include "gpus.hpp"
#include "ops/common/random_matrix.hpp"

namespace gpu_test {

/// Memory of the GPU, freed at the end.
template <class T>
class on_device {
 public:
  explicit on_device(std::size_t count) {
    void* memory = nullptr;
    ok(cudaMalloc(&memory, std::max<std::size_t>(count * sizeof(T), 256)));
    data_ = static_cast<T*>(memory);
  }
  on_device(const std::vector<T>& from, const stream& s) : on_device(from.size()) {
    if (!from.empty()) copy(data_, from.data(), from.size(), s);
  }
  on_device(const on_device&) = delete;
  on_device& operator=(const on_device&) = delete;
  ~on_device() { cudaFree(data_); }
  [[nodiscard]] T* data() const { return data_; }

 private:
  T* data_ = nullptr;
};

/// Rows of 2-byte elements on the host and on the GPU, with some room behind each row.
class rows_of_heads {
 public:
  rows_of_heads(std::int64_t rows, std::int64_t columns, untax::dtype type, const stream& s)
      : stream_(&s),
        rows_(rows),
        columns_(columns),
        type_(type),
        host_(static_cast<std::size_t>(rows * stride())),
        device_(host_.size()) {}
  void fill(std::uint64_t seed) {
    untax::random_matrix{seed}.fill({host_.data(), type_, rows_, columns_, stride()}, {0, rows_},
                                    {0, columns_});
    copy(device_.data(), host_.data(), host_.size(), *stream_);
  }
  void poison() { ok(cudaMemsetAsync(device_.data(), 0xff, 2 * host_.size(), stream_->get())); }
  void fetch() { host_ = values(device_.data(), host_.size(), *stream_); }

  [[nodiscard]] std::uint16_t* device() const { return device_.data(); }
  [[nodiscard]] std::int64_t stride() const { return columns_ + 8; }
  [[nodiscard]] const std::vector<std::uint16_t>& bits() const { return host_; }
  /// Of one head, some rows.
  [[nodiscard]] untax::const_matrix part(std::int64_t row, std::int64_t rows, std::int64_t column,
                                         std::int64_t columns) const {
    return {host_.data() + row * stride() + column, type_, rows, columns, stride()};
  }
  /// Whether the memory behind the columns is unchanged.
  [[nodiscard]] bool room_is_untouched() const {
    for (std::int64_t i = 0; i < rows_; ++i) {
      for (std::int64_t j = columns_; j < stride(); ++j) {
        if (host_[static_cast<std::size_t>(i * stride() + j)] != 0xffff) return false;
      }
    }
    return true;
  }

 private:
  const stream* stream_;
  std::int64_t rows_;
  std::int64_t columns_;
  untax::dtype type_;
  std::vector<std::uint16_t> host_;
  on_device<std::uint16_t> device_;
};

}  // namespace gpu_test
