#pragma once

#include <cstdint>
#include <vector>

#include "engines/timing/machine.hpp"

namespace untax::timing {

/// A link, a port or a memory in one direction: bytes pass one transfer after the other.
struct lane {
  double rate = 0;   ///< bytes a second
  double free = 0;   ///< when the next transfer may begin
  double busy = 0;   ///< seconds in which the lane has carried bytes
  double bytes = 0;  ///< bytes that the lane has carried
  int rank = -1;     ///< the owner of the lane
  char what = ' ';   ///< see `name_of_lane`
};

[[nodiscard]] const char* name_of_lane(char what) noexcept;

/// The time when the sending worker is free again, and the time when the last byte is at the
/// receiver.
struct passage {
  double left = 0;
  double arrived = 0;
};

/// A booking of a lane, kept for tests.
struct booking {
  int lane = 0;
  double begin = 0;
  double end = 0;
  double bytes = 0;
  double asked = 0;  ///< when the transfer was ready
};

/// The links of a machine, as lanes that transfers book in the order in which they begin.
///
/// A lane carries one transfer at a time, at its full rate. So no two transfers share it, and its
/// rate is never exceeded. A transfer over several lanes uses them at the same time, each as soon
/// as it is free.
class network {
 public:
  network(const machine& m, int ranks);

  /// Sends bytes at `now`, no faster than `pace`. `reads`: the transfer is a get, by the receiver.
  passage send(int from, int to, double bytes, double pace, double now, bool reads = false);
  /// Copies within a rank, through its memory: each byte is read and written.
  passage copy(int rank, double bytes, double pace, double now);
  /// Seconds until another rank sees a store of a rank.
  [[nodiscard]] double flight(int from, int to) const;

  [[nodiscard]] const std::vector<lane>& lanes() const noexcept { return lanes_; }
  /// Keeps bookings from now on.
  void remember() { remembers_ = true; }
  [[nodiscard]] const std::vector<booking>& bookings() const noexcept { return bookings_; }

 private:
  enum class way : std::uint8_t { memory, link, host, cards };
  [[nodiscard]] way way_between(int from, int to) const;
  [[nodiscard]] int card_of(int rank) const;
  int add(double rate, int rank, char what);
  /// Books a lane; returns when it has carried the bytes.
  double book(int number, double bytes, double now, double rate_factor);

  const machine* m_;
  int ranks_;
  std::vector<lane> lanes_;
  std::vector<booking> bookings_;
  bool remembers_ = false;
  // The first lane of each kind; the lanes of ranks follow in rank order.
  int memory_ = -1;
  int out_ = -1;
  int in_ = -1;
  int host_out_ = -1;
  int host_in_ = -1;
  int bridge_ = -1;
  int card_out_ = -1;
  int card_in_ = -1;
};

}  // namespace untax::timing
