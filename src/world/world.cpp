#include <untax/world/world.hpp>

#include <fmt/format.h>

#include "member.hpp"

namespace untax {
namespace {

// The rank's own waits use the first record, its workers the others.
constexpr int own_slot = 0;

std::string without_rank(const std::string& text, int rank) {
  const std::string prefix = fmt::format("rank {}: ", rank);
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

}  // namespace

world::world(std::unique_ptr<member> m) noexcept : member_(std::move(m)) {}
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
        std::make_unique<member>(memory, rank, ranks == 1 ? "alone" : "threads", s, nullptr)));
    views.back().member_->state.set_status(rank, rank_status::running);
  }
  return views;
}

int world::rank() const noexcept { return member_->rank; }
int world::size() const noexcept { return member_->memory->ranks(); }
std::string_view world::kind() const noexcept { return member_->kind; }
std::chrono::milliseconds world::wait_limit() const noexcept { return member_->wait_limit; }
symmetric_heap& world::heap() noexcept { return member_->heap; }
const control& world::state() const noexcept { return member_->state; }

bool world::reachable(int peer) const noexcept { return member_->memory->reachable(peer); }

int world::owner_of(const void* p, std::size_t bytes) const noexcept {
  return member_->memory->owner_of(p, bytes);
}

void* world::translate_address(const void* p, int peer) const {
  return member_->memory->translate(p, peer);
}

void world::meet(verb what, std::string_view name) {
  watch guard(member_->state, rank(), own_slot, member_->wait_limit, member_->alive.get());
  const wait_outcome outcome = member_->meeting.arrive_and_wait(guard, what);
  if (outcome != wait_outcome::ok) throw_failure(outcome, name);
  member_->ledger.compare();
}

void world::barrier() {
  member_->ledger.post("barrier");
  meet(verb::barrier, "barrier");
}

void world::agree(std::string_view what, std::string_view description) {
  note(what, description);
  meet(verb::agree, what);
}

void world::note(std::string_view what, std::string_view description) {
  member_->ledger.post(fmt::format("{}: {}", what, description));
}

void world::clear(void* local, std::size_t bytes) {
  // Before the first barrier a peer may still be in what it did last, and signal into memory that
  // was freed here.
  barrier();
  member_->memory->fill(rank(), static_cast<std::byte*>(local), std::byte{0}, bytes);
  barrier();
}

std::uint64_t world::next_run() noexcept { return ++member_->runs; }

watch world::make_watch(int slot) const noexcept {
  return {member_->state, rank(), slot + 1, member_->wait_limit, member_->alive.get()};
}

void world::throw_failure(wait_outcome outcome, std::string_view operator_name) const {
  untax::throw_failure(member_->state, rank(), outcome, operator_name);
}

void world::fail(errc code, const std::string& text) noexcept {
  try {
    member_->state.stop({rank(), rank(), code, without_rank(text, rank())});
  } catch (const std::bad_alloc&) {
    member_->state.stop({rank(), rank(), code, {}});
  }
}

bool world::stopped() const noexcept { return member_->state.stopped(); }
bool world::unwinding() const noexcept { return member_->unwinding(); }

void world::check() const {
  if (member_->monitor) {
    member_->monitor->settle(rank());
    if (member_->state.kernel_stopped(rank())) throw_failure(wait_outcome::aborted, "a kernel");
  }
  if (stopped()) throw_failure(wait_outcome::aborted, "the world");
}

void world::run(const std::function<void(world&)>& body) {
  try {
    body(*this);
  } catch (const error& e) {
    member_->failed = true;
    fail(e.code(), e.what());
    throw;
  } catch (const std::exception& e) {
    member_->failed = true;
    fail(errc::aborted, e.what());
    throw;
  } catch (...) {
    member_->failed = true;
    fail(errc::aborted, "an exception left the body of the rank");
    throw;
  }
}

}  // namespace untax
