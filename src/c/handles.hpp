#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <untax/c/operator.h>
#include <untax/core/matrix.hpp>
#include <untax/core/pattern.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/core/types.hpp>
#include <untax/symmetric/symmetric.hpp>
#include <untax/world/world.hpp>

#include "ops/common/operand_values.hpp"
#include "ops/common/spec.hpp"

/// The object behind a world handle.
struct untax_world {
  explicit untax_world(untax::world w) : ranks(std::move(w)) {}

  /// Memory of `untax_world_allocate`, with its number among the objects of all ranks.
  struct allocation {
    untax::symmetric<std::byte> memory;
    std::uint64_t number = 0;
  };

  untax::world ranks;
  std::mutex allocations_mutex;                   ///< any thread may drop one
  std::map<const void*, allocation> allocations;  ///< by local address
  std::atomic<int> operators = 0;                 ///< operators of this world that are not dropped
  std::atomic<bool> failed = false;
  std::atomic_flag busy;  ///< set while a thread is in a call that only one thread at a time may
                          ///< make
};

/// The object behind a handle of a mapping.
struct untax_mapping {
  std::shared_ptr<const void> memory;
};

namespace untax::c {

/// Throws `invalid_argument` if another thread is in a call of this world that changes its heap or
/// its ledger. Two such calls at once would mix their steps, and wait for ever.
class one_thread {
 public:
  explicit one_thread(untax_world& w) : world_(w) {
    if (world_.busy.test_and_set(std::memory_order_acquire)) refuse();
  }
  one_thread(const one_thread&) = delete;
  one_thread& operator=(const one_thread&) = delete;
  ~one_thread() { world_.busy.clear(std::memory_order_release); }

 private:
  [[noreturn]] void refuse() const;

  untax_world& world_;
};

}  // namespace untax::c

/// The object behind an operator handle. `untax::c::planned` derives from it and has the operator.
struct untax_operator {
  /// `alone`: neither planning nor running concerns the other ranks.
  untax_operator(untax_world& w, bool alone)
      : owner(&w), number(alone ? 0 : w.ranks.next_object()) {
    ++owner->operators;
  }
  untax_operator(const untax_operator&) = delete;
  untax_operator& operator=(const untax_operator&) = delete;
  virtual ~untax_operator() {
    if (!dropped) --owner->operators;
  }

  [[nodiscard]] virtual const char* kind() const noexcept = 0;
  [[nodiscard]] virtual const std::string& explain() const noexcept = 0;
  [[nodiscard]] virtual untax::pattern how() const noexcept = 0;
  /// The operator's own memory for the result. Throws `invalid_argument` if it has none.
  [[nodiscard]] virtual untax::matrix result() const = 0;
  virtual void run(const untax::operand_values& values, untax::stream_ref stream) = 0;

  untax_world* owner;
  /// The number among the objects of all ranks; 0: an object of this rank alone.
  std::uint64_t number;
  std::vector<untax::operand_shape> operands;  ///< the operands of a run, as this rank passes them
  bool dropped = false;
};
