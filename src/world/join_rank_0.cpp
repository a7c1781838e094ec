#include <unistd.h>

#include <chrono>
#include <span>
#include <thread>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/flow/interrupt.hpp>

#include "bootstrap.hpp"
#include "deadline.hpp"
#include "messages.hpp"
#include "unix_socket.hpp"

namespace untax {
namespace {

using namespace std::chrono_literals;

[[noreturn]] void refuse(errc code, const placement& p, const std::string& text) {
  throw error(code, fmt::format("rank {}: {}", p.rank, text));
}

void leave_if_interrupted(const placement& p) {
  if (interrupted())
    refuse(errc::aborted, p, "interrupted by a signal while it waited for rank 0 to come");
}

unix_socket find_rank_0(const placement& p, const settings& s, const own_share& mine,
                        const meeting_place& place) {
  // A rank that cannot take part tells rank 0, but does not wait long for it.
  constexpr std::chrono::milliseconds short_limit = 12s;
  const bool hurried = mine.trouble && (s.join_limit.count() == 0 || s.join_limit > short_limit);
  const deadline limit(hurried ? short_limit : s.join_limit);
  while (true) {
    if (auto socket = unix_socket::connect(place.socket_path())) return std::move(*socket);
    if (limit.passed()) break;
    leave_if_interrupted(p);
    std::this_thread::sleep_for(2ms);
  }
  if (mine.trouble) throw *mine.trouble;
  refuse(errc::timeout, p,
         fmt::format("rank 0 did not come to {} within {} ms ({}){}. If rank 0 runs, it belongs to "
                     "another launch than this rank ({}) or uses another directory: set {} to the "
                     "same word, and {} to the same private directory, for all ranks",
                     place.socket_path(), s.join_limit.count(), variable::join_limit.name,
                     place.others() > 0 ? ", and ranks of another launch meet there" : "", p.launch,
                     variable::launch.name, variable::rendezvous.name));
}

}  // namespace

membership join_rank_0(const placement& p, const settings& s, const own_share& mine,
                       const meeting_place& place) {
  place.check();
  unix_socket rank_0 = find_rank_0(p, s, mine, place);
  if (rank_0.other_side().user != geteuid()) {
    refuse(errc::invalid_argument, p,
           fmt::format("{} belongs to user {}", place.socket_path(), rank_0.other_side().user));
  }
  greeting hello{greeting::expected_magic, p.rank, p.world_size, -1, mine.id(), {}};
  hello.text.set(introduction(mine, s));
  if (mine.trouble) {
    hello.trouble = static_cast<std::int32_t>(mine.trouble->code());
    hello.text.set(mine.trouble->what());
  }
  const int share = mine.descriptor();
  const bool sent = rank_0.send(bytes_of(hello), std::span(&share, share >= 0 ? 1 : 0));

  // Rank 0 began to wait before this rank found it, and knows which ranks are missing. One second
  // more lets its verdict come first.
  const deadline limit(s.join_limit.count() > 0 ? s.join_limit + 1s : 0ms);
  answer reply{};
  std::optional<unix_socket::packet> received;
  while (sent && !received && !limit.passed()) {
    leave_if_interrupted(p);
    if (rank_0.wait(limit.poll_time(join_slice)))
      received = rank_0.receive(writable_bytes_of(reply));
  }
  if (mine.trouble) throw *mine.trouble;
  if (sent && !received) {
    refuse(errc::timeout, p,
           fmt::format("rank 0 did not answer within {} ms", s.join_limit.count()));
  }
  if (!sent || received->bytes != sizeof reply) {
    refuse(errc::peer_lost, p, "rank 0 ended while the world was set up");
  }
  if (reply.welcome == 0) refuse(static_cast<errc>(reply.code), p, reply.reason.get());
  std::vector<descriptor>& descriptors = received->attachments;
  const std::size_t expected = 1 + (mine.memory ? static_cast<std::size_t>(p.world_size) : 0);
  if (descriptors.size() != expected) {
    refuse(errc::internal, p,
           fmt::format("rank 0 sent {} descriptors instead of {}; is the limit of open files "
                       "(ulimit -n) too low?",
                       descriptors.size(), expected));
  }
  segment memory = segment::attach(descriptors.front().release(), mine.layout);
  descriptors.erase(descriptors.begin());
  membership mine_of_all{std::move(memory),
                         {reply.processes.begin(), reply.processes.begin() + p.world_size},
                         std::move(descriptors),
                         {reply.devices.begin(), reply.devices.begin() + p.world_size},
                         {}};
  mine_of_all.links.push_back(std::move(rank_0));
  return mine_of_all;
}

}  // namespace untax
