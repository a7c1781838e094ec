#include "engines/host/openblas.hpp"

#include <dlfcn.h>
#include <sched.h>

#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::host {
namespace {

/// Restricts the calling thread to one processor while it lives. When OpenBLAS is loaded, it
/// creates as many threads as the loading thread may use processors.
class one_processor {
 public:
  one_processor() {
    known_ = sched_getaffinity(0, sizeof before_, &before_) == 0;
    if (!known_) return;  // OpenBLAS then creates threads, which is harmless if they are permitted
    int first = 0;
    while (!CPU_ISSET(first, &before_)) ++first;
    cpu_set_t affinity;
    CPU_ZERO(&affinity);
    CPU_SET(first, &affinity);
    known_ = sched_setaffinity(0, sizeof affinity, &affinity) == 0;
  }
  one_processor(const one_processor&) = delete;
  one_processor& operator=(const one_processor&) = delete;
  ~one_processor() {
    if (known_) sched_setaffinity(0, sizeof before_, &before_);
  }

 private:
  cpu_set_t before_{};
  bool known_ = false;
};

/// The OpenBLAS of the Python package scipy-openblas32, whose functions have a prefix.
constexpr const char* python_library = "libscipy_openblas.so";
constexpr const char* python_prefix = "scipy_";

struct offered_library {
  std::mutex guard;
  std::string path;
};

offered_library& offered() {
  static offered_library offer;
  return offer;
}

std::string offered_path() {
  offered_library& offer = offered();
  const std::lock_guard lock(offer.guard);
  return offer.path;
}

struct opened_library {
  void* handle;
  std::string name;
};

/// Loads the library by the name under which the linker finds it, or else from its path at
/// configuration, or the offered one, or that of Python by its name.
opened_library open_library() {
  const one_processor restriction;
  std::string reasons;
  for (const std::string& name : {std::string("libopenblas.so.0"), std::string(UNTAX_OPENBLAS),
                                  offered_path(), std::string(python_library)}) {
    if (name.empty()) continue;  // dlopen would return the program itself
    void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) return {library, name};
    const char* const reason = dlerror();  // NOLINT(concurrency-mt-unsafe): of this thread
    reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ",
                           reason != nullptr ? reason : "no reason given");
  }
  throw error(errc::unsupported,
              fmt::format("OpenBLAS, which multiplies matrices on hosts, cannot be loaded: {}; "
                          "LD_LIBRARY_PATH can name its folder, and Python takes the package "
                          "scipy-openblas32",
                          reasons));
}

template <class Function>
void find(const opened_library& library, const char* name, Function& function) {
  const std::string prefixed = std::string(python_prefix) + name;
  for (const char* const symbol : {name, prefixed.c_str()}) {
    function =
        reinterpret_cast<Function>(dlsym(library.handle, symbol));  // NOLINT(*-reinterpret-cast)
    if (function != nullptr) break;
  }
  if (function == nullptr) {
    throw error(errc::unsupported,
                fmt::format("{} has no {}; an OpenBLAS with the C interface is needed, and "
                            "LD_LIBRARY_PATH can name its folder",
                            library.name, name));
  }
}

openblas load() {
  const opened_library library = open_library();
  openblas loaded;
  find(library, "cblas_sgemm", loaded.sgemm);
  find(library, "cblas_sgemv", loaded.sgemv);
  find(library, "cblas_dgemm", loaded.dgemm);
  find(library, "openblas_set_num_threads", loaded.set_num_threads);
  // OpenBLAS may have been loaded before, with threads. The blocks of a rank are the parallelism; a
  // library that spawns threads under them would fight with it.
  loaded.set_num_threads(1);
  return loaded;
}

/// The result of loading. It holds an error, because an initialiser that throws would run again at
/// the next call, and under ThreadSanitizer concurrent callers would never return.
struct load_result {
  openblas found;
  std::optional<error> failure;
};

load_result try_to_load() {
  try {
    return {load(), {}};
  } catch (const error& e) {
    return {{}, e};
  }
}

}  // namespace

void offer_openblas(std::string path) {
  offered_library& offer = offered();
  const std::lock_guard lock(offer.guard);
  offer.path = std::move(path);
}

const openblas& blas() {
  static const load_result loaded = try_to_load();
  if (loaded.failure) throw error(*loaded.failure);
  return loaded.found;
}

}  // namespace untax::host
