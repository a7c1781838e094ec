#pragma once

#include <barrier>
#include <thread>
#include <vector>

#include <untax/rma/group.hpp>

namespace rma_test {

/// A group of several threads, as a block of a GPU is one.
class team_member {
 public:
  using memory = untax::host_memory;

  team_member(int rank, int size, std::barrier<>& meeting)
      : rank_(rank), size_(size), meeting_(&meeting) {}

  [[nodiscard]] int thread_rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  void sync() const { meeting_->arrive_and_wait(); }

 private:
  int rank_;
  int size_;
  std::barrier<>* meeting_;
};

static_assert(untax::thread_group<team_member>);

/// Calls `body(member)` on each of `size` threads.
template <class Body>
void run_team(int size, const Body& body) {
  std::barrier<> meeting(size);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&body, &meeting, rank, size] { body(team_member(rank, size, meeting)); });
  }
}

}  // namespace rma_test
