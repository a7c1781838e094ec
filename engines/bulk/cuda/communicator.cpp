#include "engines/bulk/communicator.hpp"

#include <cuda_runtime_api.h>

#include <cstring>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/bulk/cuda/nccl_library.hpp"
#include "engines/bulk/scratch.hpp"

namespace untax::bulk {
namespace {

availability look() {
  const nccl_library& library = nccl_library::get();
  if (!library.why_not.empty()) return {false, library.why_not};
  int version = 0;
  (void)library.get_version(&version);
  return {true, fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100)};
}

void require(const world& w, ncclResult_t result, std::string_view call) {
  if (result == ncclSuccess) return;
  throw error(errc::internal, fmt::format("rank {}: {}: {}", w.rank(), call,
                                          nccl_library::get().error_string(result)));
}

ncclDataType_t type_of(dtype type) noexcept {
  switch (type) {
    case dtype::f32:
      return ncclFloat32;
    case dtype::f16:
      return ncclFloat16;
    case dtype::bf16:
      return ncclBfloat16;
  }
  return ncclFloat32;
}

ncclRedOp_t operation_of(reduction how) noexcept {
  switch (how) {
    case reduction::sum:
      return ncclSum;
    case reduction::max:
      return ncclMax;
    case reduction::min:
      return ncclMin;
  }
  return ncclSum;
}

cudaStream_t stream_of(stream_ref stream) noexcept {
  return static_cast<cudaStream_t>(stream.handle);
}

/// The communicator's id. Rank 0 makes it and puts it to every rank through the symmetric heap.
ncclUniqueId shared_id(world& w) {
  ncclUniqueId id{};
  const auto box = w.allocate_owned<std::byte>(sizeof id, "NCCL's id");
  // NCCL may be missing or fail at rank 0 only. The other ranks have to learn that at the barrier.
  if (w.rank() == 0) {
    require(w, nccl_library::get().get_unique_id(&id), "ncclGetUniqueId");
    for (int peer = 0; peer < w.size(); ++peer) copy_and_wait(box->at(peer), &id, sizeof id);
  }
  w.barrier();
  copy_and_wait(&id, box->local(), sizeof id);
  return id;
}

}  // namespace

const availability& nccl() {
  static const availability result = look();
  return result;
}

struct communicator::connection {
  explicit connection(world& w) : owner(&w.stable_view()) {
    if (!nccl().there) throw error(errc::unsupported, "the bulk engine needs NCCL: " + nccl().text);
    const ncclUniqueId id = shared_id(w);
    require(w, library.init_rank(&handle, w.size(), id, w.rank()), "ncclCommInitRank");
  }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;
  ~connection() { (void)library.destroy(handle); }

  world* owner;
  const nccl_library& library = nccl_library::get();
  ncclComm_t handle = nullptr;
};

communicator::communicator(world& w) {
  if (w.ranks_per_gpu() > 1) {
    throw error(errc::unsupported,
                fmt::format("rank {}: NCCL needs a GPU for each rank; here {} ranks share one",
                            w.rank(), w.ranks_per_gpu()));
  }
  connection_ = std::make_unique<connection>(w);
}
communicator::communicator(communicator&&) noexcept = default;
communicator& communicator::operator=(communicator&&) noexcept = default;
communicator::~communicator() = default;

void communicator::all_gather(const void* in, void* out, std::int64_t shard, dtype type,
                              stream_ref stream) {
  const connection& c = *connection_;
  require(*c.owner,
          c.library.all_gather(in, out, static_cast<std::size_t>(shard), type_of(type), c.handle,
                               stream_of(stream)),
          "ncclAllGather");
}

void communicator::reduce_scatter(const void* in, void* out, std::int64_t shard, dtype type,
                                  reduction how, stream_ref stream) {
  const connection& c = *connection_;
  require(*c.owner,
          c.library.reduce_scatter(in, out, static_cast<std::size_t>(shard), type_of(type),
                                   operation_of(how), c.handle, stream_of(stream)),
          "ncclReduceScatter");
}

void communicator::all_reduce(const void* in, void* out, std::int64_t count, dtype type,
                              reduction how, stream_ref stream) {
  const connection& c = *connection_;
  require(*c.owner,
          c.library.all_reduce(in, out, static_cast<std::size_t>(count), type_of(type),
                               operation_of(how), c.handle, stream_of(stream)),
          "ncclAllReduce");
}

void communicator::all_to_all(const void* in, void* out, std::int64_t part, dtype type,
                              stream_ref stream) {
  const connection& c = *connection_;
  const std::size_t bytes = static_cast<std::size_t>(part) * size_of(type);
  require(*c.owner, c.library.group_start(), "ncclGroupStart");
  for (int peer = 0; peer < c.owner->size(); ++peer) {
    const std::size_t at = static_cast<std::size_t>(peer) * bytes;
    require(*c.owner,
            c.library.send(static_cast<const std::byte*>(in) + at, bytes, ncclUint8, peer, c.handle,
                           stream_of(stream)),
            "ncclSend");
    require(*c.owner,
            c.library.receive(static_cast<std::byte*>(out) + at, bytes, ncclUint8, peer, c.handle,
                              stream_of(stream)),
            "ncclRecv");
  }
  require(*c.owner, c.library.group_end(), "ncclGroupEnd");
}

void communicator::gather_shards(const void* in, void* out, const sharding& bytes,
                                 stream_ref stream) {
  const connection& c = *connection_;
  require(*c.owner, c.library.group_start(), "ncclGroupStart");
  for (int root = 0; root < bytes.parts; ++root) {
    const range shard = bytes.of(root);
    if (shard.empty()) continue;
    // Each call reads `in` at its root only.
    require(*c.owner,
            c.library.broadcast(in, static_cast<std::byte*>(out) + root * bytes.full(),
                                static_cast<std::size_t>(shard.size), ncclUint8, root, c.handle,
                                stream_of(stream)),
            "ncclBroadcast");
  }
  require(*c.owner, c.library.group_end(), "ncclGroupEnd");
}

void communicator::broadcast(const void* in, void* out, std::int64_t count, dtype type, int root,
                             stream_ref stream) {
  const connection& c = *connection_;
  require(*c.owner,
          c.library.broadcast(in, out, static_cast<std::size_t>(count), type_of(type), root,
                              c.handle, stream_of(stream)),
          "ncclBroadcast");
}

void* communicator::handle() const noexcept { return connection_->handle; }

}  // namespace untax::bulk
