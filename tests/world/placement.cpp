#include <map>

#include <untax/world/placement.hpp>

#include <unistd.h>

#include <fmt/format.h>

#include <untax/world/world.hpp>

#include "support.hpp"

namespace {

using untax::environment;
using untax::errc;
using untax::placement;
using untax::placement_from;
using world_test::error_of;
using world_test::expect_error;
using variables = std::map<std::string, std::string>;

placement place(const variables& v) { return placement_from(environment(v)); }

TEST(placement, without_a_launcher_is_one_rank) {
  const placement p = place({{"RANK", "3"}, {"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}});
  EXPECT_EQ(p.rank, 0);
  EXPECT_EQ(p.world_size, 1);
  EXPECT_EQ(p.launcher, "");
  EXPECT_EQ(
      untax::world::from_environment(world_test::small_world(), environment(variables{})).kind(),
      "alone");
}

TEST(placement, knows_every_launcher) {
  const std::vector<std::pair<std::string, variables>> launchers = {
      {"untax", {{"UNTAX_RANK", "1"}, {"UNTAX_WORLD_SIZE", "4"}}},
      {"torchrun",
       {{"RANK", "1"},
        {"WORLD_SIZE", "4"},
        {"LOCAL_RANK", "1"},
        {"LOCAL_WORLD_SIZE", "4"},
        {"MASTER_ADDR", "h"},
        {"MASTER_PORT", "29500"}}},
      {"Open MPI",
       {{"OMPI_COMM_WORLD_RANK", "1"},
        {"OMPI_COMM_WORLD_SIZE", "4"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
        {"PMIX_NAMESPACE", "job@1"}}},
      {"MVAPICH",
       {{"MV2_COMM_WORLD_RANK", "1"},
        {"MV2_COMM_WORLD_SIZE", "4"},
        {"MV2_COMM_WORLD_LOCAL_SIZE", "4"}}},
      {"MPICH", {{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "4"}}},
      {"Flux",
       {{"FLUX_TASK_RANK", "1"},
        {"FLUX_JOB_SIZE", "4"},
        {"FLUX_JOB_NNODES", "1"},
        {"FLUX_JOB_ID", "f7"}}},
      {"Slurm",
       {{"SLURM_PROCID", "1"},
        {"SLURM_STEP_NUM_TASKS", "4"},
        {"SLURM_JOB_ID", "77"},
        {"SLURM_STEP_ID", "0"}}},
  };
  variables everything;
  for (auto it = launchers.rbegin(); it != launchers.rend(); ++it) {
    const placement p = place(it->second);
    EXPECT_EQ(p.launcher, it->first);
    EXPECT_EQ(p.rank, 1);
    EXPECT_EQ(p.world_size, 4);
    everything.insert(it->second.begin(), it->second.end());
    EXPECT_EQ(place(everything).launcher, it->first) << "the innermost launcher counts";
  }
}

TEST(placement, jobs_have_names_of_their_own) {
  const auto torch = [](const char* port, const char* run) {
    return place({{"RANK", "0"},
                  {"WORLD_SIZE", "2"},
                  {"MASTER_ADDR", "h"},
                  {"MASTER_PORT", port},
                  {"TORCHELASTIC_RUN_ID", run}})
        .job;
  };
  EXPECT_EQ(torch("1", "a"), torch("1", "a"));
  EXPECT_NE(torch("1", "a"), torch("2", "a"));
  EXPECT_NE(torch("1", "a"), torch("1", "b"));
  const auto slurm = [](const char* job, const char* step) {
    return place({{"SLURM_PROCID", "0"},
                  {"SLURM_STEP_NUM_TASKS", "2"},
                  {"SLURM_JOB_ID", job},
                  {"SLURM_STEP_ID", step}})
        .job;
  };
  EXPECT_NE(slurm("1", "0"), slurm("1", "1"));
  EXPECT_NE(slurm("1", "0"), slurm("2", "0"));
}

TEST(placement, launches_tell_jobs_of_equal_names_apart) {
  const auto launch = [](variables v) {
    v.insert({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "1"}});
    return place(v).launch;
  };
  const std::string by_parent = fmt::format("child of process {}, which started at ", getppid());
  EXPECT_TRUE(launch({}).starts_with(by_parent)) << launch({});
  EXPECT_FALSE(launch({}).ends_with(" 0")) << "the start of a process that can be seen";
  EXPECT_EQ(launch({{"TORCHELASTIC_RUN_ID", "none"}}), launch({})) << "torchrun's name for nothing";
  EXPECT_EQ(launch({{"TORCHELASTIC_RUN_ID", "x"}}), "TORCHELASTIC_RUN_ID=x");
  const auto with_errors = [&](const char* file) {
    return launch({{"TORCHELASTIC_RUN_ID", "none"}, {"TORCHELASTIC_ERROR_FILE", file}});
  };
  EXPECT_EQ(with_errors("/tmp/t_a/none_b/attempt_0/0/error.json"),
            with_errors("/tmp/t_a/none_b/attempt_0/1/error.json"));
  EXPECT_NE(with_errors("/tmp/t_a/none_b/attempt_0/0/error.json"),
            with_errors("/tmp/t_a/none_c/attempt_0/0/error.json"));
  EXPECT_EQ(launch({{"TORCHELASTIC_RUN_ID", "x"}, {"UNTAX_LAUNCH", "word"}}), "UNTAX_LAUNCH=word");
  const std::string slurm = place({{"SLURM_PROCID", "0"},
                                   {"SLURM_STEP_NUM_TASKS", "2"},
                                   {"SLURM_JOB_ID", "77"},
                                   {"SLURM_STEP_ID", "3"}})
                                .launch;
  EXPECT_EQ(slurm, "SLURM_JOB_ID=77 SLURM_STEP_ID=3");
}

TEST(placement, slurm_shells_are_no_ranks) {
  const variables batch = {
      {"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_ID", "4294967291"}};
  EXPECT_EQ(place(batch).launcher, "");
  variables step = batch;
  step["SLURM_STEP_ID"] = "4294967280";  // the first that is reserved
  EXPECT_EQ(place(step).launcher, "");
  step["SLURM_STEP_ID"] = "4294967279";
  EXPECT_EQ(place(step).launcher, "Slurm");
}

TEST(placement, counts_hosts_and_ranks_from_one_on) {
  variables ranks = {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_ID", "0"}};
  EXPECT_EQ(place(ranks).world_size, 2);
  ranks["SLURM_STEP_NUM_NODES"] = "1";
  EXPECT_EQ(place(ranks).world_size, 2);
  for (const char* hosts : {"2", "1073741824"}) {
    ranks["SLURM_STEP_NUM_NODES"] = hosts;
    expect_error(error_of([&] { place(ranks); }), errc::unsupported, {hosts, "several hosts"});
  }
  for (const char* hosts : {"0", "1073741825"}) {
    ranks["SLURM_STEP_NUM_NODES"] = hosts;
    expect_error(error_of([&] { place(ranks); }), errc::invalid_argument,
                 {hosts, "from 1 to 1073741824"});
  }
  variables launch = {{"RANK", "0"}, {"WORLD_SIZE", "3"}, {"LOCAL_WORLD_SIZE", "3"}};
  EXPECT_EQ(place(launch).world_size, 3);
  for (const char* local : {"1", "2", "4", "1073741824"}) {
    launch["LOCAL_WORLD_SIZE"] = local;
    expect_error(error_of([&] { place(launch); }), errc::unsupported, {local, "several hosts"});
  }
  for (const char* local : {"0", "1073741825"}) {
    launch["LOCAL_WORLD_SIZE"] = local;
    expect_error(error_of([&] { place(launch); }), errc::invalid_argument,
                 {local, "from 1 to 1073741824"});
  }
}

TEST(placement, refuses_impossible_variables) {
  expect_error(error_of([] {
                 place({{"UNTAX_RANK", "4"}, {"UNTAX_WORLD_SIZE", "4"}});
               }),
               errc::invalid_argument, {"UNTAX_RANK", "\"4\"", "from 0 to 3"});
  expect_error(error_of([] {
                 place({{"RANK", "0"}, {"WORLD_SIZE", "many"}});
               }),
               errc::invalid_argument, {"WORLD_SIZE", "\"many\""});
  expect_error(error_of([] {
                 place({{"PMI_RANK", "0"}, {"PMI_SIZE", "1000"}});
               }),
               errc::invalid_argument, {"PMI_SIZE", "\"1000\"", "from 1 to 64"});
  expect_error(error_of([] {
                 place({{"UNTAX_RANK", "0"}});
               }),
               errc::invalid_argument, {"UNTAX_RANK", "UNTAX_WORLD_SIZE", "together"});
}

TEST(placement, refuses_ranks_without_their_number) {
  for (const char* rank : {"MV2_COMM_WORLD_RANK", "FLUX_TASK_RANK", "PALS_RANKID", "PMIX_RANK",
                           "OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    variables v = {{rank, "3"}};
    expect_error(error_of([&] { place(v); }), errc::invalid_argument,
                 {std::string(rank) + "=3", "set UNTAX_RANK and UNTAX_WORLD_SIZE"});
    v.insert({{"UNTAX_RANK", "0"}, {"UNTAX_WORLD_SIZE", "1"}});
    EXPECT_EQ(place(v).world_size, 1);
  }
  // Variables that PALS sets besides its own, and PMIx below Slurm.
  EXPECT_EQ(place({{"PALS_RANKID", "1"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "4"}}).rank, 1);
  EXPECT_EQ(place({{"PMIX_RANK", "1"},
                   {"SLURM_PROCID", "1"},
                   {"SLURM_STEP_NUM_TASKS", "4"},
                   {"SLURM_STEP_ID", "0"}})
                .launcher,
            "Slurm");
}

TEST(placement, refuses_several_hosts) {
  expect_error(error_of([] {
                 place({{"FLUX_TASK_RANK", "0"}, {"FLUX_JOB_SIZE", "4"}, {"FLUX_JOB_NNODES", "2"}});
               }),
               errc::unsupported, {"FLUX_JOB_NNODES", "several hosts"});
  expect_error(error_of([] {
                 place({{"RANK", "0"}, {"WORLD_SIZE", "16"}, {"LOCAL_WORLD_SIZE", "8"}});
               }),
               errc::unsupported, {"torchrun", "16 ranks", "LOCAL_WORLD_SIZE is 8"});
  expect_error(error_of([] {
                 place({{"SLURM_PROCID", "0"},
                        {"SLURM_STEP_NUM_TASKS", "4"},
                        {"SLURM_STEP_ID", "0"},
                        {"SLURM_STEP_NUM_NODES", "2"}});
               }),
               errc::unsupported, {"Slurm", "SLURM_STEP_NUM_NODES is 2"});
}

}  // namespace
