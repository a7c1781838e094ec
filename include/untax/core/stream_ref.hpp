#pragma once

struct CUstream_st;

namespace untax {

/// A CUDA stream, named without CUDA's headers: a cudaStream_t becomes one by itself. Empty where a
/// world has no streams, since its ranks are threads or processes of the host.
struct stream_ref {
  void* handle = nullptr;

  stream_ref() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a stream is passed as it is
  stream_ref(CUstream_st* stream) noexcept : handle(stream) {}
};

}  // namespace untax
