#include "world.hpp"

#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "fields.hpp"
#include "raise.hpp"

namespace untax::python {
namespace {

using owned_world = std::unique_ptr<world>;

constexpr field option_fields[] = {UNTAX_FIELD(untax_world_options, heap_bytes),
                                   UNTAX_FIELD(untax_world_options, wait_limit_ms),
                                   UNTAX_FIELD(untax_world_options, join_limit_ms),
                                   UNTAX_FIELD(untax_world_options, memory),
                                   UNTAX_FIELD(untax_world_options, ranks_per_gpu),
                                   UNTAX_FIELD(untax_world_options, heap_guards),
                                   UNTAX_FIELD(untax_world_options, gpu)};

using maker = std::int32_t (*)(std::int32_t, const untax_world_options*, untax_world**);

std::vector<owned_world> several(maker make, int ranks, const nb::dict& options) {
  const auto o = filled<untax_world_options>(options, option_fields);
  std::vector<untax_world*> made(static_cast<std::size_t>(ranks > 0 ? ranks : 1));
  checked([&] { return make(ranks, &o, made.data()); });
  std::vector<owned_world> owned;
  for (untax_world* w : made) owned.push_back(std::make_unique<world>(w));
  return owned;
}

owned_world from_environment(const nb::dict& options) {
  const auto o = filled<untax_world_options>(options, option_fields);
  untax_world* handle = nullptr;
  checked([&] { return untax_world_from_environment(&o, &handle); });
  return std::make_unique<world>(handle);
}

/// The callable of an exchange, the number of ranks whose bytes it has to return, and its
/// exception.
struct exchanger {
  nb::callable call;
  std::size_t ranks = 0;
  std::exception_ptr thrown;
};

int exchange(void* context, const void* mine, std::size_t bytes, void* bytes_of_ranks) {
  auto& e = *static_cast<exchanger*>(context);
  const nb::gil_scoped_acquire own;
  try {
    const auto gathered = nb::cast<std::vector<nb::bytes>>(e.call(nb::bytes(mine, bytes)));
    if (gathered.size() != e.ranks) {
      refuse("exchange returned the bytes of " + std::to_string(gathered.size()) +
             " ranks; this world has " + std::to_string(e.ranks));
    }
    auto* to = static_cast<char*>(bytes_of_ranks);
    for (std::size_t rank = 0; rank < gathered.size(); ++rank) {
      const nb::bytes& b = gathered[rank];
      if (b.size() != bytes) {
        refuse("exchange returned " + std::to_string(b.size()) + " bytes of rank " +
               std::to_string(rank) + "; it has to return the " + std::to_string(bytes) +
               " that each rank gave");
      }
      std::memcpy(to, b.c_str(), bytes);
      to += bytes;
    }
    return 0;
  } catch (...) {
    e.thrown = std::current_exception();
    return 2;
  }
}

owned_world from_exchange(int rank, int ranks, nb::callable call, const nb::dict& options) {
  const auto o = filled<untax_world_options>(options, option_fields);
  exchanger e{std::move(call), static_cast<std::size_t>(ranks > 0 ? ranks : 0), nullptr};
  untax_world* handle = nullptr;
  std::int32_t status = untax_ok;
  {
    const nb::gil_scoped_release others_run;
    status = untax_world_from_exchange(rank, ranks, exchange, &e, &o, &handle);
  }
  if (e.thrown) std::rethrow_exception(e.thrown);
  raise_if_failed(status);
  return std::make_unique<world>(handle);
}

/// Symmetric memory of a world as a Python object.
class allocation {
 public:
  allocation(std::shared_ptr<open_world> owner, void* local)
      : shared_(std::make_shared<open_allocation>(std::move(owner), local)) {}

  [[nodiscard]] std::uintptr_t address() const {
    return reinterpret_cast<std::uintptr_t>(open().local());
  }
  [[nodiscard]] bool freed() const noexcept { return shared_ == nullptr; }
  void free() {
    (void)open();
    shared_->freed = true;
    shared_.reset();
  }
  [[nodiscard]] view_pin pin() const { return pinned(shared_, open().owner()); }

 private:
  [[nodiscard]] const open_allocation& open() const {
    if (!shared_) refuse("this memory is free already");
    return *shared_;
  }

