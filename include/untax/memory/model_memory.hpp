#pragma once

#include <cstdint>

// Relacy's parts one by one: <relacy/relacy.hpp> would also define `new`, `delete`, `free`,
// `assert`, `memory_order_acquire`, ... as macros.
#include <relacy/context.hpp>
#include <relacy/context_base_impl.hpp>
// The parts above have to come first.
#include <relacy/atomic.hpp>
#include <relacy/backoff.hpp>
#include <relacy/var.hpp>

#include <untax/memory/policy.hpp>

namespace untax {

/// A 64-bit counter that the model checker observes: it sees every access, and may reorder it. It
/// starts at 0, and exists only inside one explored execution (see engines/model/search.hpp).
class model_counter {
 public:
  model_counter() : value_(std::uint64_t{0}) {}
  model_counter(const model_counter&) = delete;
  model_counter& operator=(const model_counter&) = delete;

  [[nodiscard]] std::uint64_t load(rl::memory_order order) const {
    return value_.load(order, site());
  }
  void store(std::uint64_t value, rl::memory_order order) { value_.store(value, order, site()); }
  /// A compare-exchange that never fails spuriously. If it fails, it is relaxed, and puts the value
  /// that it saw in `seen`.
  bool exchange_if(std::uint64_t& seen, std::uint64_t value, rl::memory_order order) {
    return value_.compare_exchange_strong(seen, value, order, site(), rl::mo_relaxed, site());
  }

 private:
  static rl::debug_info site() { return {"model_counter", "model_memory.hpp", 0}; }

  rl::atomic<std::uint64_t> value_;
};

/// Payload under the model checker. It reads and writes like a `T`. A read of a cell that was never
/// written, or two accesses that nothing orders, end the execution as a failure.
template <class T>
class model_cell {
 public:
  model_cell() = default;
  model_cell(const model_cell&) = delete;
  model_cell& operator=(const model_cell&) = delete;

  model_cell& operator=(T value) {
    value_(site()).store(value);
    return *this;
  }
  // NOLINTNEXTLINE(google-explicit-constructor): a stand-in for T
  operator T() const { return value_(site()).load(); }

 private:
  static rl::debug_info site() { return {"model_cell", "model_memory.hpp", 0}; }

  rl::var<T> value_;
};

/// Ways to make the policy too weak, for mutants that a checker has to catch.
enum class weakening : std::uint8_t {
  none,
  relaxed_raise,  ///< a load does not acquire the writes before the counter was raised
  relaxed_load,   ///< a load does not acquire what was written before the counter was raised
  plain_raise     ///< raising is a plain release store, with which a late signal lowers a counter
};

/// The memory policy of the Relacy model checker, which explores interleavings and the stale reads
/// that the C++ memory model allows. Its operations have the same orders as those of `host_memory`.
template <weakening W = weakening::none>
struct basic_model_memory {
  using counter = model_counter;
  template <class T>
  using cell = model_cell<T>;

  static std::uint64_t load_acquire(const counter& c) {
    return c.load(W == weakening::relaxed_load ? rl::mo_relaxed : rl::mo_acquire);
  }

  /// A maximum by compare-exchange, as on the host. With one writer to a counter a release store
  /// would suffice, and would synchronise with the same loads. The maximum makes a signal harmless
  /// that comes twice or late.
  static void raise_release(counter& c, std::uint64_t value) {
    if constexpr (W == weakening::plain_raise) {
      c.store(value, rl::mo_release);
    } else {
      constexpr auto order = W == weakening::relaxed_raise ? rl::mo_relaxed : rl::mo_release;
      std::uint64_t seen = c.load(rl::mo_relaxed);
      while (seen < value && !c.exchange_if(seen, value, order)) {
      }
    }
  }

  /// Lets another thread run. Afterwards this thread sees newer values, so that waiting loops end.
  static void pause(poll_count) { rl::yield(1, {"pause", "model_memory.hpp", 0}); }

  /// Always 0: the model has an order of events, and no time.
  static std::uint64_t now() noexcept { return 0; }
};

using model_memory = basic_model_memory<>;
static_assert(memory_policy<model_memory>);

}  // namespace untax
