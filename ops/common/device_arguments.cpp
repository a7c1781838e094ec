#include "ops/common/device_arguments.hpp"

#include <cstdint>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax {
namespace {

constexpr std::size_t most_known = 4096;

bool is_multiple(const void* p, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(p) % bytes == 0;  // NOLINT(*-reinterpret-cast)
}

}  // namespace

void device_arguments::refuse(std::string_view what, const std::string& text) const {
  throw error(errc::invalid_argument,
              fmt::format("rank {}: {}: {} {}", rank_, operator_name_, what, text));
}

void device_arguments::require_dense(std::string_view what, const const_matrix& m) const {
  if (m.rows <= 1 || m.stride == m.cols) return;
  refuse(what, fmt::format("has a row stride of {} and rows of {} elements; on GPUs rows have to "
                           "follow each other without gaps",
                           m.stride, m.cols));
}

void device_arguments::require(std::string_view what, const void* p, std::size_t alignment) {
  if (!is_multiple(p, alignment)) {
    refuse(what, fmt::format("lies at {}; on GPUs it has to begin at a multiple of {} bytes",
                             fmt::ptr(p), alignment));
  }
  require_reachable(what, p);
}

void device_arguments::require_rows(std::string_view what, const const_matrix& m,
                                    std::size_t bytes) {
  if (m.empty()) return;
  const auto stride = static_cast<std::size_t>(m.stride) * size_of(m.type);
  if (!is_multiple(m.data, bytes) || (m.rows > 1 && stride % bytes != 0)) {
    refuse(what, fmt::format("lies at {} with {} bytes from row to row; on GPUs both have to be "
                             "multiples of {}",
                             fmt::ptr(m.data), stride, bytes));
  }
  require_reachable(what, m.data);
}

void device_arguments::require_reachable(std::string_view what, const void* p) {
  if (p == nullptr) return;
  const std::uint64_t allocation = allocation_at(p);
  const auto known = known_.find(p);
  if (known != known_.end() && allocation != 0 && known->second == allocation) return;
  if (!reachable_by_device(p)) {
    refuse(what, fmt::format("lies at {}, in memory of the host that GPU {} cannot reach; it has "
                             "to be in memory of the GPU",
                             fmt::ptr(p), device_));
  }
  if (known_.size() == most_known) known_.clear();
  known_[p] = allocation;
}

}  // namespace untax
