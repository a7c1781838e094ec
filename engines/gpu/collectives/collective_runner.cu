#include "engines/gpu/collectives/collective_runner.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/gpu/channel/run_arguments.hpp"
#include "engines/gpu/launch/common_end.hpp"
#include "engines/gpu/launch/this_gpu.hpp"
#include "engines/gpu/rooms/operator_host.hpp"
#include "src/symmetric/cuda/stream.hpp"
#include "src/symmetric/queues.hpp"

namespace untax::gpu {

class collective_runner::launcher {
 public:
  launcher(world& w, const std::string& name, collective_kernel code, room_pool* rooms)
      : end_(w), code_(std::move(code)), host_(w, name, {.own = true}) {
    host_.launcher().prepare(code_.kernel, code_.shared_bytes);
    require_room();
    const auto blocks =
        static_cast<std::size_t>(std::accumulate(code_.blocks.begin(), code_.blocks.end(), 0));
    run_ = host_.allocate({.element_bytes = code_.element_bytes,
                           .threads = code_.threads,
                           .inbox = {{code_.inbox_bytes, code_.content}},
                           .counters = static_cast<std::size_t>(std::max(code_.counters, 0))},
                          rooms);
    epochs_ = host_.launcher().symmetric_memory<std::uint64_t>(blocks, "epochs").local();
    run_.launch = -1;
    host_.launcher().dry_run([&](cudaStream_t on) { launch(1, on); });
  }

  void set_argument(kernel_argument&& first) { code_.first_argument = std::move(first); }

  void run(const void* in, void* out, std::int64_t between, stream_ref stream) {
    host_.run(stream, [&](whole_run& run, cudaStream_t on) {
      run_.in = static_cast<const std::byte*>(in);
      run_.out = static_cast<std::byte*>(out);
      run_.between = between;
      run_.epochs = epochs_;
      for (std::size_t i = 0; i < code_.blocks.size(); ++i) {
        run_.launch = static_cast<int>(i);
        run([&] { launch(code_.blocks[i], on); });
        run_.epochs += code_.blocks[i];
      }
    });
  }

 private:
  /// Blocks wait for blocks of peers, so all blocks of a launch must be resident at once.
  void require_room() const {
    int each = 0;
    const world& w = host_.launcher().ranks();
    host_.launcher().require(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                                 &each, code_.kernel, code_.threads, code_.shared_bytes),
                             "cannot ask for the number of blocks");
    const int asked = *std::max_element(code_.blocks.begin(), code_.blocks.end());
    const int most = most_blocks_at_once(each, num_sms_of(w), w.ranks_per_gpu());
    if (asked <= most) return;
    throw error(errc::invalid_argument,
                fmt::format("rank {}: {}: {} blocks of {} threads; this GPU holds {} at once{}, "
                            "option workers has to be smaller",
                            w.rank(), host_.launcher().name(), asked, code_.threads, most,
                            w.ranks_per_gpu() > 1 ? " for each rank that shares it" : ""));
  }

  void launch(int blocks, cudaStream_t stream) {
    void* arguments[] = {code_.first_argument.data(), &run_};
    host_.launcher().launch({.kernel = code_.kernel,
                             .blocks = blocks,
                             .threads = code_.threads,
                             .shared_bytes = code_.shared_bytes,
                             .early = code_.early},
                            stream, arguments);
  }

  common_end end_;
  collective_kernel code_;
  run_arguments run_;
  std::uint64_t* epochs_ = nullptr;  // per block, in launch order
  operator_host host_;
};

collective_runner::collective_runner(world& w, const std::string& name, collective_kernel&& code,
                                     room_pool* rooms) {
  // The device is set first, since the launcher begins by creating its stream.
  w.use_device();
  launcher_ = std::make_unique<launcher>(w, name, std::move(code), rooms);
}
collective_runner::~collective_runner() = default;

void collective_runner::set_argument(kernel_argument&& first) {
  launcher_->set_argument(std::move(first));
}

bool collective_runner::captures(stream_ref stream) const {
  return gpu::captures(static_cast<cudaStream_t>(stream.handle));
}

void collective_runner::run(const void* in, void* out, std::int64_t between, stream_ref stream) {
  launcher_->run(in, out, between, stream);
}

}  // namespace untax::gpu
