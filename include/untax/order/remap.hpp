#pragma once

#include <untax/core/host_device.hpp>

namespace untax::order {

/// Undoes the distribution of blocks to the cache domains of a device: the block started at
/// position p runs in domain p % domains. Of every `domains` * `chunk` blocks each domain gets
/// `chunk` that follow each other. The rest at the end is assigned in the same way with a smaller
/// chunk. If the domains do not divide the rest, the first ones ("tall") get one block more than
/// the others ("short"). So with a `chunk` of blocks / domains or more, each domain has one
/// contiguous range of blocks.
struct chunked_remap {
  int blocks = 0;
  int domains = 1;
  int chunk = 1;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int size() const { return blocks; }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int block(int position) const {
    const int whole = whole_groups();
    if (position < whole) {
      const int within = position % (domains * chunk);
      return position - within + within % domains * chunk + within / domains;
    }
    const int rest = position - whole;
    const int domain = rest % domains;
    const int tall = (blocks - whole) % domains;
    return whole + domain * ((blocks - whole) / domains) + (domain < tall ? domain : tall) +
           rest / domains;
  }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int position(int block) const {
    const int whole = whole_groups();
    if (block < whole) {
      const int within = block % (domains * chunk);
      return block - within + within % chunk * domains + within / chunk;
    }
    const int rest = block - whole;
    const int height = (blocks - whole) / domains;  // of the short ones
    const int tall = (blocks - whole) % domains;
    const int in_tall = tall * (height + 1);
    if (rest < in_tall) return whole + rest % (height + 1) * domains + rest / (height + 1);
    return whole + (rest - in_tall) % height * domains + tall + (rest - in_tall) / height;
  }

 private:
  /// The number of blocks in groups in which every domain has `chunk`: 0 if the chunk is too large.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int whole_groups() const {
    if (chunk > blocks / domains) return 0;
    return blocks / (domains * chunk) * (domains * chunk);
  }
};

/// Each domain has one contiguous range of blocks.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr chunked_remap full_remap(int blocks, int domains) {
  return {blocks, domains, blocks / domains + 1};
}

}  // namespace untax::order
