#include <algorithm>

#include <untax/ops/collectives.hpp>

#include "ops/all_to_all/protocol.hpp"
#include "ops/all_to_all/spec.hpp"
#include "ops/collectives_common/entry.hpp"

namespace untax {
namespace {

/// Unequal parts are 0, 1/2, 1 and 3/2 times `count`.
std::int64_t part(const collective_problem& p, int from, int to) {
  return p.uneven ? (5 * from + 3 * to + 1) % 4 * p.count / 2 : p.count;
}

all_to_all_problem problem_of(const collective_problem& p, int world) {
  all_to_all_problem problem{p.count, p.type};
  if (!p.uneven) return problem;
  for (int from = 0; from < world; ++from) {
    for (int to = 0; to < world; ++to) problem.counts.push_back(part(p, from, to));
  }
  return problem;
}

double bytes_of(const collective_problem& p, int world) {
  std::int64_t most = 0;
  for (int rank = 0; rank < world; ++rank) {
    std::int64_t sent = 0;
    std::int64_t received = 0;
    for (int peer = 0; peer < world; ++peer) {
      if (peer == rank) continue;
      sent += part(p, rank, peer);
      received += part(p, peer, rank);
    }
    most = std::max({most, sent, received});
  }
  return static_cast<double>(most) * static_cast<double>(size_of(p.type));
}

}  // namespace

collective_entry all_to_all_entry() {
  collective_entry entry = entry_of<all_to_all>("all_to_all", problem_of);
  entry.summary = spec<all_to_all>.summary;
  entry.has_uneven = true;
  entry.origin_of = [](const collective_problem& p, int /*world*/, int rank, std::int64_t i) {
    origin at{0, i};
    for (; at.index >= part(p, at.from, rank); ++at.from) at.index -= part(p, at.from, rank);
    for (int before = 0; before < rank; ++before) at.index += part(p, at.from, before);
    return at;
  };
  entry.bytes = bytes_of;
  entry.ring = [](double bytes, int world) {
    return ring_traffic{bytes * (world - 1.0) / world, 1};
  };
  return entry;
}

}  // namespace untax
