#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <untax/tile/protocol.hpp>

namespace untax {

/// Any protocol, behind one type, for code that executes or analyses programs and is compiled once.
class program {
 public:
  using sink = std::function<void(const step&)>;

  template <protocol P>
  explicit program(P p) : self_(std::make_shared<holder<P>>(std::move(p))) {}

  /// The functions of the protocol.
  [[nodiscard]] int rank() const { return self_->rank(); }
  [[nodiscard]] int world() const { return self_->world(); }
  [[nodiscard]] int counters() const { return self_->counters(); }
  [[nodiscard]] int kernels() const { return self_->kernels(); }
  [[nodiscard]] kernel kernel_at(int i) const { return self_->kernel_at(i); }
  [[nodiscard]] extent inbox() const { return self_->inbox(); }
  [[nodiscard]] extent outbox() const { return self_->outbox(); }
  [[nodiscard]] extent tile_extent() const { return self_->tile_extent(); }

  /// Calls `emit` for every step of `worker` of kernel `kernel_index` in `epoch` (from 1), in
  /// order.
  void steps(int kernel_index, int worker, std::uint64_t epoch, const sink& emit) const {
    self_->steps(kernel_index, worker, epoch, emit);
  }

 private:
  struct base {
    virtual ~base() = default;
    [[nodiscard]] virtual int rank() const = 0;
    [[nodiscard]] virtual int world() const = 0;
    [[nodiscard]] virtual int counters() const = 0;
    [[nodiscard]] virtual int kernels() const = 0;
    [[nodiscard]] virtual kernel kernel_at(int i) const = 0;
    [[nodiscard]] virtual extent inbox() const = 0;
    [[nodiscard]] virtual extent outbox() const = 0;
    [[nodiscard]] virtual extent tile_extent() const = 0;
    virtual void steps(int kernel_index, int worker, std::uint64_t epoch,
                       const sink& emit) const = 0;
  };
  template <protocol P>
  struct holder final : base {
    explicit holder(P p) : value(std::move(p)) {}
    [[nodiscard]] int rank() const override { return value.rank(); }
    [[nodiscard]] int world() const override { return value.world(); }
    [[nodiscard]] int counters() const override { return value.counters(); }
    [[nodiscard]] int kernels() const override { return value.kernels(); }
    [[nodiscard]] kernel kernel_at(int i) const override { return value.kernel_at(i); }
    [[nodiscard]] extent inbox() const override { return value.inbox(); }
    [[nodiscard]] extent outbox() const override { return value.outbox(); }
    [[nodiscard]] extent tile_extent() const override { return value.tile_extent(); }
    void steps(int kernel_index, int worker, std::uint64_t epoch, const sink& emit) const override {
      value.program(kernel_index, worker, epoch, emit);
    }
    P value;
  };

  std::shared_ptr<const base> self_;
};

}  // namespace untax
