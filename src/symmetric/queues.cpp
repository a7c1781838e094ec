#include "queues.hpp"

namespace untax {

stream_pool::handle stream_pool::take(int device) {
  const std::lock_guard lock(mutex_);
  seats& s = devices_[device];
  if (s.free.empty()) {
    s.free.reserve(s.all.size() + 1);  // so that returning a queue cannot fail
    s.all.reserve(s.all.size() + 1);
    s.all.push_back(make_(device));
    return s.all.back();
  }
  const handle taken = s.free.back();
  s.free.pop_back();
  return taken;
}

void stream_pool::give_back(int device, handle stream) noexcept {
  const std::lock_guard lock(mutex_);
  devices_.at(device).free.push_back(stream);
}

int stream_pool::made(int device) const {
  const std::lock_guard lock(mutex_);
  const auto match = devices_.find(device);
  return match == devices_.end() ? 0 : static_cast<int>(match->second.all.size());
}

}  // namespace untax
