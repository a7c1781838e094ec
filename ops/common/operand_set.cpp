#include "ops/common/operand_set.hpp"

#include <cstring>

#include "engines/gpu/matrix/matrix.hpp"

namespace untax {

std::vector<trial_operand> trial_operands(std::span<const operand_shape> shapes) {
  std::vector<trial_operand> operands;
  for (const operand_shape& shape : shapes) {
    operands.push_back({shape.name, shape.is_written() ? operand_role::result : operand_role::input,
                        shape.rows, shape.cols, size_of(shape.type)});
  }
  return operands;
}

memory_need need_of(const std::vector<trial_operand>& operands) noexcept {
  memory_need need;
  for (const trial_operand& operand : operands) {
    // A double, since no integer holds the product of the largest sizes.
    const double bytes = static_cast<double>(operand.rows) * static_cast<double>(operand.cols) *
                         static_cast<double>(operand.element_bytes);
    (operand.role == operand_role::weight ? need.weights : need.activations) += bytes;
    if (operand.in_operator) need.heap_of_rank += bytes;
    need.heap_of_rank += static_cast<double>(operand.symmetric_bytes);
  }
  return need;
}

operand_memory::operand_memory(world& w, const trial_operand& shape)
    : shape_(shape), on_gpu_(w.memory() == memory_kind::cuda) {
  if (shape.in_operator) return;
  if (shape.symmetric_bytes > 0) {
    symmetric_ = w.stable_view().allocate_owned<std::byte>(shape.symmetric_bytes, shape.name);
    place_ = symmetric_->local();
  } else if (on_gpu_) {
    device_ = bulk::scratch(bytes());
    place_ = device_.data();
  } else {
    host_.resize(bytes());
    place_ = host_.data();
  }
}

void* operand_memory::host() {
  if (!on_gpu_) return place_;
  host_.resize(bytes());
  return host_.data();
}

void operand_memory::store() {
  if (on_gpu_ && !host_.empty()) bulk::copy_and_wait(place_, host_.data(), bytes());
}

const void* operand_memory::fetched() {
  void* const to = host();
  if (on_gpu_ && bytes() > 0) bulk::copy_and_wait(to, place_, bytes());
  return to;
}

operand_set::operand_set(world& w, const std::vector<trial_operand>& shapes) {
  if (w.memory() == memory_kind::cuda) {
    stream_.emplace();
    gpu::load_matrix_kernels();
  }
  operands_.reserve(shapes.size());
  for (const trial_operand& shape : shapes) operands_.emplace_back(w, shape);
}

void operand_set::store_inputs() {
  for (operand_memory& operand : operands_) {
    if (operand.shape().role != operand_role::result) operand.store();
  }
}

void operand_set::poison_results() {
  for (operand_memory& operand : operands_) {
    if (operand.shape().role != operand_role::result || operand.bytes() == 0) continue;
    if (on_gpu()) {
      gpu::fill_nan(operand.data(), operand.bytes(), stream_->get());
    } else {
      std::memset(operand.data(), 0xff, operand.bytes());
    }
  }
  if (on_gpu()) stream_->wait("poisoning the results failed");
}

std::vector<std::byte> operand_set::result_bits() {
  std::vector<std::byte> bits;
  for (operand_memory& operand : operands_) {
    if (operand.shape().role != operand_role::result) continue;
    const auto values = operand.values<std::byte>();
    bits.insert(bits.end(), values.begin(), values.end());
  }
  return bits;
}

}  // namespace untax
