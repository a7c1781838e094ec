#include <fmt/format.h>

#include <untax/core/environment.hpp>

#include "bench/suites/pattern_runs.hpp"
#include "src/taxes/memory_room.hpp"

namespace untax::bench {
namespace {

constexpr const char* smaller = "smaller sizes have to be given";

/// Computes the memory of a request before any of it is allocated.
struct memory_question {
  const pattern_request* request = nullptr;
  bool on_gpus = false;
  std::optional<double> heap_bytes;  ///< set by the environment

  [[nodiscard]] memory_need need(int ranks, const std::vector<pattern>& patterns,
                                 bool verify) const {
    memory_need required = request->what.need(ranks, patterns, verify);
    // On GPUs a heap is allocated whole.
    if (on_gpus && heap_bytes) required.heaps = *heap_bytes;
    return required;
  }

  [[nodiscard]] std::vector<remedy> remedies(int ranks) const {
    std::vector<remedy> entries;
    const auto& patterns = request->patterns;
    if (patterns.size() > 1)
      entries.push_back({"take one pattern", need(ranks, {patterns[0]}, request->verify)});
    if (request->verify && !on_gpus)
      entries.push_back({"leave out --verify", need(ranks, patterns, false)});
    const int others = on_gpus ? 2 * ranks : 2;
    if (on_gpus || ranks > 2) {
      entries.push_back(
          {fmt::format("take {} ranks", others), need(others, patterns, request->verify)});
    }
    return entries;
  }
};

}  // namespace

void require_memory(const pattern_request& request, int ranks) {
  const environment variables;
  memory_question question{&request, request.what.memory == memory_kind::cuda, {}};
  if (variables.has(variable::heap_bytes))
    question.heap_bytes = static_cast<double>(variables.bytes_or_fallback(variable::heap_bytes));
  const std::string who =
      fmt::format("{}, with {} rank{}{},", request.what.description, ranks, ranks == 1 ? "" : "s",
                  question.on_gpus ? ", on each GPU" : "");
  memory_need need = question.need(ranks, request.patterns, request.verify);
  require_room(who, need, question.on_gpus ? room_on_gpus(ranks) : room_on_host(),
               question.remedies(ranks), smaller);
  const auto enough = static_cast<double>(heap_for(request, ranks));
  if (question.heap_bytes) require_heap(who, need, *question.heap_bytes, enough);
  if (question.on_gpus) return;
  need.heaps = ranks * question.heap_bytes.value_or(enough);
  require_room(who, need, room_of_addresses(), {}, smaller);
}

}  // namespace untax::bench
