#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include <untax/core/stream_ref.hpp>
#include <untax/world/world.hpp>

#include "src/symmetric/stream_order.hpp"

namespace untax {

/// The runs of one operator take turns. One thread at a time calls a collective operator. On a GPU
/// a run begins when the run before it in the order of the calls has ended, also on another stream
/// and in graphs.
class run_turns {
 public:
  /// For a collective operator: its runs and those of all others of this rank follow one another.
  /// `operator_name` has to outlive it. In a world of GPUs the rank's GPU becomes the current
  /// device.
  run_turns(world& w, std::string_view operator_name);
  /// For an operator that waits for no peer, and has no state on hosts: on GPUs its runs follow one
  /// another, also those of several threads.
  [[nodiscard]] static run_turns alone(world& w, std::string_view operator_name);
  run_turns(const run_turns&) = delete;
  run_turns& operator=(const run_turns&) = delete;

  /// Calls `run`, which executes or launches one run. Throws `invalid_argument`, at once, if
  /// another thread is in a run of this operator; and the errors of `run` and `stream_order`.
  template <class Run>
  void operator()(stream_ref stream, Run&& run) {
    if (!order_ && !collective_) return run();
    const turn only(*this);
    // If another operator is made of this one, its run is in the order already.
    if (!order_ || around.is(order_.get(), stream)) return run();
    const entered inside({order_.get(), stream.handle});
    order_->begin(stream);
    try {
      run();
    } catch (...) {
      end_quietly(stream);  // some kernels of the run may be running
      throw;
    }
    order_->end(stream);
  }

 private:
  class turn {
   public:
    explicit turn(run_turns& turns) : turns_(turns) {
      if (!turns.collective_) {
        turns.taken_.lock();
      } else if (!turns.taken_.try_lock()) {
        turns.refuse();
      }
    }
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;
    ~turn() { turns_.taken_.unlock(); }

   private:
    run_turns& turns_;
  };

  /// The run that the calling thread is in, if any.
  struct enclosing_run {
    const stream_order* order = nullptr;
    void* stream = nullptr;

    [[nodiscard]] bool is(const stream_order* other, stream_ref on) const noexcept {
      return order == other && stream == on.handle && stream != nullptr;
    }
  };
  static thread_local enclosing_run around;
  class entered {
   public:
    explicit entered(const enclosing_run& run) : outer_(std::exchange(around, run)) {}
    entered(const entered&) = delete;
    entered& operator=(const entered&) = delete;
    ~entered() { around = outer_; }

   private:
    enclosing_run outer_;
  };

  run_turns(world& w, std::string_view operator_name, bool collective);
  [[noreturn]] void refuse() const;
  void end_quietly(stream_ref stream) noexcept;

  int rank_;
  std::string_view name_;
  bool collective_;
  std::mutex taken_;
  std::shared_ptr<stream_order> order_;  ///< on GPUs
};

}  // namespace untax
