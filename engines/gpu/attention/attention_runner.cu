#include "engines/gpu/attention/attention_runner.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/rma/packet.cuh>

#include "engines/gpu/attention/combine.hpp"
#include "engines/gpu/attention/variants/variants.hpp"
#include "engines/gpu/launch/num_sms.hpp"
#include "engines/gpu/launch/whole_run.hpp"
#include "src/symmetric/cuda/driver.hpp"
#include "src/symmetric/cuda/launching.hpp"
#include "src/symmetric/cuda/stream.hpp"

namespace untax::gpu {
namespace {

attention_kernel kernel_for(const attention_shape& shape) {
  switch (shape.head_dim) {
    case 64:
      return attention_of_width_64(shape.type, shape.page_size > 0);
    case 128:
      return attention_of_width_128(shape.type, shape.page_size > 0);
    default:
      return attention_of_width_256(shape.type, shape.page_size > 0);
  }
}

}  // namespace

class attention_runner::launcher {
 public:
  launcher(world& w, const std::string& name, const attention_shape& shape, attention_sink sink,
           int blocks)
      : world_(&w.stable_view()), name_(name), kernel_(kernel_for(check(shape))), blocks_(blocks) {
    load();
    // Blocks send to blocks of other ranks, by number.
    world_->note(name_, fmt::format("blocks {}, sink {}", blocks_, static_cast<int>(sink)));
    a_.shape = shape;
    a_.sink = sink;
    a_.ranks = w.size();
    a_.rank = w.rank();
    a_.run.world = world_->device_state();
    a_.run.name_size = static_cast<int>(std::min(name.size(), sizeof a_.run.name));
    std::memcpy(a_.run.name, name.data(), static_cast<std::size_t>(a_.run.name_size));
    allocate();
    a_.run.launch = -1;
    launch(kernel_.function, blocks_, threads(), kernel_.shared_bytes, own_.get());
    launch(combine_kernel(shape.type, shape.partials), 1, combine_threads, 0, own_.get());
    launch(exchange_kernel(shape.type, shape.partials), 1, combine_threads, 0, own_.get());
    require(cudaStreamSynchronize(own_.get()), "cannot run its kernels");
    a_.run.launch = 0;
  }
  launcher(const launcher&) = delete;
  launcher& operator=(const launcher&) = delete;
  ~launcher() {
    try {
      world_->use_device();
      if (ends_with_others(*world_)) {
        world_->barrier();
        return;
      }
    } catch (const error&) {
      // A stopped world has no meetings; its memory goes with it.
    }
    inbox_.abandon();
    epochs_.abandon();
    scratch_.abandon();
  }

  [[nodiscard]] stream_ref own_stream() const { return {own_.get()}; }
  void finish() {
    require(cudaStreamSynchronize(own_.get()), "a kernel failed");
    world_->check();
  }

  void attend(const attention_operands& operands, stream_ref stream) {
    world_->check();
    auto* const on = static_cast<cudaStream_t>(stream.handle);
    require_no_graph(*world_, on);
    a_.memory = operands;
    a_.run.epochs = epochs_->local();
    whole_run all(*world_);
    all([&] { launch(kernel_.function, blocks_, threads(), kernel_.shared_bytes, on, true); });
    if (a_.sink != attention_sink::outbox) return;
    // Not before: what waits for blocks of attention may not take a place that they need.
    a_.run.epochs = epochs_->local(static_cast<std::size_t>(blocks_));
    all([&] {
      launch(exchange_kernel(a_.shape.type, a_.shape.partials), blocks_, combine_threads, 0, on,
             true);
    });
  }

  void combine(const attention_operands& operands, stream_ref stream) {
    a_.memory = operands;
    attention_arguments all = a_;
    all.rows = gathered_;
    const auto warps = static_cast<std::int64_t>(combine_threads / 32);
    const std::int64_t wanted = (a_.shape.rows() + warps - 1) / warps;
    launch_with(all, combine_kernel(a_.shape.type, a_.shape.partials),
                static_cast<int>(std::min<std::int64_t>(wanted, 4 * blocks_)), combine_threads, 0,
                static_cast<cudaStream_t>(stream.handle));
  }
  [[nodiscard]] std::uint32_t* gathered() const noexcept { return gathered_; }
  [[nodiscard]] int blocks() const noexcept { return blocks_; }

 private:
  void require(cudaError_t result, const char* what) const {
    gpu::require(result, fmt::format("rank {}: {}: {}", world_->rank(), name_, what));
  }
  [[nodiscard]] const attention_shape& check(const attention_shape& shape) const {
    std::string why;
    if (world_->size() > most_attention_ranks)
      why = fmt::format("goes to {} ranks at most, not {}", most_attention_ranks, world_->size());
    if (!has_kernel_for(shape.head_dim)) {
      why = fmt::format("has kernels for heads of 64, 128 and 256 elements, not for {}",
                        shape.head_dim);
    }
    if (shape.group > most_heads_of_group) {
      why = fmt::format("takes {} heads of the queries for each of the keys at most, not {}",
                        most_heads_of_group, shape.group);
    }
    if (static_cast<std::int64_t>(shape.items()) *
            (ceil_div<std::int64_t>(shape.keys, 16) + end_tiles) >=
        std::int64_t{1} << 31U)
      why = fmt::format("takes 2^31 tiles of 16 keys at most, not {} of {} keys", shape.items(),
                        shape.keys);
    if (shape.type == dtype::f32) why = "takes fp16 and bf16, not fp32";
    if (!why.empty()) {
      throw error(errc::unsupported,
                  fmt::format("rank {}: {}: on GPUs it {}", world_->rank(), name_, why));
    }
    return shape;
  }

