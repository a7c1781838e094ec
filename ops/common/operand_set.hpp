#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <untax/core/matrix.hpp>
#include <untax/world/world.hpp>

#include "engines/bulk/scratch.hpp"
#include "ops/common/memory_need.hpp"
#include "ops/common/own_stream.hpp"
#include "ops/common/spec.hpp"

namespace untax {

/// The role of an operand in a run.
enum class operand_role : std::uint8_t { input, weight, result };

/// An operand of one rank. Rows follow each other without gaps.
struct trial_operand {
  std::string_view name;  ///< as the arguments of the operator call it
  operand_role role = operand_role::input;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::size_t element_bytes = sizeof(float);
  /// Bytes of symmetric memory that every rank has for it; 0: the rank's own memory.
  std::size_t symmetric_bytes = 0;
  bool in_operator = false;  ///< a result that lies in memory of the operator

  [[nodiscard]] std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(rows * cols) * element_bytes;
  }
};

/// The operands that a spec describes: inputs and results.
[[nodiscard]] std::vector<trial_operand> trial_operands(std::span<const operand_shape> shapes);

/// The memory of the operands; `heap_of_rank` has the part in the symmetric heap.
[[nodiscard]] memory_need need_of(const std::vector<trial_operand>& operands) noexcept;

/// Memory of one operand: the host's or, in a world of GPUs, that of the rank's GPU, of which the
/// host gets a copy when it first asks for one.
class operand_memory {
 public:
  operand_memory(world& w, const trial_operand& shape);

  [[nodiscard]] const trial_operand& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return shape_.bytes(); }
  /// Moves the operand to `place`, in memory of the same kind.
  void lie_at(void* place) noexcept { place_ = place; }

  /// The address that the operator gets.
  [[nodiscard]] void* data() const noexcept { return place_; }
  [[nodiscard]] matrix elements(dtype type) const noexcept {
    return {place_, type, shape_.rows, shape_.cols};
  }

  /// The memory that the host writes: the operand's own, or the copy.
  [[nodiscard]] void* host();
  [[nodiscard]] matrix host_elements(dtype type) {
    return {host(), type, shape_.rows, shape_.cols};
  }
  /// Copies the data that the host has written to the GPU.
  void store();
  /// The memory that the host reads: as `host`, after a copy from the GPU.
  [[nodiscard]] const void* fetched();
  template <class T>
  [[nodiscard]] std::span<const T> values() {
    return {static_cast<const T*>(fetched()), bytes() / sizeof(T)};
  }

 private:
  trial_operand shape_;
  bool on_gpu_;
  std::vector<std::byte> host_;
  bulk::scratch device_;
  owned_symmetric<std::byte> symmetric_;
  void* place_ = nullptr;
};

/// Memory for the operands of an operator at one rank.
class operand_set {
 public:
  /// Collective if an operand is symmetric. In a world of GPUs on the current device. Throws
  /// `out_of_memory`.
  operand_set(world& w, const std::vector<trial_operand>& shapes);

  /// Operand `i`, in the order of the shapes.
  [[nodiscard]] operand_memory& operator[](std::size_t i) { return operands_[i]; }
  [[nodiscard]] bool on_gpu() const noexcept { return stream_.has_value(); }
  /// A stream of the rank's GPU for inputs and checks.
  [[nodiscard]] const own_stream& stream() const { return *stream_; }

  /// Copies inputs that the host has written to the GPU.
  void store_inputs();
  /// Sets all bits of results, which is NaN in every element type.
  void poison_results();
  /// The bits of all results, one after the other.
  [[nodiscard]] std::vector<std::byte> result_bits();

 private:
  std::optional<own_stream> stream_;  ///< in a world of GPUs
  std::vector<operand_memory> operands_;
};

}  // namespace untax
