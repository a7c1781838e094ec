#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <untax/flow/control.hpp>

namespace untax {

/// Objects that a rank has dropped, and that other ranks may still use. Any thread may call it.
class dropped_objects {
 public:
  void add(std::uint64_t number, std::shared_ptr<void> object);
  /// The numbers from 1 on, ascending.
  [[nodiscard]] std::vector<std::uint64_t> numbers() const;
  /// Destroys the objects with these numbers, in this order; then those with number 0. Destructors
  /// may add objects.
  void end(std::span<const std::uint64_t> numbers);
  /// Destroys all objects, the last one first.
  void end_all() noexcept;
  /// Destroys nothing, in the copy of a forked process.
  void leave_all_behind() noexcept;

 private:
  mutable std::mutex mutex_;
  std::multimap<std::uint64_t, std::shared_ptr<void>> objects_;
};

/// Finds the numbers that all ranks have dropped. One thread of a rank uses it.
class drop_agreement {
 public:
  drop_agreement(const control& world, int rank) noexcept : world_(world), rank_(rank) {}

  /// Collective. Calls `arrive`, which is a barrier, at least once: as often as the longest list
  /// needs, and once if a rank has an empty list. `mine` is ascending. Returns the numbers that are
  /// in the lists of all ranks.
  [[nodiscard]] std::vector<std::uint64_t> common(std::vector<std::uint64_t> mine,
                                                  const std::function<void()>& arrive);

 private:
  void publish(std::span<const std::uint64_t> mine, std::size_t first);

  control world_;
  int rank_;
  std::uint64_t barriers_ = 0;
};

}  // namespace untax