  void load() {
    require(cudaFuncSetAttribute(kernel_.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(kernel_.shared_bytes)),
            "there is not enough shared memory");
    require_queues(*world_);
    const int num_sms = num_sms_of(*world_);
    if (blocks_ == 0) blocks_ = num_sms;
    // Blocks wait for blocks of peers, so all of them have to run at the same time.
    if (blocks_ <= num_sms) return;
    throw error(errc::invalid_argument,
                fmt::format("rank {}: {}: {} blocks are asked for; this GPU holds {} at once, "
                            "option workers has to be smaller",
                            world_->rank(), name_, blocks_, num_sms));
  }

  void allocate() {
    const attention_shape& shape = a_.shape;
    const auto blocks = static_cast<std::size_t>(blocks_);
    const bool follows = a_.sink == attention_sink::outbox;
    const auto room = attention_room::of(shape, a_.ranks, blocks_, a_.receives(), follows);
    inbox_ =
        world_->allocate_owned_cleared<std::byte>(room.inbox * sizeof(packet), name_ + " inbox");
    a_.run.inbox = inbox_.get();
    epochs_ = world_->allocate_owned_cleared<std::uint64_t>(2 * blocks, name_ + " epochs");
    const std::size_t parts[] = {room.parts * sizeof(packet), room.outbox * sizeof(packet),
                                 room.rows * sizeof(std::uint32_t)};
    std::size_t all = 0;
    for (const std::size_t part : parts) all += aligned(part);
    scratch_ = world_->allocate_owned_cleared<std::byte>(all, name_ + " scratch");
    std::byte* next = scratch_->local();
    const auto take = [&](std::size_t i) {
      std::byte* const at = next;
      next += aligned(parts[i]);
      return static_cast<void*>(at);
    };
    a_.parts = static_cast<packet*>(take(0));
    a_.outbox = static_cast<packet*>(take(1));
    gathered_ = static_cast<std::uint32_t*>(take(2));
    a_.rows = gathered_ + static_cast<std::int64_t>(a_.rank) * shape.rows() * shape.words();
  }
  [[nodiscard]] static std::size_t aligned(std::size_t bytes) {
    return round_up<std::size_t>(bytes, 256);
  }

  /// Of the kernel of attention: few where another one needs a place beside it.
  [[nodiscard]] int threads() const noexcept {
    return a_.sink == attention_sink::outbox ? kernel_.fewest_threads : kernel_.most_threads;
  }

  /// `soon`: it begins to begin while the kernel before it in the stream ends.
  void launch(const void* kernel, int blocks, int threads, std::size_t shared, cudaStream_t stream,
              bool soon = false) {
    launch_with(a_, kernel, blocks, threads, shared, stream, soon);
  }
  void launch_with(attention_arguments& with, const void* kernel, int blocks, int threads,
                   std::size_t shared, cudaStream_t stream, bool soon = false) {
    cudaLaunchAttribute early = gpu::programmatic_launch(true);
    cudaLaunchConfig_t config = gpu::launch_of(blocks, threads, shared, stream);
    config.attrs = &early;
    // Ranks that share a GPU need the places that it would take early.
    config.numAttrs = soon && world_->ranks_per_gpu() == 1 ? 1 : 0;
    void* arguments[] = {&with};
    require(cudaLaunchKernelExC(&config, kernel, arguments),
            "cannot be launched; the rank's GPU has to be the current device");
  }

  world* world_;
  std::string name_;
  attention_kernel kernel_;
  int blocks_;
  gpu::stream own_;
  attention_arguments a_;
  owned_symmetric<std::byte> inbox_;
  owned_symmetric<std::uint64_t> epochs_;
  owned_symmetric<std::byte> scratch_;
  std::uint32_t* gathered_ = nullptr;
};

attention_runner::attention_runner(world& w, const std::string& name, const attention_shape& shape,
                                   attention_sink sink, int blocks) {
  // Its streams are made before anything else of it.
  w.use_device();
  launcher_ = std::make_unique<launcher>(w, name, shape, sink, blocks);
}
attention_runner::~attention_runner() = default;

stream_ref attention_runner::stream_or_own(stream_ref stream) const {
  return stream.handle != nullptr ? stream : launcher_->own_stream();
}
void attention_runner::finish() { launcher_->finish(); }
void attention_runner::attend(const attention_operands& operands, stream_ref stream) {
  launcher_->attend(operands, stream);
}
void attention_runner::combine(const attention_operands& operands, stream_ref stream) {
  launcher_->combine(operands, stream);
}
std::uint32_t* attention_runner::gathered() const { return launcher_->gathered(); }
int attention_runner::blocks() const { return launcher_->blocks(); }

}  // namespace untax::gpu
