#include <untax/flow/control.hpp>

#include <array>

#include <fmt/format.h>

#include "words.hpp"

namespace untax {
namespace {

using words::load;
using words::store;

void unpack(std::uint64_t where, wait_snapshot& to) noexcept {
  to.what = static_cast<verb>(where & 0xffU);
  to.peer = static_cast<std::int16_t>(where >> 8U & 0xffffU);
  to.room = static_cast<std::int32_t>(where >> 24U & 0xffffffffU);
}

ledger_entry& entry_of(control_block& block, int rank, std::uint64_t sequence) noexcept {
  return block.ranks[rank].ledger[sequence % ledger_entries];
}

}  // namespace

std::size_t control::bytes(int ranks) noexcept {
  return offsetof(control_block, ranks) + static_cast<std::size_t>(ranks) * sizeof(rank_block);
}

rank_status control::status(int rank) const noexcept {
  return static_cast<rank_status>(load(block_->ranks[rank].status));
}

void control::set_status(int rank, rank_status status) const noexcept {
  store(block_->ranks[rank].status, static_cast<std::uint64_t>(status));
}

long control::process(int rank) const noexcept {
  return static_cast<long>(load(block_->ranks[rank].process));
}

void control::set_process(int rank, long process) const noexcept {
  store(block_->ranks[rank].process, static_cast<std::uint64_t>(process));
}

void control::publish_wait(int rank, int slot, const wait_site& site, std::uint64_t seen,
                           std::uint64_t since) const noexcept {
  if (slot < 0 || slot >= wait_slots) return;
  wait_record& record = block_->ranks[rank].waits[slot];
  store(record.since, 0);
  store(record.where, packed_place(static_cast<std::uint8_t>(site.what), site.peer, site.room));
  store(record.expected, site.expected);
  store(record.seen, seen);
  store(block_->ranks[rank].progress[slot], site.progress);
  std::array<char, sizeof record.operator_name> name{};
  std::string_view(site.operator_name).copy(name.data(), name.size());
  words::store_text(record.operator_name, {name.data(), name.size()});
  store(record.since, since);
}

void control::update_wait(int rank, int slot, std::uint64_t seen) const noexcept {
  if (slot >= 0 && slot < wait_slots) store(block_->ranks[rank].waits[slot].seen, seen);
}

void control::clear_wait(int rank, int slot) const noexcept {
  if (slot >= 0 && slot < wait_slots) store(block_->ranks[rank].waits[slot].since, 0);
}

std::optional<wait_snapshot> control::wait_at(int rank, int slot) const {
  if (slot < 0 || slot >= wait_slots) return std::nullopt;
  const wait_record& record = block_->ranks[rank].waits[slot];
  wait_snapshot snapshot;
  snapshot.since = load(record.since);
  if (snapshot.since == 0) return std::nullopt;
  unpack(load(record.where), snapshot);
  snapshot.expected = load(record.expected);
  snapshot.seen = load(record.seen);
  snapshot.progress = load(block_->ranks[rank].progress[slot]);
  snapshot.operator_name = words::load_text(record.operator_name, sizeof record.operator_name);
  snapshot.operator_name.resize(
      std::min(snapshot.operator_name.find('\0'), snapshot.operator_name.size()));
  if (load(record.since) != snapshot.since) return std::nullopt;
  return snapshot;
}

bool control::stop(const stop_report& report) const noexcept {
  stop_block& block = block_->stop;
  std::uint64_t nobody = 0;
  const int reporter = report.reporter + 1;
  const int suspect = report.suspect + 1;
  if (!std::atomic_ref<std::uint64_t>(block.claim)
           .compare_exchange_strong(nobody, static_cast<std::uint64_t>(reporter),
                                    std::memory_order_acq_rel)) {
    return false;
  }
  store(block.code, static_cast<std::uint64_t>(report.code));
  store(block.suspect, static_cast<std::uint64_t>(suspect));
  store(block.length, words::store_text(block.text, report.text));
  store(block.flag, 1);
  return true;
}

bool control::stopped() const noexcept { return load(block_->stop.flag) != 0; }

std::optional<stop_report> control::report() const {
  if (!stopped()) return std::nullopt;
  const stop_block& block = block_->stop;
  return stop_report{static_cast<int>(load(block.claim)) - 1,
                     static_cast<int>(load(block.suspect)) - 1, static_cast<errc>(load(block.code)),
                     words::load_text(block.text, load(block.length))};
}

device_control control::kernel_view(int rank) const noexcept {
  rank_block& block = block_->ranks[rank];
  device_control view;
  view.rank = rank;
  view.ranks = ranks_;
  view.records = block.waits;
  view.progress = block.progress;
  view.host_stop = &block_->stop.flag;
  view.outcome = block.kernel_outcome;
  // The word of kernels that an interpreter carries out on the CPU; a GPU has a word of its own.
  view.stop = block.spare;
  view.stop_span = sizeof block;
  return view;
}

int control::kernel_gave_up(int rank) const noexcept {
  return static_cast<int>(load(block_->ranks[rank].kernel_outcome[0])) - 1;
}

bool control::kernel_stopped(int rank) const noexcept {
  return load(block_->ranks[rank].kernel_outcome[1]) != 0;
}

void control::post(int rank, const ledger_line& line) const noexcept {
  ledger_entry& entry = entry_of(*block_, rank, line.sequence);
  store(entry.sequence, 0);
  store(entry.chain, line.chain);
  store(entry.call, line.call);
  store(entry.length, words::store_text(entry.text, line.text));
  store(entry.sequence, line.sequence);
  store(block_->ranks[rank].posted, line.sequence);
}

std::uint64_t control::posted(int rank) const noexcept { return load(block_->ranks[rank].posted); }

std::optional<ledger_line> control::posted_at(int rank, std::uint64_t sequence) const {
  const ledger_entry& entry = entry_of(*block_, rank, sequence);
  if (load(entry.sequence) != sequence) return std::nullopt;
  ledger_line line{sequence, load(entry.chain), load(entry.call),
                   words::load_text(entry.text, load(entry.length))};
  if (load(entry.sequence) != sequence) return std::nullopt;
  return line;
}

void throw_failure(const control& world, int rank, wait_outcome outcome,
                   std::string_view operator_name) {
  if (outcome == wait_outcome::ok)
    throw error(errc::internal, fmt::format("rank {}: a wait that ended well failed", rank));
  const auto report = world.report();
  const std::string_view who = operator_name.empty() ? "the world" : operator_name;
  if (!report) {
    throw error(
        errc::aborted,
        fmt::format("rank {}: {} was stopped by a rank that ended before it gave the reason", rank,
                    who));
  }
  if (report->reporter == rank)
    throw error(report->code, fmt::format("rank {}: {}", rank, report->text));
  const bool shared = report->code == errc::peer_lost || report->code == errc::disagreement;
  throw error(shared ? report->code : errc::aborted,
              fmt::format("rank {}: {} stopped because rank {} reported: {}", rank, who,
                          report->reporter, report->text));
}

}  // namespace untax
