#include "ops/collectives_common/registry.hpp"

namespace untax {

const std::vector<collective_entry>& collectives() {
  static const std::vector<collective_entry> all = {all_gather_entry(), reduce_scatter_entry(),
                                                    all_reduce_entry(), all_to_all_entry(),
                                                    broadcast_entry()};
  return all;
}

}  // namespace untax
