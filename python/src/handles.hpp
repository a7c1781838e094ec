#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>

#include <untax/untax.h>

namespace untax::python {

/// A world of the C ABI while it is open, with the operators that were made on it. The world of
/// Python, its operators, allocations and views share it. Any thread may call it; only `close`
/// waits.
class open_world {
 public:
  explicit open_world(untax_world* w) : handle_(w) {}
  open_world(const open_world&) = delete;
  open_world& operator=(const open_world&) = delete;
  ~open_world() { close(); }

  /// The world's handle; null once the world is closed.
  [[nodiscard]] untax_world* handle() const;
  /// Tells the other ranks that this one has failed; nothing once it is closed.
  void fail(const char* text);
  void add(untax_operator* op);
  void add(untax_decoder* decoder);
  /// Ends the use of an operator, or of an allocation, by this rank.
  void drop(untax_operator* op);
  void drop(untax_decoder* decoder);
  void drop(void* allocation);
  /// Ends the world with all its remaining operators, and returns the status of the C ABI. Does not
  /// hold the lock of the interpreter, since it may wait for other ranks.
  std::int32_t close();
  /// An object that keeps the world's memory mapped. Null once the world is closed.
  [[nodiscard]] std::shared_ptr<untax_mapping> mapping();

 private:
  mutable std::mutex mutex_;
  untax_world* handle_;
  std::set<untax_operator*> operators_;
  std::set<untax_decoder*> decoders_;
  std::weak_ptr<untax_mapping> mapping_;
};

/// An operator of the C ABI, which Python and views of its memory share. The last of them drops it:
/// this is not collective, and happens wherever the garbage collector runs. An operator that was
/// captured in a graph, which may be replayed, stays until its world is closed, unless it was
/// closed.
class open_operator {
 public:
  open_operator(std::shared_ptr<open_world> owner, untax_operator* op)
      : owner_(std::move(owner)), op_(op) {
    owner_->add(op);
  }
  open_operator(const open_operator&) = delete;
  open_operator& operator=(const open_operator&) = delete;
  ~open_operator() {
    if (!captured) owner_->drop(op_);
  }

  [[nodiscard]] open_world& owner() const noexcept { return *owner_; }
  /// The operator's handle; null once its world is closed.
  [[nodiscard]] untax_operator* handle() const noexcept {
    return owner_->handle() == nullptr ? nullptr : op_;
  }

  bool captured = false;

 private:
  std::shared_ptr<open_world> owner_;
  untax_operator* op_;
};

/// An allocation of a world, which Python and views of it share. The last of them drops it, if it
/// was freed.
class open_allocation {
 public:
  open_allocation(std::shared_ptr<open_world> owner, void* local)
      : owner_(std::move(owner)), local_(local) {}
  open_allocation(const open_allocation&) = delete;
  open_allocation& operator=(const open_allocation&) = delete;
  ~open_allocation() {
    if (freed) owner_->drop(local_);
  }

  [[nodiscard]] open_world& owner() const noexcept { return *owner_; }
  [[nodiscard]] void* local() const noexcept { return local_; }

  bool freed = false;

 private:
  std::shared_ptr<open_world> owner_;
  void* local_;
};

/// The objects that a view of memory keeps: its owner, and its mapping.
struct view_pin {
  std::shared_ptr<const void> owner;
  std::shared_ptr<untax_mapping> mapping;
};

/// Raises InvalidArgument if the world was closed.
[[nodiscard]] view_pin pinned(std::shared_ptr<const void> owner, open_world& world);

}  // namespace untax::python
