// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The proxy as a process: ranks that start at once get one, it goes with the last of them however
// that ends, its own death is an error, and neither leaves anything or is noticed by the rest of
// the process.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "proxy/client.h"
#include "proxy/meeting_place.h"
#include "support.h"

namespace accord::proxy {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kSoon{20};

std::string proxy_program() {
  const char* const path = std::getenv("ACCORD_TEST_PROXY");
  return path != nullptr ? path : "accord_proxy";
}

// Of this test alone.
Meeting fresh_meeting() {
  static std::uint64_t number = 0;
  return {.cookie = static_cast<std::uint64_t>(getpid()) << 32 | ++number,
          .node = 7,
          .program = proxy_program(),
          .settings = {}};
}

// Orphans of this process become its children, so that it sees how proxies end.
class Proxy : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1)); }

  static constexpr int kNever = -1;
  // The status with which it ends soon.
  static int end_of(std::int64_t process) {
    const auto end = Clock::now() + kSoon;
    while (Clock::now() < end) {
      int status = 0;
      if (waitpid(static_cast<pid_t>(process), &status, WNOHANG) > 0) return status;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return kNever;
  }
  static bool lives(std::int64_t process) {
    return waitpid(static_cast<pid_t>(process), nullptr, WNOHANG) == 0;
  }
};

// Whether a socket of that name is anywhere in this network namespace.
bool has_place(const Meeting& meeting) {
  char name[64];
  std::snprintf(name, sizeof name, "accord-proxy-%016llx-",
                static_cast<unsigned long long>(meeting.cookie));
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    if (line.find(name) != std::string::npos) return true;
  }
  return false;
}

std::size_t entries(const char* folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

std::vector<std::string> open_files(std::int64_t process) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/fd", error))
    files.push_back(std::filesystem::read_symlink(entry.path(), error).string());
  EXPECT_GT(files.size(), 3U);
  return files;
}

// A rank of its own: connects once it is told to, tells which proxy it has got, and stays until it
// is told to end.
struct Rank {
  pid_t process = -1;
  int orders = -1;
  int news = -1;

  explicit Rank(const Meeting& meeting) {
    int down[2], up[2];
    EXPECT_EQ(0, pipe2(down, O_CLOEXEC));
    EXPECT_EQ(0, pipe2(up, O_CLOEXEC));
    process = fork();
    if (process == 0) {
      close(down[1]);
      live(meeting, down[0], up[1]);
    }
    close(down[0]);
    close(up[1]);
    orders = down[1];
    news = up[0];
  }
  [[noreturn]] static void live(const Meeting& meeting, int orders, int news) {
    char order = 0;
    if (read(orders, &order, 1) != 1) _exit(1);
    std::unique_ptr<Client> client;
    std::int64_t proxy = -1;
    if (Client::connect(meeting, client).ok()) proxy = client->process();
    if (write(news, &proxy, sizeof proxy) != sizeof proxy) _exit(1);
    (void)!read(orders, &order, 1);
    _exit(0);
  }
  void connect() const { EXPECT_EQ(1, write(orders, "c", 1)); }
  std::int64_t proxy() const {
    std::int64_t number = -1;
    pollfd look{news, POLLIN, 0};
    if (poll(&look, 1, 20000) != 1 || read(news, &number, sizeof number) != sizeof number)
      return -1;
    return number;
  }
  void end(bool by_force) {
    if (by_force)
      kill(process, SIGKILL);
    else
      EXPECT_EQ(1, write(orders, "e", 1));
    close(orders);
    close(news);
    EXPECT_EQ(process, waitpid(process, nullptr, 0));
  }
};

TEST_F(Proxy, IsOneForAllThatStartAtOnce) {
  constexpr int kRounds = 5;
  for (int round = 0; round < kRounds; ++round) {
    const Meeting meeting = fresh_meeting();
    std::vector<Rank> ranks;
    for (int rank = 0; rank < 8; ++rank) ranks.emplace_back(meeting);
    for (const Rank& rank : ranks) rank.connect();
    const std::int64_t proxy = ranks[0].proxy();
    EXPECT_GT(proxy, 0);
    for (std::size_t rank = 1; rank < ranks.size(); ++rank) EXPECT_EQ(proxy, ranks[rank].proxy());
    for (std::size_t rank = 0; rank + 1 < ranks.size(); ++rank) ranks[rank].end(rank % 2 == 0);
    EXPECT_TRUE(lives(proxy)) << "one rank is left";
    ranks.back().end(round % 2 == 0);
    EXPECT_EQ(0, end_of(proxy));
    EXPECT_FALSE(has_place(meeting));
  }
}

