#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <untax/core/error.hpp>
#include <untax/core/version.hpp>
#include <untax/flow/control.hpp>
#include <untax/flow/interrupt.hpp>

#include "bootstrap.hpp"
#include "deadline.hpp"
#include "messages.hpp"
#include "unix_socket.hpp"

namespace untax {
namespace {

using namespace std::chrono_literals;

// The time for which rank 0 stays to send an error to ranks that come late. A rank with a GPU comes
// when its GPU has started, and the start may differ by seconds between ranks.
constexpr auto farewell = 2000ms;
constexpr auto farewell_of_gpus = 10000ms;

/// A process that has connected; its rank is known once it has introduced itself.
struct guest {
  unix_socket socket;
  int rank = -1;
  device_id device{};
  descriptor share{};  // the memory of its device
};

/// An error that is sent to all ranks.
struct trouble {
  errc code;
  std::string text;
};

/// Rank 0 while it waits for the others.
class host {
 public:
  host(const placement& p, const settings& s, const own_share& mine, unix_socket listener)
      : placement_(p),
        settings_(s),
        mine_(mine),
        introduction_(introduction(mine, s)),
        listener_(std::move(listener)),
        expected_(p.world_size) {}

  void wait_for_all();
  [[nodiscard]] const std::optional<trouble>& found() const noexcept { return trouble_; }
  [[nodiscard]] std::vector<int> processes() const;
  /// The devices of all ranks, including this one.
  [[nodiscard]] std::vector<device_id> devices() const;
  [[nodiscard]] std::vector<descriptor> take_shares();
  [[nodiscard]] std::vector<unix_socket> take_links();
  void welcome(const segment& memory) const;
  /// Sends an error to all ranks that have come or come within the farewell time, and throws it.
  [[noreturn]] void send_away(const trouble& t);

 private:
  void poll_once(int milliseconds);
  void accept_all();
  /// Receives a message of a guest, if there is one. False if the guest has gone.
  bool listen_to(guest& g);
  void check(const guest& g, const greeting& hello);
  void note(errc code, std::string text);
  [[nodiscard]] std::vector<int> missing() const;

