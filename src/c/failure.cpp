#include "failure.hpp"

#include <exception>
#include <new>
#include <string>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/core/version.hpp>
#include <untax/flow/interrupt.hpp>

#include "engines/host/openblas.hpp"

namespace untax::c {
namespace {

struct failure {
  untax_status status = untax_ok;
  std::int32_t suspect = -1;
  std::string text;
  const char* fixed = "";  // used instead of `text` unless null; set if memory ran out
};

failure& last() noexcept {
  thread_local failure of_this_thread;
  return of_this_thread;
}

static_assert(static_cast<int>(errc::internal) + 1 == untax_internal);
untax_status status_of(errc code) noexcept {
  return static_cast<untax_status>(static_cast<int>(code) + 1);
}

/// Whether another rank may have caused an error with this status.
bool concerns_ranks(untax_status status) noexcept {
  return status == untax_disagreement || status == untax_peer_lost || status == untax_timeout ||
         status == untax_aborted;
}

std::int32_t suspect_of(const untax_world* w, untax_status status) {
  if (w == nullptr || !w->ranks || !concerns_ranks(status) || !w->ranks.stopped()) return -1;
  const auto report = w->ranks.state().report();
  return report ? report->suspect : -1;
}

void keep(const untax_world* w, untax_status status, const char* text) noexcept {
  failure& kept = last();
  kept.status = status;
  kept.suspect = -1;
  try {
    kept.text = text;
    kept.fixed = nullptr;
    kept.suspect = suspect_of(w, status);
  } catch (const std::bad_alloc&) {
    kept.fixed = "out of memory while formatting an error message";
  }
}

}  // namespace

std::int32_t keep_failure(const untax_world* w) noexcept {
  try {
    throw;
  } catch (const error& e) {
    keep(w, status_of(e.code()), e.what());
  } catch (const std::bad_alloc&) {
    keep(w, untax_out_of_memory, "this machine has no memory left for it");
  } catch (const std::exception& e) {
    keep(w, untax_internal, e.what());
  } catch (...) {
    keep(w, untax_internal, "unknown exception");
  }
  return last().status;
}

void require(const void* p, std::string_view name) {
  if (p == nullptr) throw error(errc::invalid_argument, fmt::format("{} is NULL", name));
}

}  // namespace untax::c

const char* untax_version(void) { return untax::version.data(); }
int32_t untax_abi_version(void) { return UNTAX_ABI_VERSION; }

const char* untax_status_name(int32_t status) {
  if (status == untax_ok) return "ok";
  if (status < 0 || status > untax_internal) return "?";
  return untax::name_of(static_cast<untax::errc>(status - 1)).data();
}

untax_error_info untax_last_error(void) {
  const untax::c::failure& kept = untax::c::last();
  return {kept.status, kept.suspect, kept.fixed != nullptr ? kept.fixed : kept.text.c_str()};
}

void untax_set_interrupt(int (*interrupted)(void)) { untax::set_interrupt(interrupted); }

int32_t untax_offer_openblas(const char* path) {
  return untax::c::guarded(nullptr,
                           [&] { untax::host::offer_openblas(path == nullptr ? "" : path); });
}
