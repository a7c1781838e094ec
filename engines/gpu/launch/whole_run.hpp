#pragma once

#include <exception>
#include <string>

#include <untax/core/error.hpp>
#include <untax/world/world.hpp>

namespace untax::gpu {

/// The launches of one run. A run that has begun must not end half-way: kernels of peers would wait
/// for what is missing, and this rank would be an epoch behind them ever after. So a launch that
/// fails behind others of its run stops the world with the reason; the first one of a run only
/// throws.
class whole_run {
 public:
  explicit whole_run(world& w) noexcept : world_(&w) {}
  whole_run(const whole_run&) = delete;
  whole_run& operator=(const whole_run&) = delete;

  /// Calls `launch`, which starts one thing.
  template <class Launch>
  void operator()(Launch&& launch) {
    try {
      launch();
    } catch (const std::exception& e) {
      const auto* const known = dynamic_cast<const error*>(&e);
      give_up(known != nullptr ? known->code() : errc::internal, e.what());
      throw;
    }
    begun_ = true;
  }
  /// The same of what starts several things.
  template <class Launches>
  void all_of(Launches&& launches) {
    begun_ = true;
    (*this)(launches);
  }

 private:
  void give_up(errc code, const std::string& why) const {
    if (begun_) world_->fail(code, why + "; its run had begun, so the world is stopped");
  }

  world* world_;
  bool begun_ = false;
};

}  // namespace untax::gpu
