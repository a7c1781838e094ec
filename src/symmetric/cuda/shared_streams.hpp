#pragma once

#include <cuda_runtime_api.h>

#include <memory>

namespace untax::gpu {

/// The use of a stream. A rank that shares a GPU has one stream for each use, which all its
/// operators share.
enum class stream_use : int {
  own,   ///< of an operator, if the caller passes no stream
  side,  ///< for work beside a caller's stream
  kinds,
};

/// Makes `stream_for` give each rank its own streams from now on, since ranks share GPUs.
/// `world::local_gpus` calls this.
void share_streams() noexcept;
/// A stream of the current device. It is a new one or, if ranks share GPUs, the one of the calling
/// thread (a rank) for this use. Throws `internal` if none can be created.
[[nodiscard]] std::shared_ptr<CUstream_st> stream_for(stream_use use);
/// The number of streams for ranks that share `device`.
[[nodiscard]] int shared_streams(int device);

}  // namespace untax::gpu
