// Worlds of processes that exchange bytes themselves, here by files, and meet in groups.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "ranks.hpp"
#include "src/world/launch_place.hpp"

namespace {

using namespace multi_test;
using untax::errc;
using untax::world;

constexpr auto place_variable = "UNTAX_TEST_EXCHANGE";

/// A folder that no other test has, removed with this.
struct temporary_folder {
  temporary_folder() {
    if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("cannot make " + path);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() { std::filesystem::remove_all(path); }

  std::string path = testing::TempDir() + "untax-test-XXXXXX";
};

/// Writes what this rank has to a file, and reads those of the others of the group `name`.
untax::byte_exchange by_files(const std::string& name, int rank, int ranks) {
  const std::string place = std::getenv(place_variable);  // NOLINT(concurrency-mt-unsafe)
  return [=](std::span<const std::byte> mine, std::span<std::byte> bytes) {
    const auto path_of = [&](int r) { return fmt::format("{}/{}-{}", place, name, r); };
    const std::string unfinished = path_of(rank) + ".part";
    std::ofstream(unfinished, std::ios::binary)
        .write(reinterpret_cast<const char*>(mine.data()), static_cast<long>(mine.size()));
    std::filesystem::rename(unfinished, path_of(rank));
    for (int r = 0; r < ranks; ++r) {
      while (!std::filesystem::exists(path_of(r))) std::this_thread::sleep_for(1ms);
      std::ifstream(path_of(r), std::ios::binary)
          .read(reinterpret_cast<char*>(bytes.data() + mine.size() * static_cast<std::size_t>(r)),
                static_cast<long>(mine.size()));
    }
  };
}

/// Every rank tells every other what it is called, in a group.
void greet(world& w, int name) {
  const auto names = w.allocate<int>(static_cast<std::size_t>(w.size()), "names");
  for (int peer = 0; peer < w.size(); ++peer)
    *names.at(peer, static_cast<std::size_t>(w.rank())) = name;
  w.barrier();
  std::string heard;
  for (int r = 0; r < w.size(); ++r)
    heard += fmt::format(" {}", *names.local(static_cast<std::size_t>(r)));
  say("HEARD" + heard);
  w.barrier();
}

// All, then two groups, whose members have made worlds of their own before: another number each.
const rank_body in_groups("exchange_groups", [] {
  const int me = launched_rank();
  const int ranks = launched_size();
  world everybody = world::from_exchange(me, ranks, by_files("all", me, ranks), small_world());
  EXPECT_EQ(everybody.kind(), "processes");
  greet(everybody, me);
  for (int i = 0; i < me; ++i) {
    EXPECT_EQ(world::from_exchange(0, 1, by_files("alone", 0, 1), small_world()).kind(), "alone");
  }
  const int group = me % 2;
  world some = world::from_exchange(me / 2, 2, by_files(fmt::format("group{}", group), me / 2, 2),
                                    small_world());
  greet(some, me);
});

const rank_body that_differ("exchange_differ", [] {
  auto options = small_world();
  if (launched_rank() == 1) options.heap_bytes = *options.heap_bytes * 2;
  const world w =
      world::from_exchange(launched_rank(), 2, by_files("differ", launched_rank(), 2), options);
});

const rank_body wrongly_set("exchange_wrongly_set", [] {
  if (launched_rank() == 1) setenv("UNTAX_WAIT_LIMIT_MS", "soon", 1);  // NOLINT(*-mt-unsafe)
  auto options = small_world();
  options.wait_limit.reset();
  const world w =
      world::from_exchange(launched_rank(), 2, by_files("wrong", launched_rank(), 2), options);
});

const rank_body of_two_hosts("exchange_two_hosts", [] {
  const int me = launched_rank();
  const auto honest = by_files("hosts", me, 2);
  // The message of rank 1 is changed on its way, as if it had come from elsewhere.
  const world w = world::from_exchange(
      me, 2,
      [&](std::span<const std::byte> mine, std::span<std::byte> bytes) {
        honest(mine, bytes);
        std::fill_n(bytes.begin() + static_cast<long>(mine.size()), 100, std::byte{'x'});
      },
      small_world());
});

outcome launch_there(const std::string& name, int ranks) {
  const temporary_folder place;
  return launch(name, ranks, {{place_variable, place.path}});
}

TEST(exchange, makes_worlds_of_all_and_of_groups) {
  const belongings before = belongings::now();
  const outcome o = launch_there("exchange_groups", 4);
  expect_ok(o);
  for (int r = 0; r < 4; ++r) {
    EXPECT_NE(o.all(r).find("HEARD 0 1 2 3"), std::string::npos) << o.all(r);
    EXPECT_NE(o.all(r).find(r % 2 == 0 ? "HEARD 0 2" : "HEARD 1 3"), std::string::npos) << o.all(r);
  }
  EXPECT_EQ(belongings::now(), before);
}

TEST(exchange, settings_that_differ_are_a_disagreement_everywhere) {
  const outcome o = launch_there("exchange_differ", 2);
  for (int r = 0; r < 2; ++r) expect_error(o, r, errc::disagreement, {"heap"});
}

TEST(exchange, an_error_of_one_rank_is_reported_at_all_ranks) {
  const outcome o = launch_there("exchange_wrongly_set", 2);
  for (int r = 0; r < 2; ++r)
    expect_error(o, r, errc::invalid_argument, {"rank 1", "UNTAX_WAIT_LIMIT_MS", "soon"});
}

TEST(exchange, ranks_on_several_hosts_are_refused) {
  const outcome o = launch_there("exchange_two_hosts", 2);
  for (int r = 0; r < 2; ++r) expect_error(o, r, errc::unsupported, {"on one host"});
}

// One directory of its own, so that no two worlds meet that are made at the same time.
TEST(exchange, rank_0_names_the_meeting_place) {
  const belongings before = belongings::now();
  for (const int rank : {0, 1}) {
    std::string told;
    const auto leave = [&told](std::span<const std::byte> mine, std::span<std::byte>) {
      told.assign(reinterpret_cast<const char*>(mine.data()), mine.size());
      throw std::runtime_error("enough");
    };
    EXPECT_THROW((void)world::from_exchange(rank, 2, leave, small_world()), std::runtime_error);
    EXPECT_EQ(told.find(untax::launch_directory) != std::string::npos, rank == 0);
  }
  EXPECT_EQ(belongings::now(), before);
}

TEST(exchange, impossible_ranks_are_refused) {
  for (const auto& [rank, ranks] : {std::pair{0, 0}, {2, 2}, {-1, 2}, {0, 1000}}) {
    try {
      const world w = world::from_exchange(rank, ranks, {});
      ADD_FAILURE() << "nothing was thrown";
    } catch (const untax::error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument) << e.what();
    }
  }
}

}  // namespace
