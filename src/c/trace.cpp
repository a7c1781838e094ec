#include <untax/c/trace.h>

#include <untax/trace/session.hpp>

#include "failure.hpp"

using untax::c::guarded;
using untax::c::require;

int32_t untax_trace_start(const char* path) {
  return guarded(nullptr, [&] {
    require(path, "path");
    untax::start_trace({.path = path});
  });
}

int32_t untax_trace_stop(int64_t* events, int64_t* lost) {
  return guarded(nullptr, [&] {
    const untax::trace_record record = untax::stop_trace();
    if (events != nullptr) *events = static_cast<int64_t>(record.events());
    if (lost != nullptr) *lost = static_cast<int64_t>(record.lost());
  });
}
