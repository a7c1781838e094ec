#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "raise.hpp"
#include "views.hpp"
#include "world.hpp"

namespace untax::python {
namespace {

/// A decoder of the C ABI. The garbage collector drops it, which is not collective.
class decoder {
 public:
  decoder(std::shared_ptr<open_world> owner, untax_decoder* d)
      : owner_(std::move(owner)), handle_(d) {
    owner_->add(d);
  }
  decoder(const decoder&) = delete;
  decoder& operator=(const decoder&) = delete;
  ~decoder() { owner_->drop(handle_); }

  /// Raises InvalidArgument once the decoder or its world is closed.
  [[nodiscard]] untax_decoder* open() const {
    if (handle_ == nullptr || owner_->handle() == nullptr) refuse("this decoder is closed");
    return handle_;
  }
  [[nodiscard]] bool closed() const { return handle_ == nullptr || owner_->handle() == nullptr; }
  void close() {
    if (handle_ != nullptr) owner_->drop(std::exchange(handle_, nullptr));
  }

 private:
  std::shared_ptr<open_world> owner_;
  untax_decoder* handle_;
};

using numbers = std::vector<std::int32_t>;

void* pointer_to(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

/// The options in the order of the structure's fields.
untax_decoder_options options_of(const std::vector<std::int64_t>& given) {
  untax_decoder_options o{};
  o.size = sizeof o;
  std::int64_t* const fields[] = {&o.sequences, &o.tokens,        &o.page_size,
                                  &o.pages,     &o.prompt_tokens, &o.prompt_keys};
  for (std::size_t i = 0; i < std::size(fields); ++i) *fields[i] = given.at(i);
  o.logits = given.at(std::size(fields)) != 0 ? 1 : 0;
  o.graphs = given.at(std::size(fields) + 1) != 0 ? 1 : 0;
  o.invariant = given.at(std::size(fields) + 2) != 0 ? 1 : 0;
  return o;
}

std::unique_ptr<decoder> load(const world& w, const std::string& folder,
                              const std::vector<std::int64_t>& options) {
  const untax_decoder_options o = options_of(options);
  untax_world* const at = w.open();
  untax_decoder* handle = nullptr;
  checked([&] { return untax_decoder_load(at, folder.c_str(), &o, &handle); });
  return std::make_unique<decoder>(w.shared(), handle);
}

std::unique_ptr<decoder> random(const world& w, const std::string& config, std::uint64_t seed,
                                const std::vector<std::int64_t>& options) {
  const untax_decoder_options o = options_of(options);
  untax_world* const at = w.open();
  untax_decoder* handle = nullptr;
  checked([&] { return untax_decoder_random(at, config.c_str(), seed, &o, &handle); });
  return std::make_unique<decoder>(w.shared(), handle);
}

/// Matrices of weights by name, and addresses of vectors by name; a decoder copies them.
class given_weights {
 public:
  using matrices =
      std::map<std::string,
               std::tuple<std::uintptr_t, std::int64_t, std::int64_t, std::int64_t, std::int32_t>>;
  using vectors = std::map<std::string, std::uintptr_t>;
  [[nodiscard]] const untax_const_matrix* matrix(const matrices& from, const char* name) {
    const auto at = from.find(name);
    if (at == from.end()) refuse("the weights have no " + std::string(name));
    const auto& [data, rows, cols, stride, type] = at->second;
    return &kept_.emplace_back(untax_const_matrix{pointer_to(data), rows, cols, stride, type});
  }
  [[nodiscard]] static const void* vector(const vectors& from, const char* name) {
    const auto at = from.find(name);
    return at == from.end() ? nullptr : pointer_to(at->second);
  }

 private:
  std::deque<untax_const_matrix> kept_;
};

using weight_part = std::pair<given_weights::matrices, given_weights::vectors>;

std::unique_ptr<decoder> create(const world& w, const std::string& config, const weight_part& whole,
                                const std::vector<weight_part>& layers,
                                const std::vector<std::int64_t>& options) {
  given_weights given;
  std::vector<untax_decoder_layer> of_layers;
  for (const auto& [m, v] : layers) {
    of_layers.push_back({.size = sizeof(untax_decoder_layer),
                         .qkv = given.matrix(m, "qkv"),
                         .output = given.matrix(m, "output"),
                         .gate_up = given.matrix(m, "gate_up"),
                         .down = given.matrix(m, "down"),
                         .qkv_bias = given_weights::vector(v, "qkv_bias"),
                         .output_bias = given_weights::vector(v, "output_bias"),
                         .gate_up_bias = given_weights::vector(v, "gate_up_bias"),
                         .down_bias = given_weights::vector(v, "down_bias"),
                         .q_norm = given_weights::vector(v, "q_norm"),
                         .k_norm = given_weights::vector(v, "k_norm"),
                         .input_norm = given_weights::vector(v, "input_norm"),
                         .mlp_norm = given_weights::vector(v, "mlp_norm"),
                         .attention_post_norm = given_weights::vector(v, "attention_post_norm"),
                         .mlp_post_norm = given_weights::vector(v, "mlp_post_norm")});
  }
  const untax_decoder_weights weights{
      .size = sizeof(untax_decoder_weights),
      .embedding = given.matrix(whole.first, "embedding"),
      .head = given.matrix(whole.first, "head"),
      .final_norm = given_weights::vector(whole.second, "final_norm"),
      .layers = of_layers.data(),
      .count = static_cast<std::int64_t>(of_layers.size())};
  const untax_decoder_options o = options_of(options);
  untax_world* const at = w.open();
  untax_decoder* handle = nullptr;
  checked([&] { return untax_decoder_create(at, config.c_str(), &weights, &o, &handle); });
  return std::make_unique<decoder>(w.shared(), handle);
}

int add(const decoder& d) {
  std::int32_t sequence = 0;
  untax_decoder* const handle = d.open();
  checked([&] { return untax_decoder_add(handle, &sequence); });
  return sequence;
}

int fork(const decoder& d, int sequence, std::uintptr_t stream) {
  std::int32_t copy = 0;
  untax_decoder* const handle = d.open();
  checked([&] { return untax_decoder_fork(handle, sequence, pointer_to(stream), &copy); });
  return copy;
}

std::int64_t length(const decoder& d, int sequence) {
  std::int64_t tokens = 0;
  untax_decoder* const handle = d.open();
  checked([&] { return untax_decoder_length(handle, sequence, &tokens); });
  return tokens;
}

void prefill(const decoder& d, const numbers& sequences, const std::vector<std::int64_t>& counts,
             const numbers& tokens, std::uintptr_t stream) {
  std::int64_t sum = 0;
  for (const std::int64_t count : counts) sum += count;
  if (counts.size() != sequences.size() || sum != static_cast<std::int64_t>(tokens.size()))
    refuse("the numbers of sequences, counts and tokens do not agree");
  untax_decoder* const handle = d.open();
  checked([&] {
    return untax_decoder_prefill(handle, sequences.data(), counts.data(),
                                 static_cast<std::int32_t>(sequences.size()), tokens.data(),
                                 pointer_to(stream));
  });
}

void stage(const decoder& d, const numbers& sequences, const std::optional<numbers>& tokens,
           std::uintptr_t stream) {
  if (tokens && tokens->size() != sequences.size())
    refuse(std::to_string(tokens->size()) + " tokens for " + std::to_string(sequences.size()) +
           " sequences");
  untax_decoder* const handle = d.open();
  checked([&] {
    return untax_decoder_stage(handle, sequences.data(),
                               static_cast<std::int32_t>(sequences.size()),
                               tokens ? tokens->data() : nullptr, pointer_to(stream));
  });
}

std::vector<std::int64_t> shape(const decoder& d) {
  std::vector<std::int64_t> sizes(2);
  untax_decoder* const handle = d.open();
  checked([&] { return untax_decoder_shape(handle, &sizes[0], &sizes[1]); });
  return sizes;
}

/// The addresses of the next tokens, int32, and of the logits, fp32 or 0.
std::pair<std::uintptr_t, std::uintptr_t> results(const decoder& d) {
  std::int32_t* tokens = nullptr;
  const float* logits = nullptr;
  untax_decoder* const handle = d.open();
  checked([&] { return untax_decoder_results(handle, &tokens, &logits); });
  return {reinterpret_cast<std::uintptr_t>(tokens), reinterpret_cast<std::uintptr_t>(logits)};
}

/// Fills an array of the host, of int32 or float32.
void read_tokens(const decoder& d, nb::handle to, std::uintptr_t stream) {
  written_array array;
  open_vector("tokens", to, array);
  if (array.dtype() != nb::dtype<std::int32_t>()) refuse("tokens have to be int32");
  untax_decoder* const handle = d.open();
  checked([&] {
    return untax_decoder_read_tokens(handle, static_cast<std::int32_t*>(array.data()),
                                     static_cast<std::int64_t>(array.size()), pointer_to(stream));
  });
}

void read_logits(const decoder& d, nb::handle to, std::uintptr_t stream) {
  written_array array;
  open_vector("logits", to, array);
  if (array.dtype() != nb::dtype<float>()) refuse("logits have to be float32");
  untax_decoder* const handle = d.open();
  checked([&] {
    return untax_decoder_read_logits(handle, static_cast<float*>(array.data()),
                                     static_cast<std::int64_t>(array.size()), pointer_to(stream));
  });
}

}  // namespace

void bind_decoder(nb::module_& m) {
  nb::class_<decoder>(m, "Decoder")
      .def_prop_ro("closed", &decoder::closed)
      .def("close", &decoder::close)
      .def("add", add)
      .def("fork", fork)
      .def("remove",
           [](const decoder& d, int sequence) {
             untax_decoder* const handle = d.open();
             checked([&] { return untax_decoder_remove(handle, sequence); });
           })
      .def("length", length)
      .def("prefill", prefill)
      .def("stage", stage, nb::arg("sequences"), nb::arg("tokens").none(), nb::arg("stream"))
      .def("step",
           [](const decoder& d, std::uintptr_t stream) {
             untax_decoder* const handle = d.open();
             checked([&] { return untax_decoder_step(handle, pointer_to(stream)); });
           })
      .def("shape", shape)
      .def("results", results)
      .def("read_tokens", read_tokens)
      .def("read_logits", read_logits);
  m.def("load_decoder", load);
  m.def("random_decoder", random);
  m.def("create_decoder", create);
}

}  // namespace untax::python
