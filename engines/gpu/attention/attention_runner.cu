#include "engines/gpu/attention/attention_runner.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/rma/packet.cuh>

#include "engines/gpu/attention/combine.hpp"
#include "engines/gpu/attention/variants/variants.hpp"
#include "engines/gpu/launch/common_end.hpp"
#include "engines/gpu/launch/operator_launcher.hpp"
#include "engines/gpu/launch/this_gpu.hpp"

namespace untax::gpu {
namespace {

attention_kernel kernel_for(const attention_shape& shape) {
  switch (shape.head_dim) {
    case 64:
      return attention_of_width_64(shape.type, shape.page_size > 0, shape.parts > 0);
    case 128:
      return attention_of_width_128(shape.type, shape.page_size > 0, shape.parts > 0);
    default:
      return attention_of_width_256(shape.type, shape.page_size > 0, shape.parts > 0);
  }
}

}  // namespace

class attention_runner::launcher {
 public:
  launcher(world& w, const std::string& name, const attention_shape& shape, attention_sink sink,
           int blocks)
      : end_(w), kernel_(kernel_for(shape)), blocks_(blocks), launcher_(w, name, {.own = true}) {
    check(shape);
    launcher_.prepare(kernel_.function, kernel_.shared_bytes);
    require_room();
    // Ranks must agree: sizes of symmetric memory depend on both, sending of packets on the sink.
    w.note(name, fmt::format("blocks {}, sink {}", blocks_, static_cast<int>(sink)));
    a_.shape = shape;
    a_.split = attention_split(shape.items(), blocks_);
    a_.sink = sink;
    a_.ranks = w.size();
    a_.rank = w.rank();
    a_.run = launcher_.arguments(0, attention().threads);
    allocate();
    a_.run.launch = -1;
    launcher_.dry_run([&](cudaStream_t on) {
      kernel_start_form dry = attention();
      dry.early = false;
      launch(dry, on);
      launch({combine_kernel(shape.type, shape.partials), 1, combine_threads}, on);
      launch({exchange_kernel(shape.type, shape.partials), 1, combine_threads}, on);
    });
    a_.run.launch = 0;
  }

  [[nodiscard]] stream_ref stream_of(stream_ref given) const { return launcher_.stream_of(given); }
  void finish(stream_ref stream) {
    launcher_.wait(static_cast<cudaStream_t>(stream.handle), "a kernel failed");
    launcher_.ranks().check();
  }

  void attend(const attention_operands& operands, stream_ref stream) {
    auto* const on = static_cast<cudaStream_t>(stream.handle);
    whole_run all = launcher_.begin(on);
    a_.memory = operands;
    a_.run.epochs = epochs_;
    all([&] { launch(attention(), on); });
    if (a_.sink != attention_sink::outbox) return;
    // Launched second: exchange blocks wait for attention blocks, and must not take their SMs.
    a_.run.epochs = epochs_ + blocks_;
    all([&] {
      launch({.kernel = exchange_kernel(a_.shape.type, a_.shape.partials),
              .blocks = blocks_,
              .threads = combine_threads,
              .early = true},
             on);
    });
  }

  void combine(const attention_operands& operands, stream_ref stream) {
    a_.memory = operands;
    attention_arguments all = a_;
    all.rows = gathered_;
    if (a_.shape.parts > 0) all.ranks = a_.shape.parts;
    const auto warps = static_cast<std::int64_t>(combine_threads / 32);
    const std::int64_t wanted = (a_.shape.rows() + warps - 1) / warps;
    void* arguments[] = {&all};
    launcher_.launch({.kernel = combine_kernel(a_.shape.type, a_.shape.partials),
                      .blocks = static_cast<int>(std::min<std::int64_t>(wanted, 4 * blocks_)),
                      .threads = combine_threads},
                     static_cast<cudaStream_t>(stream.handle), arguments);
  }
  [[nodiscard]] std::uint32_t* gathered() const noexcept { return gathered_; }
  [[nodiscard]] int blocks() const noexcept { return blocks_; }