  std::shared_ptr<open_allocation> shared_;
};

std::unique_ptr<allocation> allocate(const world& w, std::size_t bytes, const std::string& label) {
  void* local = nullptr;
  untax_world* const handle = w.open();
  checked([&] { return untax_world_allocate(handle, bytes, label.c_str(), &local); });
  return std::make_unique<allocation>(w.shared(), local);
}

void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

std::uintptr_t translate(const world& w, std::uintptr_t local, int peer) {
  void* address = nullptr;
  untax_world* const handle = w.open();
  checked([&] { return untax_world_translate(handle, pointer(local), peer, &address); });
  return reinterpret_cast<std::uintptr_t>(address);
}

/// The state that kernels need, without the rank and the size.
nb::dict kernel_state(const world& w) {
  untax_kernel_state s{};
  s.size = sizeof s;
  untax_world* const handle = w.open();
  checked([&] { return untax_world_kernel_state(handle, &s); });
  const auto address = [](const void* at) { return reinterpret_cast<std::uintptr_t>(at); };
  nb::dict fields;
  fields["span"] = s.span;
  fields["records"] = address(s.records);
  fields["progress"] = address(s.progress);
  fields["first_slot"] = s.first_slot;
  fields["slots"] = s.slots;
  fields["host_stop"] = address(s.host_stop);
  fields["stop"] = address(s.stop);
  fields["stop_span"] = s.stop_span;
  fields["outcome"] = address(s.outcome);
  fields["limit_ns"] = s.limit_ns;
  fields["clock_offset"] = s.clock_offset;
  return fields;
}

}  // namespace

untax_world* world::open() const {
  untax_world* const handle = shared_->handle();
  if (handle == nullptr) refuse("this world is closed");
  return handle;
}

void world::close() {
  checked([&] { return shared_->close(); });
}

void bind_world(nb::module_& m) {
  m.def("threads",
        [](int ranks, const nb::dict& o) { return several(untax_world_threads, ranks, o); });
  m.def("gpus", [](int ranks, const nb::dict& o) { return several(untax_world_gpus, ranks, o); });
  m.def("from_environment", from_environment);
  m.def("from_exchange", from_exchange);

  nb::class_<allocation>(m, "Allocation")
      .def_prop_ro("address", &allocation::address)
      .def_prop_ro("freed", &allocation::freed)
      .def("free", &allocation::free)
      .def("pin", &allocation::pin);
  nb::class_<world>(m, "World")
      .def_prop_ro("rank", [](const world& w) { return untax_world_rank(w.open()); })
      .def_prop_ro("size", [](const world& w) { return untax_world_size(w.open()); })
      .def_prop_ro("kind", [](const world& w) { return untax_world_kind(w.open()); })
      .def_prop_ro("device", [](const world& w) { return untax_world_device(w.open()); })
      .def_prop_ro("ranks_per_gpu",
                   [](const world& w) { return untax_world_ranks_per_gpu(w.open()); })
      .def_prop_ro("heap_used", [](const world& w) { return untax_world_heap_used(w.open()); })
      .def_prop_ro("closed", &world::closed)
      .def("close", &world::close)
      .def("use_device",
           [](const world& w) {
             untax_world* const handle = w.open();
             checked([&] { return untax_world_use_device(handle); });
           })
      .def(
          "let_runs_follow",
          [](const world& w, std::uintptr_t stream) {
            untax_world* const handle = w.open();
            checked([&] { return untax_world_let_runs_follow(handle, pointer(stream)); });
          },
          nb::arg("stream"))
      .def("barrier",
           [](const world& w) {
             untax_world* const handle = w.open();
             checked([&] { return untax_world_barrier(handle); });
           })
      .def("agree",
           [](const world& w, const std::string& what, const std::string& description) {
             untax_world* const handle = w.open();
             checked([&] { return untax_world_agree(handle, what.c_str(), description.c_str()); });
           })
      .def("check",
           [](const world& w) {
             untax_world* const handle = w.open();
             checked([&] { return untax_world_check(handle); });
           })
      .def("fail", [](const world& w, const std::string& text) { w.shared()->fail(text.c_str()); })
      .def("kernel_state", kernel_state)
      .def("allocate", allocate)
      .def("translate", translate);
}

}  // namespace untax::python
