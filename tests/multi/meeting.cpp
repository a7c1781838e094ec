// How the ranks find each other, and what happens when they do not.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <thread>

#include <fmt/format.h>

#include "ranks.hpp"
#include "src/world/bootstrap.hpp"
#include "src/world/meeting_place.hpp"
#include "src/world/messages.hpp"
#include "src/world/settings.hpp"
#include "src/world/unix_socket.hpp"

namespace {

using namespace multi_test;
using untax::environment;
using untax::errc;
using untax::unix_socket;
using untax::world;
using variables = std::map<std::string, std::string>;

environment as_rank(int rank, int size) {
  return environment(variables{{"UNTAX_RANK", std::to_string(rank)},
                               {"UNTAX_WORLD_SIZE", std::to_string(size)},
                               {"UNTAX_RENDEZVOUS", std::getenv("UNTAX_RENDEZVOUS")}});
}

untax::world_options joining_within(std::chrono::milliseconds limit) {
  untax::world_options options = small_world();
  options.join_limit = limit;
  return options;
}

TEST(message_text, is_cut_to_the_size_of_its_field) {
  untax::message_text<8> text;
  text.set("1234567");
  EXPECT_EQ(text.get(), "1234567");
  text.set("123456789");
  EXPECT_EQ(text.get(), "1234567") << "the last character ends it";
  text.set("");
  EXPECT_EQ(text.get(), "");
}

const rank_body one_missing("one missing", [] {
  if (launched_rank() == 2) return;
  world w = world::from_environment(joining_within(impatient));
});

TEST(meeting, names_the_missing_rank) {
  const belongings before = belongings::now();
  const outcome o = launch("one missing", 4);
  for (const int rank : {0, 1, 3}) {
    expect_error(o, rank, errc::timeout,
                 {fmt::format("rank {}: ", rank), "rank 2 did not come within 1500 ms",
                  "UNTAX_JOIN_LIMIT_MS"});
  }
  EXPECT_EQ(belongings::now(), before);
}

const rank_body no_host("no rank 0", [] {
  if (launched_rank() == 0) return;
  world w = world::from_environment(joining_within(impatient));
});

TEST(meeting, reports_that_rank_0_is_missing) {
  const outcome o = launch("no rank 0", 2);
  expect_error(o, 1, errc::timeout, {"rank 1: rank 0 did not come", "1500 ms", "UNTAX_RENDEZVOUS"});
}

const rank_body twins("twins", [] {
  const int rank = launched_rank() == 0 ? 0 : 1;
  world w = world::from_environment(joining_within(patient), as_rank(rank, 3));
});

TEST(meeting, refuses_a_rank_that_comes_twice) {
  const outcome o = launch("twins", 3);
  for (int rank = 0; rank < 3; ++rank) {
    expect_error(o, rank, errc::disagreement, {"two processes say that they are rank 1 of 3"});
  }
}

/// A guest that is none: it says hello as `rank` and leaves.
void false_guest(int rank, int size, const std::string& introduction) {
  const untax::placement p = untax::placement_from(as_rank(1, size));
  const untax::meeting_place place(p, environment());
  while (true) {
    const auto socket = unix_socket::connect(place.socket_path());
    if (socket) {
      untax::greeting hello{untax::greeting::expected_magic, rank, size, -1, {}, {}};
      hello.text.set(introduction);
      EXPECT_TRUE(socket->send(untax::bytes_of(hello)));
      untax::answer reply{};
      if (rank > 1 && socket->wait(5000)) {
        EXPECT_TRUE(socket->receive(untax::writable_bytes_of(reply)));
        say("ANSWER " + reply.reason.get());
      }
      return;
    }
    std::this_thread::sleep_for(1ms);
  }
}

const rank_body stranger("stranger", [] {
  if (launched_rank() == 1) return false_guest(7, 2, "something else");
  world w = world::from_environment(joining_within(patient));
});

TEST(meeting, refuses_a_stranger_and_tells_it_why) {
  const outcome o = launch("stranger", 2);
  expect_error(o, 0, errc::disagreement, {"different settings", "rank 7: something else"});
  EXPECT_NE(o.said(1, "ANSWER").find("different settings"), std::string::npos) << o.all(1);
}

const rank_body leaver("leaves the meeting", [] {
  // Rank 2 never comes, so that rank 0 is still waiting when rank 1 leaves.
  if (launched_rank() == 2) return;
  if (launched_rank() == 1) {
    const environment env = as_rank(1, 3);
    const auto s = untax::settings::of(joining_within(patient), env);
    return false_guest(
        1, 3, untax::introduction(untax::own_share::make(untax::placement_from(env), s), s));
  }
  world w = world::from_environment(joining_within(patient));
});

TEST(meeting, says_which_directory_is_missing) {
  untax::placement p;
  p.rendezvous = "/nowhere/at/all";
  try {
    (void)untax::meeting_place(p, environment()).open();
    ADD_FAILURE() << "opened";
  } catch (const untax::error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
    EXPECT_NE(std::string(e.what()).find("whose parent directory does not exist"),
              std::string::npos)
        << e.what();
  }
}

TEST(meeting, does_not_wait_for_a_rank_that_left) {
  const auto begin = std::chrono::steady_clock::now();
  const outcome o = launch("leaves the meeting", 3);
  expect_error(o, 0, errc::peer_lost, {"rank 1 ended while the world was set up"});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, soon);
}

