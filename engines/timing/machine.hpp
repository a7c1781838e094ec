#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace untax::timing {

/// The connection between the GPUs of a host.
enum class link_kind : std::uint8_t {
  nvswitch,  ///< every GPU has one port, and a switch connects all ports
  ring,      ///< a link to each of two neighbours
  pairs,     ///< 0 and 1, 2 and 3, ... have links; others go through the host
  host,      ///< all transfers go through the host
};

/// The speed of a machine. Times are in seconds, rates in units a second, of one GPU.
struct machine_numbers {
  double processors = 0;     ///< multiprocessors
  double hertz = 0;          ///< clock rate of multiprocessors that multiply
  double flops = 0;          ///< FLOP/s that a large GEMM reaches
  double memory_rate = 0;    ///< bytes read a second
  double launch_eager = 0;   ///< between two kernels that a host launches
  double launch_graph = 0;   ///< between two kernels of a graph
  double start = 0;          ///< from the end of a run in a graph to the first work of the next
  double link_rate = 0;      ///< bytes a second out of a GPU, and as many into it
  double read_rate = 0;      ///< as `link_rate` for gets, in which the receiver reads
  double block_rate = 0;     ///< bytes a second that one block (CTA) moves
  double store = 0;          ///< until a peer sees a store that carries its own flag
  double release = 0;        ///< extra time of a signal that is released after data
  double look = 0;           ///< from a signal's arrival until its waiter proceeds
  double copy_start = 0;     ///< until a copy engine begins
  double library_start = 0;  ///< start-up of a library's collective
  double library_hop = 0;    ///< each further hop of the collective's ring
  double library_run = 0;    ///< time in which a host launches a collective and a GEMM of libraries
  double host_rate = 0;      ///< bytes a second through the host, one way
  double host_store = 0;     ///< as `store`, through the host
  double card_rate = 0;      ///< bytes a second of a network card, one way
  double card_store = 0;     ///< as `store`, between hosts
  double jitter = 0;         ///< the most time by which ranks begin apart
};

/// Describes a member of `machine_numbers`, as files and tables show it.
struct number_kind {
  double machine_numbers::*value;
  std::string_view key;
  std::string_view unit;
  double least;
  double most;
  std::string_view meaning;
};
extern const std::array<number_kind, 22> number_kinds;

/// A machine, as in `machines/*.json`.
struct machine {
  std::string name;    ///< "8 x H200"
  std::string device;  ///< "NVIDIA H200"
  /// Whether its numbers come from times of untax on this kind of machine.
  bool measured = false;
  /// Whether the ranks are cores of one host, not GPUs. No plan of kernels is predicted for such a
  /// machine.
  bool cores = false;
  int gpus = 1;           ///< GPUs of all hosts, or cores
  int gpus_of_host = 1;   ///< GPUs that reach each other without a network
  int cards_of_host = 0;  ///< network cards
  link_kind links = link_kind::nvswitch;
  std::string calibration;  ///< the name of a file beside this one, "" if there is none
  std::string judgement;    ///< the name of a file with the errors of predicted times
  machine_numbers numbers;
  /// Sources of numbers, by key of `number_kinds`: measured here (and the file), a data sheet, a
  /// paper.
  std::map<std::string, std::string, std::less<>> sources;

  /// "8 x H200", with "(nobody measured this machine)" if that is so.
  [[nodiscard]] std::string title() const;
  /// The least seconds in which a rank can send `bytes` to the others, in equal parts.
  [[nodiscard]] double seconds_to_send(double bytes, int ranks) const noexcept;
};

[[nodiscard]] std::string_view name_of(link_kind kind) noexcept;

/// Reads a description. Throws `invalid_argument` that names `origin`, the field, its value and the
/// right values.
[[nodiscard]] machine parse_machine(std::string_view text, const std::string& origin);
/// As above, from a file.
[[nodiscard]] machine load_machine(const std::string& path);
/// The text that `parse_machine` reads.
[[nodiscard]] std::string to_json(const machine& m);

}  // namespace untax::timing
