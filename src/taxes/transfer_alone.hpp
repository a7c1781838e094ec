#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include <untax/symmetric/owned_symmetric.hpp>
#include <untax/world/world.hpp>

namespace untax {

/// Copies `bytes` bytes of one rank of the host to its peers, in equal parts, and nothing else.
class transfer_alone {
 public:
  transfer_alone(world& w, double bytes)
      : world_(&w.stable_view()),
        part_(w.size() > 1
                  ? static_cast<std::size_t>(bytes) / static_cast<std::size_t>(w.size() - 1)
                  : 0) {
    // Shards may differ between ranks, but allocations must not.
    landing_ = w.allocate_owned<std::byte>(
        most_of_all(part_) * static_cast<std::size_t>(w.size()) + 1, "transfers alone");
    source_.resize(part_);
  }

  void run() {
    for (int hop = 1; hop < world_->size(); ++hop) {
      const int peer = (world_->rank() + hop) % world_->size();
      if (part_ > 0)
        std::memcpy(landing_->at(peer, static_cast<std::size_t>(world_->rank()) * part_),
                    source_.data(), part_);
    }
    world_->barrier();
  }

 private:
  std::size_t most_of_all(std::size_t mine) {
    const auto size = static_cast<std::size_t>(world_->size());
    const auto parts = world_->allocate_owned<std::size_t>(size, "sizes of transfers");
    for (int peer = 0; peer < world_->size(); ++peer)
      *parts->at(peer, static_cast<std::size_t>(world_->rank())) = mine;
    world_->barrier();
    const std::size_t most = *std::max_element(parts->local(), parts->local() + size);
    return most;
  }

  world* world_;
  std::size_t part_;
  owned_symmetric<std::byte> landing_;
  std::vector<std::byte> source_;
};

}  // namespace untax
