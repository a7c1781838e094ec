#include "engines/host/roll_call.hpp"

#include <atomic>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/memory/host_memory.hpp>

namespace untax::host {

roll_call::roll_call(world& w, const row_program& p, const symmetric<std::uint64_t>& counters,
                     std::string operator_name)
    : world_(&w), program_(p), counters_(counters), operator_name_(std::move(operator_name)) {
  const auto numbers = static_cast<std::size_t>(run_sets) * static_cast<std::size_t>(p.world());
  rows_ = w.allocate_owned<std::uint64_t>(numbers, operator_name_ + " numbers of rows");
}

std::uint64_t& roll_call::told(int at, int from) const noexcept {
  return *rows_->at(at, static_cast<std::size_t>(program_.roll_call(run_.set(), from)));
}

void roll_call::begin(const row_run& run) {
  run_ = run;
  for (int peer = 0; peer < program_.world(); ++peer) {
    std::atomic_ref<std::uint64_t>(told(peer, program_.rank()))
        .store(static_cast<std::uint64_t>(run.rows), std::memory_order_relaxed);
  }
}

bool roll_call::has_begun(int peer) const noexcept {
  if (peer == program_.rank()) return true;
  const int index = program_.roll_call(run_.set(), peer);
  return host_memory::load_acquire(
             *counters_.at(program_.rank(), static_cast<std::size_t>(index))) >= run_.turn();
}

bool roll_call::differs() const noexcept {
  for (int peer = 0; peer < program_.world(); ++peer) {
    if (!has_begun(peer)) continue;
    const auto rows =
        std::atomic_ref<std::uint64_t>(told(program_.rank(), peer)).load(std::memory_order_relaxed);
    if (rows != static_cast<std::uint64_t>(run_.rows)) return true;
  }
  return false;
}

std::string roll_call::text() const {
  std::map<std::uint64_t, std::vector<int>> ranks;
  for (int peer = 0; peer < program_.world(); ++peer) {
    if (has_begun(peer)) {
      ranks[std::atomic_ref<std::uint64_t>(told(program_.rank(), peer))
                .load(std::memory_order_relaxed)]
          .push_back(peer);
    }
  }
  std::string whole_text;
  for (const auto& [rows, who] : ranks) {
    whole_text += fmt::format("{}{} at {} {}", whole_text.empty() ? "" : ", ", rows,
                              who.size() == 1 ? "rank" : "ranks", fmt::join(who, " and "));
  }
  return fmt::format(
      "{}: in run {} the ranks have different numbers of rows: {}; they all have to "
      "pass the same",
      operator_name_, run_.number, whole_text);
}

void roll_call::look() {
  if (differs()) world_->fail(errc::disagreement, text());
}

void roll_call::end() {
  if (!differs()) return;
  // Another rank may have found the difference, too, without having reported it yet.
  world_->fail(errc::disagreement, text());
  throw error(errc::disagreement, fmt::format("rank {}: {}", program_.rank(), text()));
}

}  // namespace untax::host