 private:
  void check(const attention_shape& shape) const {
    const world& w = launcher_.ranks();
    std::string why;
    if (w.size() > most_attention_ranks)
      why = fmt::format("goes to {} ranks at most, not {}", most_attention_ranks, w.size());
    if (!has_kernel_for(shape.head_dim)) {
      why = fmt::format("has kernels for heads of 64, 128 and 256 elements, not for {}",
                        shape.head_dim);
    }
    if (shape.group > most_heads_of_group) {
      why = fmt::format("takes {} heads of the queries for each of the keys at most, not {}",
                        most_heads_of_group, shape.group);
    }
    const std::int64_t parts = shape.partial_results();
    if (static_cast<std::int64_t>(shape.items()) *
            (ceil_div<std::int64_t>(shape.keys, 16) + parts * (end_tiles + 1)) >=
        std::int64_t{1} << 31U)
      why = fmt::format("takes 2^31 tiles of 16 keys at most, not {} of {} keys", shape.items(),
                        shape.keys);
    if (shape.type == dtype::f32) why = "takes fp16 and bf16, not fp32";
    if (!why.empty()) {
      throw error(errc::unsupported,
                  fmt::format("rank {}: {}: on GPUs it {}", w.rank(), launcher_.name(), why));
    }
  }

  void require_room() {
    const int num_sms = num_sms_of(launcher_.ranks());
    if (blocks_ == 0) blocks_ = num_sms;
    // Blocks wait for other blocks of this rank and of peers, so all must be resident at once.
    if (blocks_ <= num_sms) return;
    throw error(errc::invalid_argument,
                fmt::format("rank {}: {}: {} blocks are asked for; this GPU holds {} at once, "
                            "option workers has to be smaller",
                            launcher_.ranks().rank(), launcher_.name(), blocks_, num_sms));
  }

  void allocate() {
    const attention_shape& shape = a_.shape;
    const auto blocks = static_cast<std::size_t>(blocks_);
    const bool follows = a_.sink == attention_sink::outbox;
    const auto room = attention_room::of(shape, a_.ranks, blocks_, a_.receives(), follows);
    a_.run.inbox = launcher_.symmetric_memory<std::byte>(room.inbox * sizeof(packet), "inbox");
    epochs_ = launcher_.symmetric_memory<std::uint64_t>(2 * blocks, "epochs").local();
    const std::size_t parts[] = {room.parts * sizeof(packet), room.outbox * sizeof(packet),
                                 room.rows * sizeof(std::uint32_t)};
    std::size_t all = 0;
    for (const std::size_t part : parts) all += aligned(part);
    std::byte* next = launcher_.symmetric_memory<std::byte>(all, "scratch").local();
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

  /// The launch of attention, with fewer threads where exchange blocks must fit beside it.
  [[nodiscard]] kernel_start_form attention() const noexcept {
    return {.kernel = kernel_.function,
            .blocks = blocks_,
            .threads =
                a_.sink == attention_sink::outbox ? kernel_.fewest_threads : kernel_.most_threads,
            .shared_bytes = kernel_.shared_bytes,
            .early = true};
  }
  void launch(const kernel_start_form& form, cudaStream_t stream) {
    void* arguments[] = {&a_};
    launcher_.launch(form, stream, arguments);
  }

  common_end end_;
  attention_kernel kernel_;
  int blocks_;
  attention_arguments a_;
  std::uint64_t* epochs_ = nullptr;  // per block: attention, then exchange
  std::uint32_t* gathered_ = nullptr;
  operator_launcher launcher_;
};

attention_runner::attention_runner(world& w, const std::string& name, const attention_shape& shape,
                                   attention_sink sink, int blocks) {
  // The launcher creates its streams first, on the current device.
  w.use_device();
  launcher_ = std::make_unique<launcher>(w, name, shape, sink, blocks);
}
attention_runner::~attention_runner() = default;

stream_ref attention_runner::stream_or_own(stream_ref stream) const {
  return launcher_->stream_of(stream);
}
void attention_runner::finish(stream_ref stream) { launcher_->finish(stream); }
void attention_runner::attend(const attention_operands& operands, stream_ref stream) {
  launcher_->attend(operands, stream);
}
void attention_runner::combine(const attention_operands& operands, stream_ref stream) {
  launcher_->combine(operands, stream);
}
std::uint32_t* attention_runner::gathered() const { return launcher_->gathered(); }
int attention_runner::blocks() const { return launcher_->blocks(); }

}  // namespace untax::gpu