TEST_F(Proxy, LeavesNothingBehind) {
  const std::size_t descriptors = entries("/proc/self/fd");
  const Meeting meeting = fresh_meeting();
  {
    std::unique_ptr<Client> client;
    ASSERT_OK(Client::connect(meeting, client));
    EXPECT_EQ(descriptors + 1, entries("/proc/self/fd"));
    EXPECT_TRUE(has_place(meeting));
    EXPECT_OK(client->check());
    const std::int64_t proxy = client->process();
    for (const std::string& file : open_files(proxy)) {
      const bool is_in_memory = file.starts_with("/dev/shm/") || file.starts_with("/tmp/");
      EXPECT_FALSE(is_in_memory && !file.ends_with("(deleted)")) << file;
    }
    client.reset();
    EXPECT_EQ(0, end_of(proxy));
  }
  EXPECT_EQ(descriptors, entries("/proc/self/fd"));
  EXPECT_FALSE(has_place(meeting));
}

TEST_F(Proxy, ItsDeathIsAnErrorThatNamesTheNode) {
  const Meeting meeting = fresh_meeting();
  std::unique_ptr<Client> client;
  ASSERT_OK(Client::connect(meeting, client));
  ASSERT_EQ(0, kill(static_cast<pid_t>(client->process()), SIGKILL));
  EXPECT_TRUE(WIFSIGNALED(end_of(client->process())));
  std::shared_ptr<Pool> pool;
  const Status asked = client->take_pool(4096, pool);
  EXPECT_EQ(StatusCode::device_error, asked.code());
  char name[256] = "";
  ASSERT_EQ(0, gethostname(name, sizeof name));
  EXPECT_NE(std::string::npos, asked.message().find(name)) << asked.message();
  EXPECT_CODE(device_error, client->check());
  EXPECT_FALSE(has_place(meeting));
  // Another one may take its place.
  std::unique_ptr<Client> next;
  ASSERT_OK(Client::connect(meeting, next));
  EXPECT_NE(client->process(), next->process());
  EXPECT_CODE(device_error, client->check());
  const std::int64_t proxy = next->process();
  next.reset();
  EXPECT_EQ(0, end_of(proxy));
}

volatile sig_atomic_t signals_seen = 0;

TEST_F(Proxy, IsNotNoticedByTheProcessThatStartsIt) {
  struct sigaction counting {};
  struct sigaction before {};
  counting.sa_handler = [](int) { signals_seen = signals_seen + 1; };
  sigaction(SIGCHLD, &counting, &before);
  // Without a subreaper nobody here is its parent.
  ASSERT_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 0));
  sigset_t blocked, after;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  std::unique_ptr<Client> client;
  const Status connected = Client::connect(fresh_meeting(), client);
  pthread_sigmask(SIG_UNBLOCK, &blocked, &after);
  sigaction(SIGCHLD, &before, nullptr);
  ASSERT_OK(connected);
  EXPECT_EQ(0, signals_seen);
  EXPECT_TRUE(sigismember(&after, SIGUSR1));
  EXPECT_FALSE(sigismember(&after, SIGUSR2));
  EXPECT_EQ(-1, waitpid(-1, nullptr, WNOHANG));
  EXPECT_EQ(ECHILD, errno);
}

