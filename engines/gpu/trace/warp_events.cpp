#include "engines/gpu/trace/warp_events.hpp"

#include <optional>

#include <untax/flow/fault_tap.hpp>
#include <untax/flow/wait_site.hpp>

namespace untax::gpu {
namespace {

constexpr std::uint64_t address_bits = (std::uint64_t{1} << 47U) - 1;

/// The rank of a counter, and its number there.
struct counter_place {
  int owner = 0;
  int number = -1;
};

counter_place place_of(const kernel_record& record, std::uint64_t address) {
  for (const counter_range& range : record.counters) {
    for (int owner = 0; owner < record.ranks; ++owner) {
      const std::uint64_t begin =
          (range.local + static_cast<std::uint64_t>((owner - record.rank) * range.span)) &
          address_bits;
      if (address < begin || (address - begin) / sizeof(std::uint64_t) >= range.count) continue;
      return {owner, range.first + static_cast<int>((address - begin) / sizeof(std::uint64_t))};
    }
  }
  return {record.rank, -1};  // a wait for data that are their own signal
}

class ring_reader {
 public:
  ring_reader(const kernel_record& record, const warp_ring& ring) : record_(record), ring_(ring) {}

  warp_events read() {
    for (const trace_event& event : ring_.events) {
      const event_word word{event.word};
      const std::uint64_t time = record_.clock.on_host(event.time);
      switch (word.kind()) {
        case trace_kind::kernel:
          kernel(word, time);
          break;
        case trace_kind::action:
          act(word, time);
          break;
        case trace_kind::wait:
          wait(word, time);
          break;
        case trace_kind::signal:
          found_.others.push_back(at_counter(word, time));
          break;
        default:
          break;
      }
    }
    return std::move(found_);
  }

 private:
  void kernel(const event_word& word, std::uint64_t time) {
    action_.reset();
    wait_.reset();
    if (!word.ends()) {
      kernel_part& part = kernel_.emplace();
      part.by = {ring_.group, word.launch()};
      part.role = static_cast<warp_role>(word.what());
      part.epoch = word.epoch();
      found_.cluster = word.cluster();
      part.span.kind = trace_kind::kernel;
      part.span.begin = time;
      others_before_ = found_.others.size();
    } else if (kernel_) {
      kernel_->span.end = time;
      found_.kernels.push_back(*kernel_);
      act_throughout();
      kernel_.reset();
    }
  }
  /// Warps of some roles do one action from begin to end of a kernel, except while they wait. A
  /// warp that neither waits nor signals has nothing to do.
  void act_throughout() {
    action what = action::none;
    if (kernel_->role == warp_role::sender) what = action::copy;
    if (kernel_->role == warp_role::adder) what = action::add;
    if (kernel_->role == warp_role::receiver) what = action::merge;
    if (what == action::none || found_.others.size() == others_before_) return;
    trace_span throughout = kernel_->span;
    throughout.kind = trace_kind::action;
    throughout.what = static_cast<int>(what);
    found_.others.push_back(throughout);
  }
  void act(const event_word& word, std::uint64_t time) {
    if (!word.ends()) {
      action_ = trace_span{.kind = trace_kind::action, .what = word.what(), .begin = time};
    } else if (action_) {
      action_->end = time;
      found_.others.push_back(*action_);
      action_.reset();
    }
  }
  /// Both events of a wait are recorded at its end.
  void wait(const event_word& word, std::uint64_t time) {
    if (!word.ends()) {
      wait_ = at_counter(word, time);
      return;
    }
    if (!wait_) return;
    wait_->end = time;
    const bool reserves = static_cast<verb>(word.what()) == verb::reserve;
    wait_->what = static_cast<int>(reserves ? channel_verb::reserve : channel_verb::acquire);
    wait_->peer = word.peer() < record_.ranks ? word.peer() : -1;
    wait_->room = word.room();
    found_.others.push_back(*wait_);
    wait_.reset();
  }
  [[nodiscard]] trace_span at_counter(const event_word& word, std::uint64_t time) const {
    const counter_place place = place_of(record_, word.counter());
    trace_span span;
    span.kind = word.kind();
    span.what = static_cast<int>(channel_verb::publish);
    span.begin = span.end = time;
    span.number = word.value();
    span.owner = place.owner;
    span.counter = place.number;
    return span;
  }

  const kernel_record& record_;
  const warp_ring& ring_;
  std::optional<kernel_part> kernel_;
  std::optional<trace_span> action_;
  std::optional<trace_span> wait_;
  std::size_t others_before_ = 0;  // number of `others` before the current kernel
  warp_events found_;
};

}  // namespace

warp_events read_ring(const kernel_record& record, const warp_ring& ring) {
  return ring_reader(record, ring).read();
}

}  // namespace untax::gpu
