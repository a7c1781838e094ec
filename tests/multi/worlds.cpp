// Worlds of processes that work: data, signals, several worlds in turn, and every launcher.
#include <unistd.h>

#include <filesystem>
#include <map>

#include <untax/memory/host_memory.hpp>

#include "ranks.hpp"

namespace {

using namespace multi_test;
using untax::environment;
using untax::host_memory;
using untax::verb;
using untax::wait_outcome;
using untax::world;
using variables = std::map<std::string, std::string>;

/// Every rank writes into every other, signals, and checks what it got.
void exchange(world& w) {
  constexpr std::size_t count = 1000;
  const auto inbox = w.allocate<std::uint64_t>(count * static_cast<std::size_t>(w.size()), "inbox");
  const auto arrived =
      w.allocate_cleared<std::uint64_t>(static_cast<std::size_t>(w.size()), "arrived");
  const auto me = static_cast<std::size_t>(w.rank());
  untax::watch guard = w.make_watch(0);
  for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
    for (int peer = 0; peer < w.size(); ++peer) {
      for (std::size_t i = 0; i < count; ++i)
        *inbox.at(peer, me * count + i) = epoch * 1000000 + me * 10000 + i;
      host_memory::raise_release(*arrived.at(peer, me), epoch);
    }
    for (int source = 0; source < w.size(); ++source) {
      const auto s = static_cast<std::size_t>(source);
      const wait_outcome outcome = untax::wait_until<host_memory>(
          *arrived.local(s), {"exchange", verb::wait_until, source, source, epoch}, guard);
      if (outcome != wait_outcome::ok) w.throw_failure(outcome, "exchange");
      for (std::size_t i = 0; i < count; ++i)
        EXPECT_EQ(*inbox.local(s * count + i), epoch * 1000000 + s * 10000 + i);
    }
    w.barrier();
  }
  w.free(arrived);
  w.free(inbox);
}

const rank_body exchanging("exchange", [] {
  world w = world::from_environment(small_world());
  EXPECT_EQ(w.rank(), launched_rank());
  EXPECT_EQ(w.size(), launched_size());
  EXPECT_EQ(w.kind(), launched_size() == 1 ? "alone" : "processes");
  exchange(w);
});

TEST(processes, exchange_data_through_symmetric_memory) {
  const belongings before = belongings::now();
  for (const int ranks : {1, 2, 3, 5, 8}) expect_ok(launch("exchange", ranks));
  EXPECT_EQ(belongings::now(), before);
}

const rank_body in_turn("worlds in turn", [] {
  const belongings before = belongings::now();
  for (int i = 0; i < 3; ++i) {
    world w = world::from_environment(small_world());
    exchange(w);
  }
  EXPECT_EQ(belongings::now(), before) << "worlds that have ended left something";
});

TEST(processes, make_several_worlds_in_turn) { expect_ok(launch("worlds in turn", 3)); }

const rank_body quiet("nothing while it works", [] {
  world w = world::from_environment(small_world());
  // All ranks have come, so the place where they met is gone.
  EXPECT_FALSE(std::filesystem::exists(std::getenv("UNTAX_RENDEZVOUS")));
  const std::string files = std::filesystem::read_symlink("/proc/self/exe");
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone);
    EXPECT_EQ(target.find("memfd"), std::string::npos) << target;
    EXPECT_EQ(target.find("socket"), std::string::npos) << target;
  }
  w.barrier();
});

TEST(processes, hold_no_socket_and_no_file_while_they_work) {
  expect_ok(launch("nothing while it works", 2));
}

/// The variables that the launcher `name` would set for this rank.
variables played(const std::string& name, const std::string& rank, const std::string& size) {
  if (name == "torchrun") {
    return {{"RANK", rank},
            {"WORLD_SIZE", size},
            {"LOCAL_RANK", rank},
            {"LOCAL_WORLD_SIZE", size},
            {"MASTER_ADDR", "localhost"},
            {"MASTER_PORT", "29500"},
            {"TORCHELASTIC_RUN_ID", std::to_string(getppid())}};
  }
  if (name == "openmpi") {
    return {{"OMPI_COMM_WORLD_RANK", rank},
            {"OMPI_COMM_WORLD_SIZE", size},
            {"OMPI_COMM_WORLD_LOCAL_SIZE", size},
            {"PMIX_NAMESPACE", std::to_string(getppid()) + "@1"}};
  }
  if (name == "mpich") return {{"PMI_RANK", rank}, {"PMI_SIZE", size}};
  return {{"SLURM_PROCID", rank},
          {"SLURM_STEP_NUM_TASKS", size},
          {"SLURM_STEP_NUM_NODES", "1"},
          {"SLURM_JOB_ID", std::to_string(getppid())},
          {"SLURM_STEP_ID", "3"}};
}

void exchange_under(const std::string& name) {
  variables v = played(name, std::to_string(launched_rank()), std::to_string(launched_size()));
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR")) v["XDG_RUNTIME_DIR"] = runtime;
  world w = world::from_environment(small_world(), environment(v));
  EXPECT_EQ(w.size(), launched_size());
  EXPECT_EQ(w.kind(), "processes");
  exchange(w);
}

const rank_body torchrun("torchrun", [] { exchange_under("torchrun"); });
const rank_body openmpi("openmpi", [] { exchange_under("openmpi"); });
const rank_body mpich("mpich", [] { exchange_under("mpich"); });
const rank_body slurm("slurm", [] { exchange_under("slurm"); });

TEST(processes, meet_under_every_launcher_and_leave_nothing) {
  const belongings before = belongings::now();
  for (const char* name : {"torchrun", "openmpi", "mpich", "slurm"}) {
    SCOPED_TRACE(name);
    expect_ok(launch(name, 3));
  }
  EXPECT_EQ(belongings::now(), before);
}

TEST(processes, meet_in_the_runtime_directory_of_the_user_if_there_is_one) {
  std::string directory = testing::TempDir() + "untax-runtime-XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  expect_ok(launch("slurm", 2, {{"XDG_RUNTIME_DIR", directory}}));
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  std::filesystem::remove_all(directory);
  expect_ok(launch("slurm", 2,
                   {{"XDG_RUNTIME_DIR", directory}}));  // it is not there any more: /tmp is used
}

}  // namespace
