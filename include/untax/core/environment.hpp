#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace untax {

/// A variable that untax reads. `untax doctor` prints the whole list.
struct environment_variable {
  const char* name;
  const char* meaning;
  const char* fallback;  ///< the value that holds when it is not set; "" where there is none
};

/// Every variable that untax reads, and no other.
namespace variable {
// clang-format off
inline constexpr environment_variable heap_bytes{
    "UNTAX_HEAP_BYTES", "size of the symmetric heap of each rank, on GPUs its first size; K, M and G mean powers of 1024",
    "1G"};
inline constexpr environment_variable heap_limit{
    "UNTAX_HEAP_LIMIT", "size to which the symmetric heap of a rank on a GPU grows when it is full, if the GPU has the "
    "memory; with that of UNTAX_HEAP_BYTES it does not grow", "512G"};
inline constexpr environment_variable heap_guards{
    "UNTAX_HEAP_GUARDS", "1 puts guard bands between allocations, 0 does not", "1 in debug builds"};
inline constexpr environment_variable wait_limit{
    "UNTAX_WAIT_LIMIT_MS", "milliseconds after which a wait is an error; 0 waits for ever", "20000"};
inline constexpr environment_variable join_limit{
    "UNTAX_JOIN_LIMIT_MS", "milliseconds in which all processes of a world have to start; 0 waits for ever", "60000"};
inline constexpr environment_variable memory{
    "UNTAX_MEMORY", "where the symmetric heaps of processes lie: host, cuda for a GPU each, or automatic for cuda if each "
    "process has a GPU", "host"};
inline constexpr environment_variable ranks_per_gpu{
    "UNTAX_RANKS_PER_GPU", "ranks of one process that share a GPU, each with its part of the multiprocessors: to try "
    "out more ranks than there are GPUs; needs CUDA_DEVICE_MAX_CONNECTIONS=32", "1"};
inline constexpr environment_variable connections{
    "CUDA_DEVICE_MAX_CONNECTIONS", "queues of CUDA; read where ranks share a GPU", ""};
inline constexpr environment_variable visible_devices{
    "CUDA_VISIBLE_DEVICES", "GPUs that CUDA shows this process; read where UNTAX_MEMORY is automatic", ""};
inline constexpr environment_variable tune_table{
    "UNTAX_TUNE_TABLE", "file of `untax bench tune`, by which `automatic` chooses on GPUs before it looks at tables of "
    "its own", ""};
inline constexpr environment_variable measure{
    "UNTAX_MEASURE", "1: where no table has the problem itself, `automatic` times the likely patterns when an operator "
    "of GPUs is made; 0: it goes by tables alone", "1"};
inline constexpr environment_variable trace{
    "UNTAX_TRACE", "file that gets a trace of all operators, for Perfetto, when the process exits; of those on GPUs in "
    "a build with UNTAX_KERNEL_TRACE", ""};
inline constexpr environment_variable strict{
    "UNTAX_STRICT", "1: what untax.torch cannot take over is an error", ""};
inline constexpr environment_variable sglang{"UNTAX_SGLANG", "0 switches untax off in SGLang", ""};
inline constexpr environment_variable torchtitan{"UNTAX_TORCHTITAN", "0 switches untax off in torchtitan", ""};
inline constexpr environment_variable vllm{"UNTAX_VLLM", "0 switches untax off in vLLM", ""};
inline constexpr environment_variable rank{
    "UNTAX_RANK", "this process's rank (set by `untax run --processes`)", ""};
inline constexpr environment_variable world_size{
    "UNTAX_WORLD_SIZE", "how many ranks there are (set by `untax run --processes`)", ""};
inline constexpr environment_variable rendezvous{
    "UNTAX_RENDEZVOUS", "directory, private to this user, in which the ranks meet; the same for all of them",
    ""};
inline constexpr environment_variable launch{
    "UNTAX_LAUNCH", "a word that all processes of a job have, and no others; without it, and without one of their "
    "launcher, they have to be started by the same process", ""};
inline constexpr environment_variable runtime_directory{
    "XDG_RUNTIME_DIR", "where the directory to meet in is made; /tmp if it is not there", ""};

inline constexpr environment_variable torch_rank{"RANK", "torchrun: rank", ""};
inline constexpr environment_variable torch_world_size{"WORLD_SIZE", "torchrun: number of ranks", ""};
inline constexpr environment_variable torch_local_rank{"LOCAL_RANK", "torchrun: rank on this host", ""};
inline constexpr environment_variable torch_local_size{
    "LOCAL_WORLD_SIZE", "torchrun: number of ranks on this host", ""};
inline constexpr environment_variable torch_address{"MASTER_ADDR", "torchrun: part of the job's name", ""};
inline constexpr environment_variable torch_port{"MASTER_PORT", "torchrun: part of the job's name", ""};
inline constexpr environment_variable torch_run{"TORCHELASTIC_RUN_ID", "torchrun: part of the job's name", ""};
inline constexpr environment_variable torch_errors{
    "TORCHELASTIC_ERROR_FILE", "torchrun: its directory is that of one launch", ""};
inline constexpr environment_variable torch_restart{
    "TORCHELASTIC_RESTART_COUNT", "torchrun: part of the job's name", ""};

inline constexpr environment_variable open_mpi_rank{"OMPI_COMM_WORLD_RANK", "Open MPI: rank", ""};
inline constexpr environment_variable open_mpi_size{"OMPI_COMM_WORLD_SIZE", "Open MPI: number of ranks", ""};
inline constexpr environment_variable open_mpi_local_size{
    "OMPI_COMM_WORLD_LOCAL_SIZE", "Open MPI: number of ranks on this host", ""};
inline constexpr environment_variable open_mpi_job{"PMIX_NAMESPACE", "Open MPI: the job's name", ""};

inline constexpr environment_variable pmi_rank{"PMI_RANK", "MPICH: rank", ""};
inline constexpr environment_variable pmi_size{"PMI_SIZE", "MPICH: number of ranks", ""};
inline constexpr environment_variable pmi_local_size{
    "MPI_LOCALNRANKS", "MPICH: number of ranks on this host", ""};

inline constexpr environment_variable slurm_rank{"SLURM_PROCID", "Slurm: rank", ""};
inline constexpr environment_variable slurm_size{"SLURM_STEP_NUM_TASKS", "Slurm: number of ranks", ""};
inline constexpr environment_variable slurm_nodes{"SLURM_STEP_NUM_NODES", "Slurm: number of hosts", ""};
inline constexpr environment_variable slurm_job{"SLURM_JOB_ID", "Slurm: part of the job's name", ""};
inline constexpr environment_variable slurm_step{"SLURM_STEP_ID", "Slurm: part of the job's name", ""};
// clang-format on
}  // namespace variable

