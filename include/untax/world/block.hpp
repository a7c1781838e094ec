#pragma once

#include <string_view>

#include <untax/flow/wait_verbs.hpp>
#include <untax/flow/watch.hpp>
#include <untax/memory/host_memory.hpp>
#include <untax/world/world.hpp>

namespace untax {

/// The group that verbs take on a CPU: one thread of a rank, with the watch that bounds its waits.
/// Threads of a rank that wait at the same time have a block each, with different slots.
class block {
 public:
  using memory = host_memory;

  /// `owner` has to outlive the block.
  explicit block(const world& owner, int slot = 0)
      : owner_(&owner.stable_view()), guard_(owner.make_watch(slot)) {}

  [[nodiscard]] static constexpr int thread_rank() noexcept { return 0; }
  [[nodiscard]] static constexpr int size() noexcept { return 1; }
  static constexpr void sync() noexcept {}

  /// The rank that the block belongs to.
  [[nodiscard]] int rank() const noexcept { return owner_->rank(); }
  [[nodiscard]] watch& guard() noexcept { return guard_; }
  /// Throws untax::error for a wait that did not end well.
  [[noreturn]] void fail(wait_outcome outcome, std::string_view name) const {
    owner_->throw_failure(outcome, name);
  }

 private:
  const world* owner_;
  watch guard_;
};

static_assert(waiting_group<block>);

}  // namespace untax
