#include "engines/host/worker.hpp"

#include "engines/host/race_marks.hpp"

namespace untax::host {

void worker::take(const step& s, const operand_table& operands) {
  if (outcome_ != wait_outcome::ok) return;
  ++site_.step;
  verbs channel(operator_name_, counters_, guard_,
                first_progress_ + static_cast<std::uint64_t>(site_.step));
  if (s.reserve.named()) {
    before(channel_verb::reserve);
    const wait_note note(ring_, channel_verb::reserve, s.reserve);
    outcome_ = channel.reserve(s.reserve);
    if (outcome_ != wait_outcome::ok) return;
    if (elsewhere(s.reserve.consumer)) mark_wait_for_process();
  }
  if (s.acquire.named()) {
    before(channel_verb::acquire);
    const wait_note note(ring_, channel_verb::acquire, s.acquire);
    outcome_ = channel.acquire(s.acquire);
    if (outcome_ != wait_outcome::ok) return;
    if (elsewhere(s.acquire.producer)) mark_wait_for_process();
  }
  if (s.what != action::none) {
    const trace_scope note(ring_, {.kind = trace_kind::action, .what = static_cast<int>(s.what)});
    math_.perform(s, operands);
  }
  if (s.publish.named()) {
    before(channel_verb::publish);
    if (elsewhere(s.publish.consumer)) mark_signal_to_process();
    signal(channel_verb::publish, s.publish, 0,
           [channel, target = s.publish]() mutable { channel.publish(target); });
  }
  if (s.retire.named()) {
    before(channel_verb::retire);
    if (elsewhere(s.retire.producer)) mark_signal_to_process();
    signal(channel_verb::retire, s.retire, s.reader,
           [channel, target = s.retire, reader = s.reader]() mutable {
             channel.retire(target, reader);
           });
  }
}

void worker::before(channel_verb verb) {
  if (faults_ == nullptr) return;
  site_.verb = verb;
  faults_->before(site_);
}

template <class Deliver>
void worker::signal(channel_verb verb, const room& target, int reader, Deliver&& deliver) {
  if (ring_ != nullptr) note_signal(*ring_, verb, target, reader);
  if (faults_ == nullptr) {
    deliver();
  } else {
    faults_->signal(site_, target, deliver);
  }
}

}  // namespace untax::host
