#include "handles.hpp"

#include <utility>

#include "raise.hpp"

namespace untax::python {

untax_world* open_world::handle() const {
  const std::scoped_lock lock(mutex_);
  return handle_;
}

void open_world::fail(const char* text) {
  const std::scoped_lock lock(mutex_);
  if (handle_ != nullptr) (void)untax_world_fail(handle_, text);
}

void open_world::add(untax_operator* op) {
  const std::scoped_lock lock(mutex_);
  operators_.insert(op);
}

void open_world::drop(untax_operator* op) {
  const std::scoped_lock lock(mutex_);
  if (handle_ != nullptr && operators_.erase(op) > 0) (void)untax_operator_drop(op);
}

void open_world::add(untax_decoder* decoder) {
  const std::scoped_lock lock(mutex_);
  decoders_.insert(decoder);
}

void open_world::drop(untax_decoder* decoder) {
  const std::scoped_lock lock(mutex_);
  if (handle_ != nullptr && decoders_.erase(decoder) > 0) (void)untax_decoder_drop(decoder);
}

void open_world::drop(void* allocation) {
  const std::scoped_lock lock(mutex_);
  if (handle_ != nullptr) (void)untax_world_drop(handle_, allocation);
}

std::int32_t open_world::close() {
  untax_world* closed = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    for (untax_operator* op : operators_) (void)untax_operator_drop(op);
    operators_.clear();
    for (untax_decoder* decoder : decoders_) (void)untax_decoder_drop(decoder);
    decoders_.clear();
    closed = std::exchange(handle_, nullptr);
  }
  return untax_world_destroy(closed);
}

std::shared_ptr<untax_mapping> open_world::mapping() {
  const std::scoped_lock lock(mutex_);
  if (auto known = mapping_.lock()) return known;
  untax_mapping* handle = nullptr;
  if (handle_ == nullptr || untax_world_map(handle_, &handle) != untax_ok) return nullptr;
  const std::shared_ptr<untax_mapping> kept(handle, untax_mapping_release);
  mapping_ = kept;
  return kept;
}

view_pin pinned(std::shared_ptr<const void> owner, open_world& world) {
  view_pin pin{std::move(owner), world.mapping()};
  if (pin.mapping == nullptr) refuse("the world of this memory is closed");
  return pin;
}

}  // namespace untax::python
