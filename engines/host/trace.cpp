#include "engines/host/trace.hpp"

#include <utility>

#include <untax/world/trace_ids.hpp>

namespace untax::host {
namespace {

/// Indices of the ids in symmetric memory.
constexpr std::size_t operator_id = 0;
constexpr std::size_t world_id = 1;
constexpr std::size_t ids = 2;

}  // namespace

std::shared_ptr<engine_trace> engine_trace::open(world& w, const std::string& name,
                                                 std::vector<trace_kernel> kernels) {
  if (!is_tracing()) return nullptr;
  auto trace = std::make_shared<engine_trace>(w, name, std::move(kernels));
  add_source(trace);
  return {trace.get(), [trace](engine_trace* t) { forget_source(*t); }};
}

engine_trace::engine_trace(world& w, const std::string& name, std::vector<trace_kernel> kernels)
    : room_(trace_room()),
      ids_(w.allocate_owned_cleared<std::uint64_t>(ids, name + " trace")),
      caller_(room_) {
  if (w.rank() == 0) {
    const trace_ids mine = new_trace_ids(w);
    for (int peer = 0; peer < w.size(); ++peer) {
      *ids_->at(peer, operator_id) = mine.operator_id;
      *ids_->at(peer, world_id) = mine.world_id;
    }
  }
  w.barrier();
  what_.id = *ids_->local(operator_id);
  what_.world = *ids_->local(world_id);
  what_.name = name;
  what_.label = trace_label::current();
  what_.rank = w.rank();
  what_.ranks = w.size();
  what_.kernels = std::move(kernels);
}

trace_ring* engine_trace::worker(std::size_t index) {
  while (workers_.size() <= index) workers_.push_back(std::make_unique<trace_ring>(room_));
  return workers_[index].get();
}

traced_operator engine_trace::collect() const {
  traced_operator op = what_;
  op.calls = spans_of(caller_.events());
  op.lost = caller_.lost();
  for (const auto& ring : workers_) {
    op.workers.push_back(spans_of(ring->events()));
    op.lost += ring->lost();
  }
  return op;
}

wait_note::wait_note(trace_ring* ring, channel_verb verb, const room& target) noexcept
    : ring_(ring) {
  if (ring_ == nullptr) return;
  const bool reserves = verb == channel_verb::reserve;
  if (reserves && (target.free < 0 || target.needed_free() == 0)) {
    ring_ = nullptr;
    return;
  }
  trace_mark mark{.kind = trace_kind::wait, .what = static_cast<int>(verb)};
  mark.owner = reserves ? target.producer : target.consumer;
  mark.counter = reserves ? target.free : target.ready;
  mark.readers = reserves ? target.readers : 1;
  mark.number = static_cast<std::int64_t>(reserves ? target.needed_free() : target.use);
  ring_->note(mark);
  end_ = {.kind = trace_kind::wait, .end = true, .what = static_cast<int>(verb)};
  end_.owner = reserves ? target.consumer : target.producer;
  end_.counter = target.number;
}

wait_note::~wait_note() {
  if (ring_ != nullptr) ring_->note(end_);
}

void note_signal(trace_ring& ring, channel_verb verb, const room& target, int reader) noexcept {
  const bool retires = verb == channel_verb::retire;
  if (retires && target.free < 0) return;
  trace_mark mark{.kind = trace_kind::signal, .what = static_cast<int>(verb)};
  mark.owner = retires ? target.producer : target.consumer;
  mark.counter = retires ? target.free + reader : target.ready;
  mark.number = static_cast<std::int64_t>(target.use);
  ring.note(mark);
}

}  // namespace untax::host