std::string link_of(std::int64_t process, int descriptor) {
  std::error_code error;
  return std::filesystem::read_symlink(
             "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor), error)
      .string();
}

TEST_F(Proxy, InheritsNothing) {
  int ends[2];
  ASSERT_EQ(0, pipe(ends));  // not marked, as many programs do
  ASSERT_EQ(0, setenv("LD_PRELOAD", "/nonexistent/preload.so", 1));
  std::unique_ptr<Client> client;
  const Status connected = Client::connect(fresh_meeting(), client);
  unsetenv("LD_PRELOAD");
  ASSERT_OK(connected);
  const std::int64_t proxy = client->process();
  close(ends[1]);
  char byte = 0;
  EXPECT_EQ(0, read(ends[0], &byte, 1)) << "somebody else has the other end";
  close(ends[0]);
  for (int standard = 0; standard < 3; ++standard) EXPECT_EQ("/dev/null", link_of(proxy, standard));
  EXPECT_EQ(proxy, getpgid(static_cast<pid_t>(proxy)));
  EXPECT_EQ(getsid(0), getsid(static_cast<pid_t>(proxy)))
      << "it would compete with all ranks as one";
  std::ifstream maps("/proc/" + std::to_string(proxy) + "/environ");
  std::string environment((std::istreambuf_iterator<char>(maps)), std::istreambuf_iterator<char>());
  EXPECT_EQ(std::string::npos, environment.find("LD_PRELOAD"));
  client.reset();
  EXPECT_EQ(0, end_of(proxy));
}

TEST_F(Proxy, DoesNotLiveOnForChildrenOfARank) {
  std::unique_ptr<Client> client;
  ASSERT_OK(Client::connect(fresh_meeting(), client));
  const std::int64_t proxy = client->process();
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  client.reset();
  EXPECT_EQ(0, end_of(proxy));
  kill(child, SIGKILL);
  EXPECT_EQ(child, waitpid(child, nullptr, 0));
}

TEST_F(Proxy, IsAnotherOneForAnotherJobOrNode) {
  const Meeting first = fresh_meeting();
  Meeting second = first;
  second.node = first.node + 1;
  const Meeting third = fresh_meeting();
  std::array<std::unique_ptr<Client>, 3> clients;
  ASSERT_OK(Client::connect(first, clients[0]));
  ASSERT_OK(Client::connect(second, clients[1]));
  ASSERT_OK(Client::connect(third, clients[2]));
  EXPECT_NE(clients[0]->process(), clients[1]->process());
  EXPECT_NE(clients[0]->process(), clients[2]->process());
  for (auto& client : clients) {
    const std::int64_t proxy = client->process();
    client.reset();
    EXPECT_EQ(0, end_of(proxy));
  }
}

TEST_F(Proxy, SharesRanksOutAmongItsThreads) {
  // What is set for the proxy counts for more than what it inherits.
  ASSERT_EQ(0, setenv("ACCORD_PROXY_THREADS", "3", 1));
  Meeting meeting = fresh_meeting();
  unsetenv("ACCORD_PROXY_THREADS");
  meeting.settings = {"ACCORD_PROXY_THREADS=2"};
  std::array<std::unique_ptr<Client>, 4> clients;
  for (auto& client : clients) ASSERT_OK(Client::connect(meeting, client));
  for (const auto& client : clients) EXPECT_EQ(clients[0]->process(), client->process());
  if (clients[0]->worker().empty()) GTEST_SKIP() << "no UCX here";
  EXPECT_NE(clients[0]->worker(), clients[1]->worker());
  EXPECT_EQ(clients[0]->worker(), clients[2]->worker());
  EXPECT_EQ(clients[1]->worker(), clients[3]->worker());
  const std::int64_t proxy = clients[0]->process();
  // One that goes leaves room for another one at its thread.
  const auto first = clients[0]->worker();
  clients[0].reset();
  clients[2].reset();
  // Once the proxy has seen that they are gone.
  const auto end = Clock::now() + kSoon;
  do {
    clients[0].reset();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ASSERT_OK(Client::connect(meeting, clients[0]));
  } while (clients[0]->worker() != first && Clock::now() < end);
  EXPECT_EQ(first, clients[0]->worker());
  for (auto& client : clients) client.reset();
  EXPECT_EQ(0, end_of(proxy));
}

TEST_F(Proxy, GivesThePoolsOfRanksThatAreGoneToOthers) {
  constexpr std::size_t kPool = 1 << 20;
  Meeting meeting = fresh_meeting();
  meeting.settings = {"ACCORD_PROXY_BYTES=1M"};
  std::unique_ptr<Client> stays, goes;
  ASSERT_OK(Client::connect(meeting, stays));
  ASSERT_OK(Client::connect(meeting, goes));
  if (stays->worker().empty()) GTEST_SKIP() << "no UCX here";
  std::shared_ptr<Pool> pool, next;
  ASSERT_OK(goes->take_pool(kPool, pool));
  EXPECT_CODE(unsupported, stays->take_pool(kPool, next));
  const auto began = Clock::now();
  goes.reset();
  // Others may read what it has announced, until they know that it is gone.
  Status taken;
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    taken = stays->take_pool(kPool, next);
  } while (!taken.ok() && Clock::now() - began < kSoon);
  EXPECT_OK(taken);
  EXPECT_GT(Clock::now() - began, std::chrono::seconds(1));
  ASSERT_NE(nullptr, next);
  next->pages.data()[kPool - 1] = std::byte{1};
  EXPECT_EQ(std::byte{1}, pool->pages.data()[kPool - 1]) << "it is another pool";
  EXPECT_CODE(unsupported, stays->take_pool(kPool, pool));
}

// Waits for the proxy to take what this rank sends, or to say something.
bool wait_for(int socket, short event) {
  pollfd look{socket, event, 0};
  constexpr int kMs = 20000;
  return poll(&look, 1, kMs) == 1 && (look.revents & event) != 0;
}