const rank_body host_dies("rank 0 dies", [] {
  if (launched_rank() == 0) {
    const untax::placement p = untax::placement_from(as_rank(0, 3));
    untax::meeting_place place(p, environment());
    const unix_socket listener = place.open();
    EXPECT_TRUE(listener.wait(20000));
    const auto guest = listener.accept();
    std::this_thread::sleep_for(50ms);
    place.close();
    _exit(5);
  }
  world w = world::from_environment(joining_within(patient));
});

TEST(meeting, notices_that_rank_0_has_died) {
  const outcome o = launch("rank 0 dies", 2);
  EXPECT_EQ(o.result.ends[0].exit_code, 5);
  expect_error(o, 1, errc::peer_lost, {"rank 1: rank 0 ended while the world was set up"});
}

const rank_body simple("simple", [] {
  world w = world::from_environment(small_world());
  w.barrier();
});

class prescribed : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(directory_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string directory_ = testing::TempDir() + "untax-test-XXXXXX";
};

TEST_F(prescribed, directory_is_used_and_kept) {
  expect_ok(launch("simple", 2, {{"UNTAX_RENDEZVOUS", directory_}}));
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(prescribed, directory_is_made_and_removed_if_there_is_none) {
  expect_ok(launch("simple", 2, {{"UNTAX_RENDEZVOUS", directory_ + "/new"}}));
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(prescribed, socket_that_a_dead_job_left_is_replaced) {
  {
    // The number in its name counts the worlds of a process, and this is the first one of the
    // ranks.
    const auto abandoned = unix_socket::listen(directory_ + "/world-0");
    ASSERT_TRUE(abandoned);
  }
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/world-0"));
  expect_ok(launch("simple", 3, {{"UNTAX_RENDEZVOUS", directory_}}));
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(prescribed, socket_of_a_living_job_is_left_alone) {
  // The socket of the first world of a job that says the same word.
  untax::placement p;
  p.rendezvous = directory_;
  p.launch = "UNTAX_LAUNCH=word";
  std::string path = untax::meeting_place(p, environment()).socket_path();
  const auto number = path.find("/world-") + 7;
  path.replace(number, path.find('-', number) - number, "0");
  const auto other = unix_socket::listen(path);
  ASSERT_TRUE(other);
  const outcome o = launch(
      "simple", 2,
      {{"UNTAX_RENDEZVOUS", directory_}, {"UNTAX_LAUNCH", "word"}, {"UNTAX_JOIN_LIMIT_MS", "500"}},
      [&](int rank, const std::string&) {
        // Rank 0 has reported its error; rank 1 must not wait for a peer that never answers.
        if (rank == 0) (void)other->accept();
      });
  expect_error(o, 0, errc::invalid_argument, {"another job meets in", "UNTAX_RENDEZVOUS"});
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(prescribed, directory_that_others_can_enter_is_refused) {
  ASSERT_EQ(chmod(directory_.c_str(), 0755), 0);
  const outcome o = launch("simple", 2, {{"UNTAX_RENDEZVOUS", directory_}});
  for (int rank = 0; rank < 2; ++rank) {
    expect_error(o, rank, errc::invalid_argument,
                 {directory_, "belongs to this user alone (mode 0700)", "UNTAX_RENDEZVOUS"});
  }
}

TEST_F(prescribed, link_to_a_directory_is_refused) {
  const std::string link = directory_ + "/link";
  std::filesystem::create_directory(directory_ + "/real");
  std::filesystem::create_symlink(directory_ + "/real", link);
  const outcome o = launch("simple", 2, {{"UNTAX_RENDEZVOUS", link}});
  expect_error(o, 0, errc::invalid_argument, {link, "mode 0700"});
}

TEST_F(prescribed, path_that_is_too_long_for_a_socket_is_refused) {
  const outcome o =
      launch("simple", 2, {{"UNTAX_RENDEZVOUS", directory_ + "/" + std::string(120, 'x')}});
  for (int rank = 0; rank < 2; ++rank)
    expect_error(o, rank, errc::invalid_argument, {"at most 107 characters"});
}

TEST(unix_sockets, carry_packets_descriptors_and_credentials) {
  std::string directory = testing::TempDir() + "untax-test-XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const std::string path = directory + "/s";
  EXPECT_FALSE(unix_socket::connect(path));
  {
    const auto listener = unix_socket::listen(path);
    ASSERT_TRUE(listener);
    EXPECT_FALSE(unix_socket::listen(path)) << "somebody listens there";
    auto drained = listener->accept();  // the question of the second listener
    const auto guest = unix_socket::connect(path);
    ASSERT_TRUE(guest);
    const auto host = listener->accept();
    ASSERT_TRUE(host);
    EXPECT_EQ(host->other_side().process, getpid());
    EXPECT_EQ(host->other_side().user, geteuid());
    std::array<std::byte, 8> data{std::byte{1}};
    EXPECT_FALSE(host->receive(data)) << "nothing is there yet";
    EXPECT_FALSE(host->wait(1));
    EXPECT_TRUE(guest->send(std::span(data).first(3), std::array{host->number(), guest->number()}));
    EXPECT_TRUE(host->wait(1000));
    const auto received = host->receive(data);
    ASSERT_TRUE(received);
    EXPECT_EQ(received->bytes, 3U);
    ASSERT_EQ(received->attachments.size(), 2U);
    for (const auto& attachment : received->attachments) EXPECT_TRUE(attachment);
  }
  EXPECT_FALSE(unix_socket::connect(path)) << "nobody listens any more";
  std::filesystem::remove_all(directory);
}

}  // namespace
