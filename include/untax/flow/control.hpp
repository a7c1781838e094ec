#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <untax/core/error.hpp>
#include <untax/flow/control_block.hpp>
#include <untax/flow/device_control.hpp>
#include <untax/flow/wait_site.hpp>

namespace untax {

/// The state of a rank, as the rank itself publishes it.
enum class rank_status : std::uint8_t {
  joining,
  running,
  finished,  ///< it left the world normally; all its signals were raised before
  failed,    ///< it left because of an error
};

/// A wait record as it was at one moment.
struct wait_snapshot {
  std::string operator_name;
  verb what = verb::wait_until;
  int peer = -1;
  int room = -1;
  std::uint64_t expected = 0;
  std::uint64_t seen = 0;
  std::uint64_t since = 0;
  std::uint64_t progress = 0;
};

/// Why the world was stopped.
struct stop_report {
  int reporter = -1;
  int suspect = -1;  ///< -1: no particular rank
  errc code = errc::internal;
  std::string text;  ///< the reason, without the name of the reporter
};

/// A collective call of a rank.
struct ledger_line {
  std::uint64_t sequence = 0;
  std::uint64_t chain = 0;  ///< hash over all calls of the rank up to this one
  std::uint64_t call = 0;   ///< hash over this call's whole text
  std::string text;         ///< cut after `longest_call` bytes

  static constexpr std::size_t longest_call = sizeof(ledger_entry::text);
};

/// Typed access to the control block of a world. It is a view that is copied freely and owns
/// nothing. Any rank may call any function at any time, and none blocks. The comment of a function
/// that writes names the rank whose data it writes.
class control {
 public:
  /// The size in bytes of the control block of `ranks` ranks.
  [[nodiscard]] static std::size_t bytes(int ranks) noexcept;
  control(std::byte* block, int ranks) noexcept
      : block_(reinterpret_cast<control_block*>(block)), ranks_(ranks) {}

  [[nodiscard]] int ranks() const noexcept { return ranks_; }

  /// The status of `rank`. Acquire.
  [[nodiscard]] rank_status status(int rank) const noexcept;
  /// Writes the status of `rank`. Release: a rank that sees the status sees every signal that the
  /// rank raised before.
  void set_status(int rank, rank_status status) const noexcept;
  /// The process id of `rank`; 0 in a world of threads.
  [[nodiscard]] long process(int rank) const noexcept;
  void set_process(int rank, long process) const noexcept;

  /// The counter at rank `at` of the barriers that `from` has entered. Only `from` raises it.
  [[nodiscard]] std::uint64_t& arrived(int at, int from) const noexcept {
    return block_->ranks[at].arrived[from];
  }

  /// The objects that `rank` has published as dropped for the barriers of a parity. Only `rank`
  /// writes it, before it enters the barrier; the others read it until they enter the next one.
  [[nodiscard]] drop_list& dropped(int rank, std::uint64_t parity) const noexcept {
    return block_->ranks[rank].dropped[parity];
  }

  /// Wait records of `rank`. A slot has one writer at a time; slots outside the table are ignored.
  void publish_wait(int rank, int slot, const wait_site& site, std::uint64_t seen,
                    std::uint64_t since) const noexcept;
  void update_wait(int rank, int slot, std::uint64_t seen) const noexcept;
  void clear_wait(int rank, int slot) const noexcept;
  /// The wait in a slot; nothing if there is none, or if it changed while it was read.
  [[nodiscard]] std::optional<wait_snapshot> wait_at(int rank, int slot) const;

  /// Stops the world. The first caller wins; false if another one was first. A text that does not
  /// fit the block is cut.
  bool stop(const stop_report& report) const noexcept;
  /// Whether the world was stopped. It costs one load.
  [[nodiscard]] bool stopped() const noexcept;
  /// The word that `stopped` loads: not 0 once the report can be read.
  [[nodiscard]] std::uint64_t& stop_flag() const noexcept { return block_->stop.flag; }
  /// The reason once the world is stopped; nothing before.
  [[nodiscard]] std::optional<stop_report> report() const;

  /// The state that the kernels of `rank` share with the host, at the host's addresses. The caller
  /// adds the fields of the device.
  [[nodiscard]] device_control kernel_view(int rank) const noexcept;
  /// The slot of the first wait of a kernel of `rank` that took too long, or -1. The slot may be
  /// outside the table.
  [[nodiscard]] int kernel_gave_up(int rank) const noexcept;
  /// Whether a wait of a kernel of `rank` ended because the world was stopped.
  [[nodiscard]] bool kernel_stopped(int rank) const noexcept;

  /// Writes the next entry of `rank` in its ledger of collective calls.
  void post(int rank, const ledger_line& line) const noexcept;
  /// The sequence number of the last entry of `rank`; 0 if there is none.
  [[nodiscard]] std::uint64_t posted(int rank) const noexcept;
  /// The entry of `rank` with this sequence number. Nothing if it does not exist yet or was
  /// overwritten.
  [[nodiscard]] std::optional<ledger_line> posted_at(int rank, std::uint64_t sequence) const;

 private:
  control_block* block_;
  int ranks_;
};

/// Throws the exception of this rank for a wait that did not end well. The rank that found the
/// error throws its cause. The others throw `aborted`, except that `peer_lost` and `disagreement`
/// keep their code everywhere.
[[noreturn]] void throw_failure(const control& world, int rank, wait_outcome outcome,
                                std::string_view operator_name = {});

}  // namespace untax
