#include "dropped_objects.hpp"

#include <algorithm>
#include <iterator>
#include <new>

#include <untax/core/process_owned.hpp>
#include <untax/memory/host_memory.hpp>

namespace untax {
namespace {

// The barrier orders these accesses. They are atomic since the control block is shared by
// processes.
std::uint64_t read(std::uint64_t& word) noexcept {
  return host_memory::ref(word).load(std::memory_order_relaxed);
}
void write(std::uint64_t& word, std::uint64_t value) noexcept {
  host_memory::ref(word).store(value, std::memory_order_relaxed);
}

}  // namespace

void dropped_objects::add(std::uint64_t number, std::shared_ptr<void> object) {
  const std::scoped_lock lock(mutex_);
  objects_.emplace(number, std::move(object));
}

std::vector<std::uint64_t> dropped_objects::numbers() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::uint64_t> known;
  for (const auto& entry : objects_) {
    if (entry.first != 0) known.push_back(entry.first);
  }
  return known;
}

void dropped_objects::end(std::span<const std::uint64_t> numbers) {
  std::vector<std::shared_ptr<void>> ended;
  {
    const std::scoped_lock lock(mutex_);
    const auto move_out = [&](std::uint64_t number) {
      const auto [begin, end] = objects_.equal_range(number);
      for (auto at = begin; at != end; ++at) ended.push_back(std::move(at->second));
      objects_.erase(begin, end);
    };
    for (const std::uint64_t number : numbers) move_out(number);
    move_out(0);
  }
  for (std::shared_ptr<void>& object : ended) object.reset();
}

void dropped_objects::end_all() noexcept {
  decltype(objects_) ended;
  {
    const std::scoped_lock lock(mutex_);
    ended.swap(objects_);
  }
  while (!ended.empty()) ended.erase(std::prev(ended.end()));
}

void dropped_objects::leave_all_behind() noexcept {
  // No lock is taken: a thread that does not exist in the child may hold it.
  leave_behind(new (std::nothrow) decltype(objects_)(std::move(objects_)));
}

void drop_agreement::publish(std::span<const std::uint64_t> mine, std::size_t first) {
  // Peers that still read the list of the previous barrier read the other parity.
  drop_list& list = world_.dropped(rank_, ++barriers_ % 2);
  write(list.total, mine.size());
  const std::size_t end = std::min<std::size_t>(mine.size(), first + drops_a_barrier);
  for (std::size_t i = first; i < end; ++i) write(list.numbers[i - first], mine[i]);
}

std::vector<std::uint64_t> drop_agreement::common(std::vector<std::uint64_t> mine,
                                                  const std::function<void()>& arrive) {
  const auto ranks = static_cast<std::size_t>(world_.ranks());
  std::vector<std::vector<std::uint64_t>> lists;
  for (std::size_t first = 0;; first += drops_a_barrier) {
    publish(mine, first);
    arrive();
    if (mine.empty()) return {};
    lists.resize(ranks);
    std::size_t longest = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      drop_list& list = world_.dropped(static_cast<int>(rank), barriers_ % 2);
      const std::size_t total = read(list.total);
      if (total == 0) return {};
      longest = std::max(longest, total);
      const std::size_t end = std::min<std::size_t>(total, first + drops_a_barrier);
      for (std::size_t i = first; i < end; ++i)
        lists[rank].push_back(read(list.numbers[i - first]));
    }
    if (longest <= first + drops_a_barrier) break;
  }
  for (const auto& list : lists) {
    std::vector<std::uint64_t> both;
    std::set_intersection(mine.begin(), mine.end(), list.begin(), list.end(),
                          std::back_inserter(both));
    mine = std::move(both);
  }
  return mine;
}

}  // namespace untax
