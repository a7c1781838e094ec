#include <untax/core/environment.hpp>

#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "src/core/launcher_variables.hpp"

namespace untax {
namespace {

constexpr auto every_variable = std::to_array<const environment_variable*>({
    &variable::heap_bytes,
    &variable::heap_limit,
    &variable::heap_guards,
    &variable::wait_limit,
    &variable::join_limit,
    &variable::memory,
    &variable::ranks_per_gpu,
    &variable::connections,
    &variable::visible_devices,
    &variable::tune_table,
    &variable::measure,
    &variable::trace,
    &variable::strict,
    &variable::sglang,
    &variable::torchtitan,
    &variable::vllm,
    &variable::rank,
    &variable::world_size,
    &variable::rendezvous,
    &variable::launch,
    &variable::runtime_directory,
    &variable::torch_rank,
    &variable::torch_world_size,
    &variable::torch_local_rank,
    &variable::torch_local_size,
    &variable::torch_address,
    &variable::torch_port,
    &variable::torch_run,
    &variable::torch_errors,
    &variable::torch_restart,
    &variable::open_mpi_rank,
    &variable::open_mpi_size,
    &variable::open_mpi_job,
    &variable::open_mpi_local_size,
    &variable::pmi_rank,
    &variable::pmi_size,
    &variable::pmi_local_size,
    &variable::mvapich_rank,
    &variable::mvapich_size,
    &variable::mvapich_local_size,
    &variable::flux_rank,
    &variable::flux_size,
    &variable::flux_nodes,
    &variable::flux_job,
    &variable::pals_rank,
    &variable::pmix_rank,
    &variable::slurm_rank,
    &variable::slurm_size,
    &variable::slurm_nodes,
    &variable::slurm_job,
    &variable::slurm_step,
});

std::optional<std::int64_t> parse_number(std::string_view text) noexcept {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The number of bits by which a size suffix shifts; nothing if the suffix is unknown.
std::optional<int> shift_of(std::string_view suffix) noexcept {
  if (suffix.empty()) return 0;
  int shift = 0;
  switch (suffix.front()) {
    case 'k':
    case 'K':
      shift = 10;
      break;
    case 'm':
    case 'M':
      shift = 20;
      break;
    case 'g':
    case 'G':
      shift = 30;
      break;
    default:
      return std::nullopt;
  }
  suffix.remove_prefix(1);
  if (suffix.empty() || suffix == "B" || suffix == "iB") return shift;
  return std::nullopt;
}

}  // namespace

std::span<const environment_variable* const> environment_variables() noexcept {
  return every_variable;
}

std::optional<std::string> environment::text(const environment_variable& v) const {
  std::string result;
  if (values_) {
    const auto entry = values_->find(v.name);
    if (entry != values_->end()) result = entry->second;
  } else if (const char* value =
                 std::getenv(v.name)) {  // NOLINT(concurrency-mt-unsafe): untax never sets one
    result = value;
  }
  if (result.empty()) return std::nullopt;
  return result;
}

std::optional<std::int64_t> environment::number(const environment_variable& v, std::int64_t least,
                                                std::int64_t most) const {
  const auto value = text(v);
  if (!value) return std::nullopt;
  const auto parsed = parse_number(*value);
  if (!parsed || *parsed < least || *parsed > most) {
    const std::string limit = most == std::numeric_limits<std::int64_t>::max()
                                  ? fmt::format("of at least {}", least)
                                  : fmt::format("from {} to {}", least, most);
    throw error(errc::invalid_argument,
                fmt::format("{} is \"{}\"; it has to be a whole number {} ({})", v.name, *value,
                            limit, v.meaning));
  }
  return parsed;
}

std::int64_t environment::number_or_fallback(const environment_variable& v, std::int64_t least,
                                             std::int64_t most) const {
  if (const auto value = number(v, least, most)) return *value;
  if (const auto fallback = parse_number(v.fallback)) return *fallback;
  throw error(errc::internal, fmt::format("{} has no default", v.name));
}

std::size_t environment::bytes_or_fallback(const environment_variable& v) const {
  const std::string value = text(v).value_or(v.fallback);
  const auto bytes = parse_bytes(value);
  if (!bytes) {
    throw error(errc::invalid_argument,
                fmt::format("{} is \"{}\"; it has to be a size such as 4096, 64K, 512M or 2G ({})",
                            v.name, value, v.meaning));
  }
  return *bytes;
}

std::optional<std::size_t> parse_bytes(std::string_view text) noexcept {
  std::size_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, failure] = std::from_chars(text.data(), last, value);
  if (failure != std::errc{}) return std::nullopt;
  const auto shift = shift_of({end, static_cast<std::size_t>(last - end)});
  if (!shift || value > (std::numeric_limits<std::size_t>::max() >> *shift)) return std::nullopt;
  return value << *shift;
}

std::string format_bytes(std::size_t bytes) {
  constexpr std::array<const char*, 4> units = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  auto value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return fmt::format("{:.4g} {}", value, units[unit]);
}

}  // namespace untax