/// All variables above, in that order.
[[nodiscard]] std::span<const environment_variable* const> environment_variables() noexcept;

/// Reads variables and checks their values. Every error is `invalid_argument`, names the variable
/// and its value, and says what would be right. An empty value counts as not set.
class environment {
 public:
  /// The environment of this process.
  environment() = default;
  /// An environment of these variables alone, for tests.
  explicit environment(std::map<std::string, std::string> values) : values_(std::move(values)) {}

  /// The value of `v`; nothing if it is not set.
  [[nodiscard]] std::optional<std::string> text(const environment_variable& v) const;
  [[nodiscard]] bool has(const environment_variable& v) const { return text(v).has_value(); }
  /// A whole number in [least, most]; nothing if `v` is not set.
  [[nodiscard]] std::optional<std::int64_t> number(const environment_variable& v,
                                                   std::int64_t least, std::int64_t most) const;
  /// As `number`; if `v` is not set, its fallback, which is not compared with the limits.
  [[nodiscard]] std::int64_t number_or_fallback(const environment_variable& v, std::int64_t least,
                                                std::int64_t most) const;
  /// A number of bytes, given as 4096, 64K, 512M or 2G; the variable's fallback if it is not set.
  [[nodiscard]] std::size_t bytes_or_fallback(const environment_variable& v) const;

 private:
  std::optional<std::map<std::string, std::string>> values_;
};

/// The number of bytes that "4096", "64K", "512M" or "2G" means. K, M and G are powers of 1024 in
/// either case; B or iB may follow. Nothing if `text` has another form, or if the number is too
/// large.
[[nodiscard]] std::optional<std::size_t> parse_bytes(std::string_view text) noexcept;

/// "512 bytes", "64 KiB", "1.5 GiB": for messages.
[[nodiscard]] std::string format_bytes(std::size_t bytes);

}  // namespace untax
