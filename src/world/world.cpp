#include <untax/world/world.hpp>

#include <fmt/format.h>

#include <untax/memory/host_memory.hpp>

#include "member.hpp"
#include "src/flow/reports.hpp"

namespace untax {
namespace {

// The rank's own waits use the first record, its workers the others.
constexpr int own_slot = 0;

std::string without_rank(const std::string& text, int rank) {
  const std::string prefix = fmt::format("rank {}: ", rank);
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

}  // namespace

world::world(std::shared_ptr<member> m) noexcept : member_(std::move(m)) {}
world::world(world&& other) noexcept = default;
world& world::operator=(world&& other) noexcept = default;
world::~world() = default;

std::vector<world> world::threads(int ranks, const world_options& options) {
  if (ranks < 1 || ranks > max_ranks) {
    throw error(errc::invalid_argument,
                fmt::format("a world of {} ranks; it can have 1 to {}", ranks, max_ranks));
  }
  return member::threads(ranks, settings::of(options, environment()));
}

std::vector<world> world::member::threads(int ranks, const settings& s) {
  const auto memory =
      std::make_shared<segment>(segment::anonymous({ranks, control::bytes(ranks), s.heap_bytes}));
  std::vector<world> views;
  for (int rank = 0; rank < ranks; ++rank) {
    views.push_back(world(
        std::make_shared<member>(memory, rank, ranks == 1 ? "alone" : "threads", s, nullptr)));
    views.back().member_->state.set_status(rank, rank_status::running);
  }
  return views;
}

int world::rank() const noexcept { return member_->rank; }
int world::size() const noexcept { return member_->memory->ranks(); }
std::string_view world::kind() const noexcept { return member_->kind; }
std::chrono::milliseconds world::wait_limit() const noexcept { return member_->wait_limit; }
symmetric_heap& world::heap() { return own().heap; }
const control& world::state() const noexcept { return member_->state; }

bool world::reachable(int peer) const noexcept { return member_->memory->reachable(peer); }

int world::owner_of(const void* p, std::size_t bytes) const noexcept {
  return member_->memory->owner_of(p, bytes);
}

world::member& world::own() const {
  if (member_ == nullptr) {
    throw error(errc::invalid_argument,
                "this world object was moved from; use the one that it was moved to");
  }
  if (member_->forked()) {
    throw error(errc::unsupported,
                fmt::format("rank {}: this process was forked from the rank's, and is no part of "
                            "the world; use the world in the parent, or make one after the fork",
                            member_->rank));
  }
  return *member_;
}

world& world::stable_view() const { return own().view; }

void* world::translate_address(const void* p, int peer) const {
  return own().memory->translate(p, peer);
}

void world::meet(verb what, std::string_view name, std::string call) {
  member& mine = own();
  const bool frees = mine.heap.retired() > 0;
  if (frees) call += ", after which all ranks are done with " + mine.heap.retired_text();
  mine.ledger.post(call);
  mine.heap.check_retired();
  const std::vector<std::uint64_t> ended = mine.drops.common(mine.dropped.numbers(), [&] {
    watch guard(mine.state, mine.rank, own_slot, mine.wait_limit, mine.alive.get());
    const wait_outcome outcome = mine.meeting.arrive_and_wait(guard, what);
    if (outcome != wait_outcome::ok) throw_failure(outcome, name);
    mine.ledger.compare();
  });
  // Every rank has retired the same objects before it came here.
  if (frees) mine.heap.reclaim();
  // Destructors of dropped objects may meet the other ranks, which end the same objects now.
  mine.dropped.end(ended);
}

void world::barrier() { meet(verb::barrier, "barrier", "barrier"); }

void world::agree(std::string_view what, std::string_view description) {
  meet(verb::agree, what, fmt::format("{}: {}", what, description));
}

void world::make_room(std::size_t count, std::size_t size, std::string_view label) {
  const symmetric_heap& heap = own().heap;
  if (count > heap.limit() / size) return;
  const std::size_t bytes = count * size;
  const auto meet_once = [&] {
    meet(verb::barrier, "allocate", fmt::format("meeting to make room for \"{}\"", label));
  };
  // Only a meeting tells the ranks which objects all of them have dropped, and retires these.
  if (!heap.fits(bytes)) meet_once();
  if (!heap.fits(bytes) && heap.retired() > 0) meet_once();
  // All ranks have made the same allocations, so all of them grow, by the same amount.
  if (heap.fits(bytes)) return;
  if (const std::size_t more = heap.growth_for(bytes)) grow_heap(more, label);
}

void world::note(std::string_view what, std::string_view description) {
  own().ledger.post(fmt::format("{}: {}", what, description));
}

void world::clear(void* local, std::size_t bytes) {
  // Before the first barrier, a peer may still be in an earlier operation, and signal into memory
  // that was freed here.
  barrier();
  member_->memory->fill(rank(), static_cast<std::byte*>(local), std::byte{0}, bytes);
  barrier();
}

std::uint64_t world::next_run() noexcept { return ++member_->runs; }

std::uint64_t world::next_object() noexcept { return ++member_->objects; }

void world::drop(std::uint64_t number, std::shared_ptr<void> object) {
  if (member_->forked()) {
    leave_behind(new (std::nothrow) std::shared_ptr<void>(std::move(object)));
    return;
  }
  member_->dropped.add(number, std::move(object));
}

void world::end_own() { member_->dropped.end({}); }

void world::end_dropped() noexcept { member_->end_dropped(); }

std::shared_ptr<const void> world::mapping() const { return own().memory; }

watch world::make_watch(int slot) const noexcept {
  return {member_->state, rank(), slot + 1, member_->wait_limit, member_->alive.get()};
}

void world::throw_failure(wait_outcome outcome, std::string_view operator_name) const {
  untax::throw_failure(member_->state, rank(), outcome, operator_name);
}

void world::fail(errc code, const std::string& text) noexcept {
  if (member_->forked()) return;  // a forked child is not a rank
  try {
    member_->state.stop({rank(), rank(), code, without_rank(text, rank())});
  } catch (const std::bad_alloc&) {
    member_->state.stop({rank(), rank(), code, {}});
  }
}

bool world::stopped() const noexcept { return member_->state.stopped(); }
bool world::unwinding() const noexcept { return member_->leaving || member_->unwinding(); }

void world::check() const {
  const member& mine = own();
  if (mine.monitor) {
    mine.monitor->settle(rank());
  } else {
    // Stop words of kernels that an interpreter runs on CPUs, which no monitor watches.
    for (int peer = 0; peer < size(); ++peer) {
      if (report_kernel(mine.state, mine.alive.get(), peer, mine.wait_limit, host_memory::now()))
        break;
    }
  }
  if (mine.state.kernel_stopped(rank())) throw_failure(wait_outcome::aborted, "a kernel");
  if (stopped()) throw_failure(wait_outcome::aborted, "the world");
}

void world::run(const std::function<void(world&)>& body) {
  // If the body has moved the world away, the object that it was moved to ends the world.
  const auto stop = [this](errc code, const char* text) {
    if (member_ == nullptr) return;
    member_->failed = true;
    fail(code, text);
  };
  try {
    body(*this);
  } catch (const error& e) {
    stop(e.code(), e.what());
    throw;
  } catch (const std::exception& e) {
    stop(errc::aborted, e.what());
    throw;
  } catch (...) {
    stop(errc::aborted, "an exception left the body of the rank");
    throw;
  }
}

}  // namespace untax