  const placement& placement_;
  const settings& settings_;
  const own_share& mine_;
  std::string introduction_;
  unix_socket listener_;
  std::vector<guest> guests_;
  std::optional<trouble> trouble_;
  int expected_;  // the largest world size that any rank has given
};

void host::wait_for_all() {
  const deadline limit(settings_.join_limit);
  while (!trouble_ && !missing().empty()) {
    if (limit.passed()) {
      note(
          errc::timeout,
          fmt::format("rank {} did not come within {} ms ({}). If it runs, it is of another launch "
                      "than rank 0 ({}): set {} to the same word for all ranks",
                      fmt::join(missing(), ", rank "), settings_.join_limit.count(),
                      variable::join_limit.name, placement_.launch, variable::launch.name));
      return;
    }
    if (interrupted()) {
      note(errc::aborted, fmt::format("interrupted by a signal before rank {} came",
                                      fmt::join(missing(), ", rank ")));
      return;
    }
    poll_once(limit.poll_time(join_slice));
  }
}

void host::poll_once(int milliseconds) {
  std::vector<pollfd> entries = {{listener_.number(), POLLIN, 0}};
  for (const guest& g : guests_) entries.push_back({g.socket.number(), POLLIN, 0});
  if (poll(entries.data(), entries.size(), milliseconds) <= 0) return;
  std::vector<guest> staying;
  for (std::size_t i = 0; i < guests_.size(); ++i) {
    if (entries[i + 1].revents == 0 || listen_to(guests_[i]))
      staying.push_back(std::move(guests_[i]));
  }
  guests_ = std::move(staying);
  if (entries[0].revents != 0) accept_all();
}

void host::accept_all() {
  while (auto socket = listener_.accept()) {
    // The directory is private, but root can reach it, too.
    if (socket->other_side().user == geteuid()) guests_.push_back({std::move(*socket)});
  }
}

bool host::listen_to(guest& g) {
  greeting hello{};
  auto received = g.socket.receive(writable_bytes_of(hello));
  if (!received) return true;
  if (received->bytes == sizeof hello && hello.magic == greeting::expected_magic && g.rank < 0) {
    check(g, hello);
    g.rank = hello.rank;
    g.device = hello.device;
    if (!received->attachments.empty()) g.share = std::move(received->attachments.front());
    return true;
  }
  if (g.rank >= 0)
    note(errc::peer_lost, fmt::format("rank {} ended while the world was set up", g.rank));
  return false;
}

void host::check(const guest& g, const greeting& hello) {
  expected_ = std::max(expected_, std::min(hello.world_size, max_ranks));
  const std::string theirs = hello.text.get();
  const bool taken = std::any_of(guests_.begin(), guests_.end(),
                                 [&](const guest& other) { return other.rank == hello.rank; });
  if (hello.trouble >= 0) {
    note(static_cast<errc>(hello.trouble), theirs);
  } else if (theirs != introduction_) {
    note(
        errc::disagreement,
        fmt::format("the ranks were started with different settings:\n  rank 0: {}\n  rank {}: {}\n"
                    "Start all of them with the same program and the same environment.",
                    introduction_, hello.rank, theirs));
  } else if (hello.rank <= 0 || hello.rank >= placement_.world_size) {
    note(errc::disagreement,
         fmt::format("process {} says that it is rank {} of {}", g.socket.other_side().process,
                     hello.rank, placement_.world_size));
  } else if (taken) {
    note(errc::disagreement, fmt::format("two processes say that they are rank {} of {}",
                                         hello.rank, placement_.world_size));
  }
}

void host::note(errc code, std::string text) {
  if (!trouble_) trouble_ = {code, std::move(text)};
}

std::vector<int> host::missing() const {
  std::vector<int> ranks;
  for (int rank = 1; rank < placement_.world_size; ++rank) {
    const bool arrived = std::any_of(guests_.begin(), guests_.end(),
                                     [rank](const guest& g) { return g.rank == rank; });
    if (!arrived) ranks.push_back(rank);
  }
  return ranks;
}

std::vector<int> host::processes() const {
  std::vector<int> found(static_cast<std::size_t>(placement_.world_size));
  found[0] = getpid();
  for (const guest& g : guests_) {
    if (g.rank > 0) found[static_cast<std::size_t>(g.rank)] = g.socket.other_side().process;
  }
  return found;
}

std::vector<device_id> host::devices() const {
  std::vector<device_id> found(static_cast<std::size_t>(placement_.world_size));
  found[0] = mine_.id();
  for (const guest& g : guests_) {
    if (g.rank > 0) found[static_cast<std::size_t>(g.rank)] = g.device;
  }
  return found;
}

std::vector<descriptor> host::take_shares() {
  std::vector<descriptor> taken(static_cast<std::size_t>(placement_.world_size));
  for (guest& g : guests_) {
    if (g.rank > 0) taken[static_cast<std::size_t>(g.rank)] = std::move(g.share);
  }
  return taken;
}

std::vector<unix_socket> host::take_links() {
  std::ranges::sort(guests_, {}, &guest::rank);
  std::vector<unix_socket> taken;
  for (guest& g : guests_) {
    if (g.rank > 0) taken.push_back(std::move(g.socket));
  }
  return taken;
}

void host::welcome(const segment& memory) const {
  answer reply{};
  reply.welcome = 1;
  std::ranges::copy(processes(), reply.processes.begin());
  std::ranges::copy(devices(), reply.devices.begin());
  std::vector<int> attachments = {memory.descriptor()};
  if (mine_.memory) {
    attachments.resize(1 + static_cast<std::size_t>(placement_.world_size), mine_.descriptor());
    for (const guest& g : guests_) {
      if (g.rank > 0) attachments[1 + static_cast<std::size_t>(g.rank)] = g.share.get();
    }
  }
  // If a guest has gone meanwhile, the first barrier finds it.
  for (const guest& g : guests_) g.socket.send(bytes_of(reply), attachments);
}

void host::send_away(const trouble& t) {
  answer reply{};
  reply.code = static_cast<std::int32_t>(t.code);
  reply.reason.set(t.text);
  // After a timeout, missing ranks are not waited for again.
  const auto patience =
      mine_.layout.memory == memory_kind::cuda || mine_.trouble ? farewell_of_gpus : farewell;
  const deadline limit(t.code == errc::timeout ? 1ms : patience);
  std::vector<guest> told;
  while (true) {
    for (guest& g : guests_) {
      if (g.rank >= 0 && g.socket.send(bytes_of(reply))) told.push_back(std::move(g));
    }
    std::erase_if(guests_, [](const guest& g) { return g.socket.number() < 0; });
    const bool all_told = told.size() + 1 >= static_cast<std::size_t>(expected_);
    if (all_told || limit.passed()) break;
    poll_once(limit.poll_time());
  }
  const bool own = t.text.starts_with("rank 0: ");
  throw error(t.code, own ? t.text : fmt::format("rank 0: {}", t.text));
}

}  // namespace

std::string introduction(const own_share& mine, const settings& s) {
  return fmt::format(
      "untax {} (layout {}), {} ranks, heap {} bytes{} {} guards, {}, wait limit {} ms", version,
      sizeof(control_block), mine.layout.ranks, s.heap_bytes,
      mine.layout.memory == memory_kind::cuda ? fmt::format(" (limit {})", s.heap_limit) : "",
      s.heap_guards ? "with" : "without", mine.kind, s.wait_limit.count());
}

membership gather_ranks(const placement& p, const settings& s, const own_share& mine,
                        meeting_place& place) {
  host h(p, s, mine, place.open());
  if (mine.trouble) h.send_away({mine.trouble->code(), mine.trouble->what()});
  h.wait_for_all();
  if (h.found()) h.send_away(*h.found());
  place.close();
  try {
    segment memory = segment::shareable(mine.layout);
    h.welcome(memory);
    membership members{std::move(memory), h.processes(), h.take_shares(), h.devices(), {}};
    members.links = h.take_links();
    return members;
  } catch (const error& e) {
    h.send_away({e.code(), e.what()});
  }
}

}  // namespace untax
