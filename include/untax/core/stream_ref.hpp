#pragma once

struct CUstream_st;

namespace untax {

/// A CUDA stream, named without CUDA's headers; a cudaStream_t converts to it implicitly. In worlds
/// of the host, which have no streams, it has to be empty: operators throw `unsupported` for any
/// other. In a world of GPUs an empty stream makes a run blocking: the run starts after the work in
/// the default stream, and returns when its result is complete. A caller that wants to launch on
/// the default stream passes cudaStreamLegacy.
struct stream_ref {
  void* handle = nullptr;

  stream_ref() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a stream is passed as it is
  stream_ref(CUstream_st* stream) noexcept : handle(stream) {}
};

}  // namespace untax
