#include "engines/bulk/slab_gather.hpp"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "engines/bulk/quickest.hpp"
#include "engines/bulk/scratch.hpp"

namespace untax::bulk {

std::shared_ptr<communicator> communicator_of(world& w) {
  static std::mutex mutex;
  static std::map<const control*, std::weak_ptr<communicator>> all;
  {
    const std::scoped_lock lock(mutex);
    if (auto known = all[&w.state()].lock()) return known;
  }
  // Ranks of one process construct their communicators together, so no rank may hold the lock
  // meanwhile.
  auto result = std::make_shared<communicator>(w);
  const std::scoped_lock lock(mutex);
  all[&w.state()] = result;
  return result;
}

slab_gather::slab_gather(world& w, const sharding& bytes, const std::optional<sharding>& uneven)
    : shards_(uneven.value_or(bytes)), rank_(w.rank()) {
  if (w.size() > 1) {
    ranks_ = communicator_of(w);
    const scratch in(static_cast<std::size_t>(own().size));
    const scratch out(static_cast<std::size_t>(this->bytes()));
    w.barrier();
    const std::vector<way> ways =
        equal() ? std::vector{way::all_gather} : std::vector{way::padded, way::broadcasts};
    const std::vector<double> seconds = longest_of_ranks(
        w, seconds_of(static_cast<int>(ways.size()), [&](int i, int /*round*/, stream_ref stream) {
          run(ways[static_cast<std::size_t>(i)], in.data(), out.data(), stream);
        }));
    if (!equal()) uneven_ = ways[static_cast<std::size_t>(least_of(seconds))];
  }
  shards_ = bytes;
}

void slab_gather::run(way how, const void* in, void* out, stream_ref stream) const {
  auto* target = static_cast<std::byte*>(out);
  if (how == way::broadcasts) {
    ranks_->gather_shards(in, out, shards_, stream);
    return;
  }
  std::byte* place = target + own_at();
  if (how == way::padded && in != place) {
    copy_bytes(place, in, static_cast<std::size_t>(own().size), stream);
    in = place;
  }
  ranks_->all_gather(in, out, shards_.full() / 2, dtype::f16, stream);
}

void slab_gather::run(const void* in, void* out, stream_ref stream) const {
  if (ranks_) return run(now(), in, out, stream);
  if (in != out) copy_bytes(out, in, static_cast<std::size_t>(own().size), stream);
}

std::string slab_gather::text() const {
  if (!ranks_) return "nothing to gather";
  constexpr const char* names[] = {"one all-gather", "one all-gather of padded slabs",
                                   "a broadcast of each slab"};
  return std::string(names[static_cast<int>(now())]) + " by " + nccl().text;
}

}  // namespace untax::bulk
