#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <vector>

namespace untax {

/// Queues of a GPU: CUDA deals the streams of a process to them in the order in which the streams
/// are made, and what is in one queue runs in order. So where ranks share a GPU, two streams in one
/// queue may stop each other for ever: a kernel waits for a peer whose kernel is queued behind it.
inline constexpr int most_queues = 32;

/// Streams of the ranks that share GPUs. None is ever destroyed: one that is given back is the next
/// that is taken, so that there are never more than were in use at the same time, and all have a
/// queue for themselves as long as these are few enough.
class stream_pool {
 public:
  using handle = void*;
  /// Makes a stream of a device. May throw.
  using maker = std::function<handle(int device)>;

  explicit stream_pool(maker make) : make_(std::move(make)) {}

  [[nodiscard]] handle take(int device);
  void give_back(int device, handle stream) noexcept;
  /// How many there are on a device, in use or not.
  [[nodiscard]] int made(int device) const;

 private:
  struct seats {
    std::vector<handle> all;
    std::vector<handle> free;
  };

  maker make_;
  mutable std::mutex mutex_;
  std::map<int, seats> devices_;
};

/// How many streams untax may have on a GPU that `ranks` share: each rank's caller has one, and the
/// world two.
[[nodiscard]] constexpr int most_streams(int ranks) noexcept { return most_queues - ranks - 2; }

/// The multiprocessors that a kernel of one of the ranks of a GPU may take, if it waits for others.
/// All blocks of all ranks have to run at the same time, and they come in pairs.
[[nodiscard]] constexpr int part_of_gpu(int processors, int ranks) noexcept {
  return ranks == 1 ? processors : processors / ranks / 2 * 2;
}

/// How many blocks such a kernel may have, if a multiprocessor holds `each` of them. Where ranks
/// share a GPU, blocks of a kernel are put on different multiprocessors as long as there are free
/// ones, and next to what takes all shared memory none has a place: so a block counts as a
/// multiprocessor.
[[nodiscard]] constexpr int most_blocks_at_once(int each, int part, int ranks) noexcept {
  return ranks == 1 ? each * part : part;
}

}  // namespace untax
