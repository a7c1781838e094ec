// The messages of ranks that meet, between threads of this process.
#include "src/world/bootstrap.hpp"

#include <linux/securebits.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "ranks.hpp"
#include "src/symmetric/device_memory.hpp"
#include "src/world/messages.hpp"
#include "src/world/share_exchange.hpp"
#include "src/world/unix_socket.hpp"
#include "tests/errors.hpp"

namespace {

using namespace multi_test;
using untax::device_id;
using untax::errc;
using untax::membership;
using untax::own_share;
using untax::placement;
using untax_test::error_of;
using untax_test::expect_error;

constexpr unsigned somebody_else = 65534;

/// Stands for the memory of a GPU.
class file_share final : public untax::device_share {
 public:
  explicit file_share(std::uint8_t number)
      : file_(memfd_create("share", MFD_CLOEXEC)), id_{number} {}
  [[nodiscard]] int descriptor() const noexcept override { return file_.get(); }
  [[nodiscard]] device_id id() const noexcept override { return id_; }

 private:
  untax::descriptor file_;
  device_id id_;
};

ino_t file_behind(int descriptor) {
  struct stat status {};
  EXPECT_EQ(fstat(descriptor, &status), 0) << descriptor;
  return status.st_ino;
}

/// A directory in which threads meet as if each were a process.
class bootstrap : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(directory_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] placement rank_of(int rank, int ranks) const {
    placement p;
    p.rank = rank;
    p.world_size = ranks;
    p.launch = "a test";
    p.rendezvous = directory_;
    p.once = true;
    return p;
  }
  [[nodiscard]] static untax::settings settings_with(std::chrono::milliseconds join_limit) {
    untax::settings s;
    s.heap_bytes = 4096;
    s.join_limit = join_limit;
    return s;
  }
  /// Joins the world as one rank.
  static membership join(const placement& p, const untax::settings& s, const own_share& mine) {
    untax::meeting_place place(p, untax::environment());
    return p.rank == 0 ? gather_ranks(p, s, mine, place) : join_rank_0(p, s, mine, place);
  }

  std::string directory_ = testing::TempDir() + "untax-test-XXXXXX";
};

TEST_F(bootstrap, every_rank_gets_the_memory_of_every_gpu) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    std::vector<own_share> shares;
    std::vector<ino_t> files;
    const untax::settings s = settings_with(patient);
    for (int rank = 0; rank < ranks; ++rank) {
      shares.push_back(own_share::make(rank_of(rank, ranks), s));
      shares.back().memory = std::make_unique<file_share>(static_cast<std::uint8_t>(10 + rank));
      files.push_back(file_behind(shares.back().descriptor()));
    }
    std::vector<std::optional<membership>> found(static_cast<std::size_t>(ranks));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      threads.emplace_back(
          [&, rank, at] { found[at].emplace(join(rank_of(rank, ranks), s, shares[at])); });
    }
    for (std::thread& t : threads) t.join();
    for (std::size_t rank = 0; rank < found.size(); ++rank) {
      SCOPED_TRACE(testing::Message() << "rank " << rank << " of " << ranks);
      const membership& m = *found[rank];
      EXPECT_EQ(m.processes, std::vector<int>(found.size(), getpid()));
      ASSERT_EQ(m.shares.size(), found.size());
      ASSERT_EQ(m.devices.size(), found.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(m.devices[i], device_id{static_cast<std::uint8_t>(10 + i)});
        if (rank == 0 && i == 0) {
          EXPECT_FALSE(m.shares[0]) << "its own stays where it is";
        } else {
          EXPECT_EQ(file_behind(m.shares[i].get()), files[i]);
        }
      }
      found[0]->memory.arena(0)[rank] = std::byte{7};
      EXPECT_EQ(m.memory.arena(0)[rank], std::byte{7}) << "it is the same segment";
    }
  }
}

