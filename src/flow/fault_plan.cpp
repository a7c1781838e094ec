#include <untax/flow/fault_plan.hpp>

#include <csignal>
#include <cstdlib>
#include <utility>

#include "src/core/start_threads.hpp"

namespace untax {

fault_plan::~fault_plan() {
  if (late_.joinable()) late_.join();
}

void fault_plan::settle() {
  {
    const std::scoped_lock lock(late_mutex_);
    if (late_.joinable()) late_.join();
  }
  const std::scoped_lock lock(mutex_);
  kept_.reset();
}

bool fault_plan::due(const fault_site& site) {
  if (!fault_.matches(site)) return false;
  const std::scoped_lock lock(mutex_);
  return ++seen_ == fault_.nth;
}

void fault_plan::note(const fault_site& site, const room* target) {
  if (strikes_) strikes_(site);
  const std::scoped_lock lock(mutex_);
  struck_ = true;
  if (target != nullptr) target_ = *target;
}

bool fault_plan::struck() const {
  const std::scoped_lock lock(mutex_);
  return struck_;
}

std::optional<room> fault_plan::target() const {
  const std::scoped_lock lock(mutex_);
  return target_;
}

void fault_plan::before(const fault_site& site) {
  if (strikes_signals(fault_.kind) || !due(site)) return;
  note(site);
  if (fault_.kind == fault_kind::stall) std::this_thread::sleep_for(fault_.duration);
  if (fault_.kind == fault_kind::kill) std::raise(SIGKILL);
  if (fault_.kind == fault_kind::exit) std::_Exit(fault_.code);
}

void fault_plan::signal(const fault_site& site, const room& target,
                        const std::function<void()>& deliver) {
  if (!strikes_signals(fault_.kind) || !due(site)) {
    deliver();
    repeat_after(site, target);
    return;
  }
  if (fault_.kind == fault_kind::late_duplicate) {
    deliver();
    const std::scoped_lock lock(mutex_);
    kept_ = {site, target, deliver};
    return;
  }
  note(site, &target);
  if (fault_.kind == fault_kind::duplicate) {
    deliver();
    deliver();
  } else if (fault_.kind == fault_kind::delay) {
    const std::scoped_lock lock(late_mutex_);
    late_ = start_thread("a delayed signal", [deliver, duration = fault_.duration] {
      std::this_thread::sleep_for(duration);
      deliver();
    });
  }
}

void fault_plan::repeat_after(const fault_site& site, const room& target) {
  std::optional<kept_signal> old;
  {
    const std::scoped_lock lock(mutex_);
    // A counter has one writer: the same verb of the same worker, to the same rank and index.
    const bool same_counter =
        kept_ && kept_->site.verb == site.verb && kept_->site.kernel == site.kernel &&
        kept_->site.worker == site.worker && kept_->target.producer == target.producer &&
        kept_->target.consumer == target.consumer &&
        (site.verb == channel_verb::publish ? kept_->target.ready == target.ready
                                            : kept_->target.free == target.free);
    if (!same_counter || kept_->target.use >= target.use) return;
    old = std::exchange(kept_, std::nullopt);
  }
  note(old->site, &old->target);
  old->deliver();
}

void site_record::before(const fault_site& site) {
  const std::scoped_lock lock(mutex_);
  sites_.push_back(site);
}

std::vector<fault_site> site_record::sites() const {
  const std::scoped_lock lock(mutex_);
  return sites_;
}

}  // namespace untax
