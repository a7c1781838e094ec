#pragma once

#include <exception>
#include <string>

#include <untax/core/error.hpp>
#include <untax/world/world.hpp>

namespace untax::gpu {

/// The launches of one run. A run that has begun must not end half-way: kernels of peers would wait
/// for the missing launches, and this rank would stay an epoch behind the peers. So if a launch
/// fails after another one of its run, the world is stopped with the reason. If the first launch of
/// a run fails, it only throws.
class whole_run {
 public:
  explicit whole_run(world& w) noexcept : world_(&w) {}
  whole_run(const whole_run&) = delete;
  whole_run& operator=(const whole_run&) = delete;

  /// Calls `launch`, which launches one kernel, copy or similar.
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
  /// As above, for a function with several launches. Any failure in it stops the world.
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