/// Offers of ranks that have met, by the links that stay open.
TEST_F(bootstrap, ranks_exchange_the_memory_by_which_heaps_grow) {
  constexpr int ranks = 3;
  const untax::settings s = settings_with(patient);
  std::vector<untax::share_offers> found(ranks);
  std::barrier<> meeting(ranks);
  const auto exchange = [&](int rank, const untax::share_offer& mine, auto& offers,
                            const untax::control& state) {
    offers.put(rank, mine);
    meeting.arrive_and_wait();
    found[static_cast<std::size_t>(rank)] = offers.take(rank, state, patient);
    meeting.arrive_and_wait();
  };
  std::array<ino_t, ranks> files{};
  const auto body = [&](int rank) {
    membership m = join(rank_of(rank, ranks), s, own_share::make(rank_of(rank, ranks), s));
    EXPECT_EQ(m.links.size(), rank == 0 ? 2U : 1U);
    const untax::control state(m.memory.control(), ranks);
    const auto offers = untax::share_exchange::of_processes(rank, ranks, std::move(m.links));
    EXPECT_TRUE(offers->between_processes());
    untax::share_offer mine{std::make_unique<file_share>(static_cast<std::uint8_t>(rank)), {}};
    files[static_cast<std::size_t>(rank)] = file_behind(mine.memory->descriptor());
    exchange(rank, mine, *offers, state);
    const untax::share_offers& of_ranks = found[static_cast<std::size_t>(rank)];
    EXPECT_FALSE(of_ranks.trouble);
    ASSERT_EQ(of_ranks.shares.size(), 3U);
    for (int peer = 0; peer < ranks; ++peer) {
      if (rank == 0 && peer == 0) continue;
      const auto at = static_cast<std::size_t>(peer);
      EXPECT_EQ(file_behind(of_ranks.shares[at].get()), files[at]);
    }
    // All hear of the trouble of the lowest rank that has one.
    if (rank > 0)
      mine = {nullptr, untax::error(errc::out_of_memory, fmt::format("rank {} is full", rank))};
    exchange(rank, mine, *offers, state);
    ASSERT_TRUE(of_ranks.trouble);
    expect_error(*of_ranks.trouble, errc::out_of_memory, {"rank 1 is full"});
    if (rank == 0)
      expect_error(error_of([&] { (void)offers->take(0, state, 50ms); }), errc::timeout,
                   {"rank 0: rank 1 did not send its part of a larger heap within 50 ms"});
    meeting.arrive_and_wait();  // until then, links are open
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(body, rank);
  for (std::thread& t : threads) t.join();
}

TEST_F(bootstrap, a_failing_rank_does_not_wait_longer_than_others) {
  const untax::settings s = settings_with(50ms);
  own_share mine = own_share::make(rank_of(1, 2), s);
  mine.trouble.emplace(errc::unsupported, "rank 1: no GPU is here");
  const auto begin = std::chrono::steady_clock::now();
  expect_error(error_of([&] { (void)join(rank_of(1, 2), s, mine); }), errc::unsupported,
               {"rank 1: no GPU is here"});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST_F(bootstrap, a_rank_alone_reports_that_no_other_rank_came) {
  const untax::settings s = settings_with(50ms);
  const own_share mine = own_share::make(rank_of(1, 2), s);
  const untax::error result = error_of([&] { (void)join(rank_of(1, 2), s, mine); });
  expect_error(result, errc::timeout, {"rank 0 did not come"});
  EXPECT_EQ(std::string(result.what()).find("ranks of another launch"), std::string::npos);
}

/// Runs `body` in a thread with another user id that keeps root's access to files. False if this
/// process is not root, or in surroundings where that cannot be.
template <class Body>
bool as_somebody_else(Body&& body) {
  bool can = false;
  std::thread([&] {
    // The system calls themselves change the one thread only.
    can = geteuid() == 0 && prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) == 0 &&
          syscall(SYS_setresuid, -1, somebody_else, -1) == 0;
    if (can) body();
  }).join();
  return can;
}

TEST_F(bootstrap, a_rank_0_of_another_user_is_refused) {
  const placement p = rank_of(1, 2);
  const std::string path = untax::meeting_place(p, untax::environment()).socket_path();
  std::optional<untax::unix_socket> listener;
  if (!as_somebody_else([&] { listener = untax::unix_socket::listen(path); }))
    GTEST_SKIP() << "only root can be somebody else";
  ASSERT_TRUE(listener);
  const untax::settings s = settings_with(300ms);
  expect_error(error_of([&] { (void)join(p, s, own_share::make(p, s)); }), errc::invalid_argument,
               {"rank 1: ", path, "belongs to user 65534"});
}

TEST_F(bootstrap, a_rank_of_another_user_is_not_let_in) {
  const placement p = rank_of(0, 2);
  const untax::settings s = settings_with(impatient);
  const own_share mine = own_share::make(p, s);
  untax::meeting_place place(p, untax::environment());
  bool met = false;
  std::thread intruder([&] {
    met = as_somebody_else([&] {
      std::optional<untax::unix_socket> socket;
      while (!socket) socket = untax::unix_socket::connect(place.socket_path());
      untax::greeting hello{untax::greeting::expected_magic, 1, 2, -1, {}, {}};
      hello.text.set(introduction(mine, s));
      (void)socket->send(untax::bytes_of(hello));
      (void)socket->wait(5000);
    });
  });
  std::string text = "everybody came";
  try {
    (void)gather_ranks(p, s, mine, place);
  } catch (const untax::error& e) {
    text = e.what();
  }
  intruder.join();
  if (!met) GTEST_SKIP() << "only root can be somebody else";
  EXPECT_NE(text.find("rank 1 did not come"), std::string::npos) << text;
}

}  // namespace
