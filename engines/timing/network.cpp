#include "engines/timing/network.hpp"

#include <algorithm>

#include <untax/tile/shard.hpp>

namespace untax::timing {
namespace {

constexpr double beside_rounding = 1e-15;

}  // namespace

const char* name_of_lane(char what) noexcept {
  switch (what) {
    case 'm':
      return "memory";
    case 'o':
      return "link out";
    case 'i':
      return "link in";
    case 'O':
      return "to the host";
    case 'I':
      return "from the host";
    case 'b':
      return "bridge of the host";
    case 'c':
      return "card out";
    default:
      return "card in";
  }
}

network::network(const machine& m, int ranks) : m_(&m), ranks_(ranks) {
  const machine_numbers& n = m.numbers;
  const auto of_each = [&](double rate, char what) {
    const int first = static_cast<int>(lanes_.size());
    for (int rank = 0; rank < ranks; ++rank) add(rate, rank, what);
    return first;
  };
  memory_ = of_each(n.memory_rate, 'm');
  if (m.links == link_kind::ring) {
    // Each rank has two links: `out_` to the next rank, and `in_` to the previous one.
    out_ = of_each(n.link_rate / 2, 'o');
    in_ = of_each(n.link_rate / 2, 'i');
  } else if (m.links != link_kind::host) {
    out_ = of_each(n.link_rate, 'o');
    in_ = of_each(n.link_rate, 'i');
  }
  if (m.links == link_kind::pairs || m.links == link_kind::host) {
    host_out_ = of_each(n.host_rate, 'O');
    host_in_ = of_each(n.host_rate, 'I');
    bridge_ = static_cast<int>(lanes_.size());
    // One bridge for each host. Pairs of its GPUs can transfer at the same time.
    const int hosts = ceil_div(ranks, m.gpus_of_host);
    for (int host = 0; host < hosts; ++host)
      add(n.host_rate * std::max(1, std::min(ranks, m.gpus_of_host) / 2), host, 'b');
  }
  if (ranks > m.gpus_of_host) {
    card_out_ = static_cast<int>(lanes_.size());
    const int cards = ceil_div(ranks, m.gpus_of_host) * m.cards_of_host;
    for (int card = 0; card < cards; ++card) add(n.card_rate, card, 'c');
    card_in_ = static_cast<int>(lanes_.size());
    for (int card = 0; card < cards; ++card) add(n.card_rate, card, 'C');
  }
}

int network::add(double rate, int rank, char what) {
  lanes_.push_back({.rate = rate, .rank = rank, .what = what});
  return static_cast<int>(lanes_.size()) - 1;
}

network::way network::way_between(int from, int to) const {
  if (from == to) return way::memory;
  if (from / m_->gpus_of_host != to / m_->gpus_of_host) return way::cards;
  if (m_->links == link_kind::host) return way::host;
  if (m_->links == link_kind::pairs && from / 2 != to / 2) return way::host;
  return way::link;
}

int network::card_of(int rank) const {
  const int host = rank / m_->gpus_of_host;
  const int place = rank % m_->gpus_of_host;
  return host * m_->cards_of_host + place * m_->cards_of_host / m_->gpus_of_host;
}

double network::book(int number, double bytes, double now, double rate_factor) {
  lane& l = lanes_[static_cast<std::size_t>(number)];
  const double begin = std::max(now, l.free);
  const double end = begin + bytes / (l.rate * rate_factor);
  if (remembers_) bookings_.push_back({number, begin, end, bytes, now});
  l.free = end;
  l.busy += end - begin;
  l.bytes += bytes;
  return end;
}

passage network::send(int from, int to, double bytes, double pace, double now, bool reads) {
  if (from == to) return copy(from, bytes, pace, now);
  double left = now;
  double arrival = now;
  const double factor = reads ? std::min(1.0, m_->numbers.read_rate / m_->numbers.link_rate) : 1.0;
  switch (way_between(from, to)) {
    case way::memory:
      break;
    case way::link:
      if (m_->links == link_kind::ring) {
        // Takes the shorter way round; if both are equally long, forward.
        const int size = std::min(ranks_, m_->gpus_of_host);
        const int first = from / size * size;
        const int ahead = (to - from + size) % size;
        const bool forward = ahead <= size - ahead;
        const int hops = forward ? ahead : size - ahead;
        int at = from - first;
        for (int hop = 0; hop < hops; ++hop) {
          const double end = book((forward ? out_ : in_) + first + at, bytes, now, factor);
          if (hop == 0) left = end;
          arrival = std::max(arrival, end);
          at = (at + (forward ? 1 : size - 1)) % size;
        }
      } else {
        left = book(out_ + from, bytes, now, factor);
        arrival = std::max(left, book(in_ + to, bytes, now, factor));
      }
      break;
    case way::host:
      left = book(host_out_ + from, bytes, now, factor);
      arrival = std::max({left, book(bridge_ + from / m_->gpus_of_host, bytes, now, factor),
                          book(host_in_ + to, bytes, now, factor)});
      break;
    case way::cards:
      left = book(card_out_ + card_of(from), bytes, now, 1);
      arrival = std::max(left, book(card_in_ + card_of(to), bytes, now, 1));
      break;
  }
  const double paced = pace > 0 ? now + bytes / pace : now;
  left = std::max(left, paced);
  arrival = std::max(arrival, paced) + beside_rounding;
  return {left, arrival + flight(from, to)};
}

passage network::copy(int rank, double bytes, double pace, double now) {
  const double end = book(memory_ + rank, 2 * bytes, now, 1);
  const double paced = pace > 0 ? now + bytes / pace : now;
  const double done = std::max(end, paced);
  return {done, done};
}

double network::flight(int from, int to) const {
  switch (way_between(from, to)) {
    case way::memory:
      return 0;
    case way::link:
      return m_->numbers.store;
    case way::host:
      return m_->numbers.host_store;
    case way::cards:
      return m_->numbers.card_store;
  }
  return 0;
}

}  // namespace untax::timing
