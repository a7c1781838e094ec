#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include <untax/core/error.hpp>
#include <untax/flow/control.hpp>

#include "descriptor.hpp"
#include "src/symmetric/device_memory.hpp"
#include "unix_socket.hpp"

namespace untax {

/// Memory by which the heap of a rank can grow, or the reason why there is none.
struct share_offer {
  std::unique_ptr<device_share> memory;
  std::optional<error> trouble;
};

/// The offers of all ranks, as one rank sees them.
struct share_offers {
  std::optional<error> trouble;    ///< of the lowest rank that has one; the same at all ranks
  std::vector<descriptor> shares;  ///< by rank, of ranks that are other processes
};

/// Exchanges offers between the ranks of a world of GPUs. All ranks `put`, then meet, then `take`,
/// then meet again before the next `put`.
class share_exchange {
 public:
  share_exchange() = default;
  share_exchange(const share_exchange&) = delete;
  share_exchange& operator=(const share_exchange&) = delete;
  virtual ~share_exchange() = default;

  /// For ranks that are threads of this process; they share the object.
  [[nodiscard]] static std::shared_ptr<share_exchange> of_threads(int ranks);
  /// For ranks that are processes. `links` are those of `membership`. Rank 0 receives all offers,
  /// and sends them on.
  [[nodiscard]] static std::shared_ptr<share_exchange> of_processes(int rank, int ranks,
                                                                    std::vector<unix_socket> links);

  /// Whether offers need descriptors.
  [[nodiscard]] virtual bool between_processes() const noexcept = 0;
  /// Passes this rank's offer to the others. Throws `peer_lost`.
  virtual void put(int rank, const share_offer& mine) = 0;
  /// The offers of all ranks. Waits for rank 0, at most for `limit` (0: for ever), and as long as
  /// `state` is not stopped. Throws `peer_lost`, `timeout`, `aborted`, `internal`.
  [[nodiscard]] virtual share_offers take(int rank, const control& state,
                                          std::chrono::milliseconds limit) = 0;
};

}  // namespace untax