// As one whose threads do not run for a while: more answers than its socket holds.
TEST_F(Proxy, KeepsTheAnswersOfARankThatDoesNotListen) {
  constexpr std::uint64_t kMessages = 450;
  const Meeting meeting = fresh_meeting();
  std::unique_ptr<Client> starts;
  ASSERT_OK(Client::connect(meeting, starts));
  node::Descriptor socket;
  bool is_there = false;
  ASSERT_OK(connect_to_place(meeting.cookie, meeting.node, socket, is_there));
  ASSERT_TRUE(is_there);
  Packet request;
  request.kind = Kind::hello;
  request.words[0] = kVersion;
  bool sent = false;
  ASSERT_OK(send_packet(socket.number(), request, sent));
  ASSERT_TRUE(wait_for(socket.number(), POLLIN));
  // Each is refused, since its memory cannot be.
  for (std::uint64_t number = 1; number <= kMessages; ++number) {
    request.kind = Kind::carry;
    put_words({.number = number, .allocation_bytes = 1, .offset_bytes = 2}, request);
    do {
      ASSERT_TRUE(wait_for(socket.number(), POLLOUT)) << "of " << number;
      ASSERT_TRUE(send_packet(socket.number(), request, sent).ok()) << "of " << number;
    } while (!sent);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::uint64_t answered = 0;
  Packet answer;
  while (answered < kMessages) {
    bool came = false;
    ASSERT_TRUE(wait_for(socket.number(), POLLIN)) << "after " << answered;
    ASSERT_TRUE(receive_packet(socket.number(), answer, came).ok()) << "after " << answered;
    if (!came || answer.kind == Kind::welcome) continue;
    ASSERT_EQ(Kind::ended, answer.kind);
    ASSERT_EQ(++answered, answer.words[0]);
  }
  const std::int64_t proxy = starts->process();
  starts.reset();
  socket.close();
  EXPECT_EQ(0, end_of(proxy));
}

// As a proxy that says so of one message, and not of the next.
TEST_F(Proxy, ThatLacksACoreIsSparedForAMoment) {
  const Meeting meeting = fresh_meeting();
  node::Descriptor place;
  ASSERT_OK(take_place(meeting.cookie, meeting.node, place));
  std::thread stands_in([&] {
    (void)wait_for(place.number(), POLLIN);
    node::Descriptor rank(accept4(place.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    Packet packet;
    bool came = false;
    while (!came && wait_for(rank.number(), POLLIN) &&
           receive_packet(rank.number(), packet, came).ok()) {
    }
    bool sent = false;
    packet.kind = Kind::welcome;
    EXPECT_OK(send_packet(rank.number(), packet, sent));
    packet.kind = Kind::ended;
    for (const std::uint64_t lacks : {1, 0}) {
      packet.words = {2 - lacks, 0, lacks};
      EXPECT_OK(send_packet(rank.number(), packet, sent));
    }
    (void)wait_for(rank.number(), POLLIN);  // until the rank goes
  });
  std::unique_ptr<Client> client;
  EXPECT_OK(Client::connect(meeting, client));
  ASSERT_NE(nullptr, client);
  EXPECT_TRUE(client->has_core());
  bool done = false;
  const auto end = Clock::now() + kSoon;
  while (!done && Clock::now() < end) EXPECT_OK(client->poll(1, done));
  EXPECT_FALSE(client->has_core());
  while (!client->has_core() && Clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(client->has_core());
  client.reset();
  stands_in.join();
}

// The proxy is started later, by a thread, when the program may change its environment.
TEST_F(Proxy, HasTheEnvironmentOfWhenItWasThoughtOf) {
  ASSERT_EQ(0, setenv("PROXY_TEST_SEES", "before", 1));
  const Meeting meeting = fresh_meeting();
  ASSERT_EQ(0, setenv("PROXY_TEST_SEES", "after", 1));
  std::unique_ptr<Client> client;
  ASSERT_OK(Client::connect(meeting, client));
  unsetenv("PROXY_TEST_SEES");
  std::ifstream file("/proc/" + std::to_string(client->process()) + "/environ");
  const std::string variables((std::istreambuf_iterator<char>(file)),
                              std::istreambuf_iterator<char>());
  EXPECT_NE(std::string::npos, variables.find("PROXY_TEST_SEES=before"));
}

TEST_F(Proxy, ThatCannotStartIsAnError) {
  Meeting meeting = fresh_meeting();
  std::unique_ptr<Client> client;
  meeting.program = "/nonexistent/accord_proxy";
  const Status missing = Client::connect(meeting, client);
  EXPECT_EQ(StatusCode::unsupported, missing.code());
  EXPECT_NE(std::string::npos, missing.message().find(meeting.program)) << missing.message();
  const std::size_t descriptors = entries("/proc/self/fd");
  meeting.program = "/bin/true";
  EXPECT_FALSE(Client::connect(meeting, client).ok());
  EXPECT_EQ(descriptors, entries("/proc/self/fd"));
  EXPECT_FALSE(has_place(meeting));
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

TEST_F(Proxy, StartedByHandSaysSo) {
  EXPECT_EQ(2, test::in_child([] {
              close(3);
              execl(proxy_program().c_str(), "accord_proxy", nullptr);
              return 99;
            }));
}

}  // namespace
}  // namespace accord::proxy
