#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace untax::locality {

/// A level of memory, as seen from the processors of one cache domain, or of all of them.
struct level {
  double bytes = 0;  ///< 0: memory, which holds everything
  int ways = 16;
  double bytes_per_second = 0;
  double latency = 0;  ///< seconds that a read takes longer than a hit in the domain's own cache
  /// of a domain's cache: each side has an equal part of the bytes and of the processors
  int sides = 1;
  double far_latency = 0;  ///< as `latency`, for data that only the other side has
  int channels = 1;        ///< of a domain's cache: each has an equal part of the sets
  int channel_bytes = 0;   ///< bytes that follow each other in a channel
};

/// The properties of a device that decide where blocks run and which data they find in caches.
struct device {
  std::string name;
  std::string title;
  int domains = 1;     ///< groups of processors with a cache of their own
  int processors = 0;  ///< multiprocessors or compute units of each domain
  int chunk = 1;     ///< consecutive blocks that go to one domain before the next blocks go to the
                     ///< next domain
  int line = 128;    ///< bytes of a cache line
  int sector = 128;  ///< bytes that are requested and counted: a line, or a part of it
  int write = 0;     ///< bytes of a write request; 0: it is not known how counters count writes
  int fetch = 128;   ///< bytes that come from memory at once: adjacent sectors
  double flops = 0;  ///< dense 16-bit floating point operations per second of all processors
  level cache;       ///< of each domain; its rate is that of one domain
  std::optional<level> last_level;  ///< shared by all domains
  level memory;

  [[nodiscard]] int all_processors() const { return domains * processors; }
};

/// Reads a device from a JSON text, as docs/locality.md describes it. `origin` names it in errors.
/// Throws `invalid_argument` that names the wrong field and the right values.
[[nodiscard]] device read_device(std::string_view text, std::string_view origin);

/// A text that is compiled in: devices/*.json, devices/kernels/*.txt and devices/swizzleperf/*.txt.
struct named_text {
  std::string name;
  std::string text;
};
[[nodiscard]] std::vector<named_text> built_in_devices();
[[nodiscard]] std::vector<named_text> built_in_kernels();
/// The ten kernels of arXiv 2508.20258, at its sizes.
[[nodiscard]] std::vector<named_text> swizzleperf_kernels();

}  // namespace untax::locality
