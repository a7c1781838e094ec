#include "engines/bulk/communicator.hpp"

namespace untax::bulk {
namespace {

[[noreturn]] void refuse_nccl() {
  throw error(errc::unsupported, "the bulk engine needs NCCL: " + nccl().text);
}

}  // namespace

const availability& nccl() {
  static const availability missing{
      false,
      "this program was built without it; install CUDA and NCCL's nccl.h, and configure "
      "with -DUNTAX_CUDA=ON"};
  return missing;
}

struct communicator::connection {};

communicator::communicator(world& /*w*/) { refuse_nccl(); }
communicator::communicator(communicator&&) noexcept = default;
communicator& communicator::operator=(communicator&&) noexcept = default;
communicator::~communicator() = default;

void communicator::all_gather(const void* /*in*/, void* /*out*/, std::int64_t /*shard*/,
                              dtype /*type*/, stream_ref /*stream*/) {
  refuse_nccl();
}
void communicator::reduce_scatter(const void* /*in*/, void* /*out*/, std::int64_t /*shard*/,
                                  dtype /*type*/, reduction /*how*/, stream_ref /*stream*/) {
  refuse_nccl();
}
void communicator::all_reduce(const void* /*in*/, void* /*out*/, std::int64_t /*count*/,
                              dtype /*type*/, reduction /*how*/, stream_ref /*stream*/) {
  refuse_nccl();
}
void communicator::all_to_all(const void* /*in*/, void* /*out*/, std::int64_t /*part*/,
                              dtype /*type*/, stream_ref /*stream*/) {
  refuse_nccl();
}
void communicator::gather_shards(const void* /*in*/, void* /*out*/, const sharding& /*bytes*/,
                                 stream_ref /*stream*/) {
  refuse_nccl();
}
void* communicator::handle() const noexcept { return nullptr; }
void communicator::broadcast(const void* /*in*/, void* /*out*/, std::int64_t /*count*/,
                             dtype /*type*/, int /*root*/, stream_ref /*stream*/) {
  refuse_nccl();
}

}  // namespace untax::bulk
