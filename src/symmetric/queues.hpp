#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <vector>

namespace untax {

/// The hardware queues of a GPU. CUDA assigns the streams of a process to them in the order of
/// creation, and the work in one queue runs in order. If ranks share a GPU, two streams in one
/// queue can deadlock: a kernel waits for one that is queued behind it.
inline constexpr int most_queues = 32;

/// The streams of ranks that share GPUs. None is ever destroyed: a stream that was given back is
/// the next one taken. So a device has no more streams than were in use at the same time, and each
/// has a queue of its own as long as there are enough queues.
class stream_pool {
 public:
  using handle = void*;
  /// Makes a stream of a device. May throw.
  using maker = std::function<handle(int device)>;

  explicit stream_pool(maker make) : make_(std::move(make)) {}

  [[nodiscard]] handle take(int device);
  void give_back(int device, handle stream) noexcept;
  /// The number of streams on a device, in use or not.
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

/// The number of streams that untax may have on a GPU that `ranks` ranks share. The caller of each
/// rank also has a stream, and the world has two.
[[nodiscard]] constexpr int most_streams(int ranks) noexcept { return most_queues - ranks - 2; }

/// The number of multiprocessors for a kernel of one of `ranks` ranks on a GPU, if it waits for
/// others. All blocks of all ranks have to run at the same time, and they come in pairs.
[[nodiscard]] constexpr int part_of_gpu(int processors, int ranks) noexcept {
  return ranks == 1 ? processors : processors / ranks / 2 * 2;
}

/// The number of blocks that such a kernel may have, if a multiprocessor holds `each` of them. If
/// ranks share a GPU, the blocks of a kernel go to different multiprocessors while any are free. A
/// block that takes all shared memory leaves no place for another one. So each block counts as a
/// multiprocessor.
[[nodiscard]] constexpr int most_blocks_at_once(int each, int part, int ranks) noexcept {
  return ranks == 1 ? each * part : part;
}

}  // namespace untax
