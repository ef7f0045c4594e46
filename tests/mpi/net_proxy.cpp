// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The proxy of a node in an MPI job of two nodes of pretence, one rank each: `dies`: the sender's
// is killed in the middle of a message, which is an MPI error of both ends, and none of the next
// one; `dies_there`: the receiver's; `goes`: it is there while messages go, and is gone once the
// rank that needed it is.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>

#include "../unit/process_state.h"
#include "device_buffer.h"

namespace {

using accord::test::contents;
using accord::test::DeviceBuffer;
using accord::test::on_device;

constexpr int kCount = 500000;
constexpr int kTag = 5;
constexpr std::chrono::seconds kPatience{30};

int rank = 0;
int failures = 0;

void expect(bool good, const std::string& how) {
  if (good) return;
  std::fprintf(stderr, "rank %d: %s\n", rank, how.c_str());
  ++failures;
}

// What proxies of this rank have in their environment, and nothing else has but this rank.
std::string mark() { return "PROXY_TEST_OF=" + std::to_string(::getpid()); }

std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// -1: there is none.
pid_t proxy_of_this_rank() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    pid_t process = -1;
    std::from_chars(name.data(), name.data() + name.size(), process);
    if (process > 0 && content_of(entry.path() / "comm") == "accord_proxy\n" &&
        content_of(entry.path() / "environ").find(mark() + '\0') != std::string::npos)
      return process;
  }
  return -1;
}

std::vector<int> numbers(int first) {
  std::vector<int> made(kCount);
  std::iota(made.begin(), made.end(), first);
  return made;
}

// What accord_last_path says of messages by the design that the job is to take.
std::string path_of_design() {
  const char* const name = std::getenv("ACCORD_NET_DESIGN");
  return std::string("net-") + (name != nullptr ? name : "");
}

// Until the receiver has said that it looks for headers, and the sender has its proxy.
pid_t warm_up() {
  const DeviceBuffer buffer = on_device(numbers(rank));
  pid_t proxy = -1;
  for (const auto end = std::chrono::steady_clock::now() + kPatience;;) {
    if (rank == 0)
      MPI_Send(buffer.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD);
    else
      MPI_Recv(buffer.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int is_enough = 0;
    if (rank == 0 && accord_last_path() == path_of_design()) proxy = proxy_of_this_rank();
    if (rank == 0) is_enough = proxy > 0 || std::chrono::steady_clock::now() > end ? 1 : 0;
    MPI_Bcast(&is_enough, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (is_enough != 0) break;
  }
  MPI_Barrier(MPI_COMM_WORLD);  // a sender waits for nobody
  expect(rank != 0 || proxy > 0, "no proxy");
  expect(rank != 1 || contents(buffer) == numbers(0), "wrong data");
  return proxy;
}

std::string text_of(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (code != MPI_SUCCESS) MPI_Error_string(code, text, &length);
  return text;
}

// It is stopped first, so that the message is under way when it is killed. A sender whose receiver
// is not given the processor in time may have kept the message, and is then not told; such a
// message may come all the same, whole.
void dies(pid_t proxy) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const DeviceBuffer buffer = on_device(numbers(rank));
  if (rank == 1) {
    const int code =
        MPI_Recv(buffer.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(code != MPI_SUCCESS || contents(buffer) == numbers(0),
           "the receiver has neither an error nor the message");
    return;
  }
  if (proxy <= 0) return;
  ::kill(proxy, SIGSTOP);
  const pid_t killer = ::fork();
  if (killer == 0) {
    ::usleep(500000);
    ::kill(proxy, SIGKILL);
    ::_exit(0);
  }
  ::usleep(200000);  // so that the receiver waits already
  const auto began = std::chrono::steady_clock::now();
  const int code = MPI_Send(buffer.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  char node[256] = "";
  (void)::gethostname(node, sizeof node);
  if (code == MPI_SUCCESS) return;
  const std::string text = text_of(code);
  // The receiver may have learned of it first.
  const bool is_named =
      text.find("the proxy of node") != std::string::npos && text.find(node) != std::string::npos;
  expect(is_named || text.find("the receiver has given up") != std::string::npos,
         "the sender is told: \"" + text + "\"");
  expect(seconds.count() < 30, "that took " + std::to_string(seconds.count()) + " s");
}

void stop(pid_t proxy) {
  expect(proxy > 0, "no proxy");
  if (proxy <= 0) return;
  ::sleep(2);  // one that had to wait for a core is spared for a second
  ::kill(proxy, SIGSTOP);
  expect(accord::test::wait_until_stopped(proxy), "the proxy does not stop");
}

// The sender may have kept the message, or learn of it from the receiver.
void dies_there(pid_t proxy) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const DeviceBuffer buffer = on_device(numbers(rank));
  if (rank == 1) stop(proxy);
  MPI_Barrier(MPI_COMM_WORLD);
  int token = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 0) {
    MPI_Isend(buffer.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD, &request);
    MPI_Send(&token, 1, MPI_INT, 1, kTag + 1, MPI_COMM_WORLD);
    (void)MPI_Wait(&request, MPI_STATUS_IGNORE);
    return;
  }
  // The header is there, so that the proxy is asked for the message at once, before it is killed.
  MPI_Recv(&token, 1, MPI_INT, 0, kTag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  const pid_t killer = ::fork();
  if (killer == 0) {
    ::sleep(1);
    if (proxy > 0) ::kill(proxy, SIGKILL);
    ::_exit(0);
  }
  const int code =
      MPI_Recv(buffer.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  char node[256] = "";
  (void)::gethostname(node, sizeof node);
  const std::string text = text_of(code);
  expect(
      text.find("the proxy of node") != std::string::npos && text.find(node) != std::string::npos,
      "the receiver is told: \"" + text + "\"");
}

// One look at a request, by each call for that in turn.
bool is_complete(int look, MPI_Request* request, MPI_Status* status) {
  int flag = 0;
  int index = 0;
  switch (look % 5) {
    case 0:
      MPI_Test(request, &flag, status);
      break;
    case 1:
      MPI_Testall(1, request, &flag, status);
      break;
    case 2:
      MPI_Testany(1, request, &index, &flag, status);
      break;
    case 3: {
      int completed = 0;
      MPI_Testsome(1, request, &completed, &index, status);
      flag = completed == 1 ? 1 : 0;
      break;
    }
    default:
      MPI_Request_get_status(*request, &flag, status);
      if (flag != 0) MPI_Wait(request, status);
  }
  return flag != 0;
}

// What another request brings is not held up, neither by a call for any nor by one for some.
void comes_beside(MPI_Request* requests, bool any) {
  int index = MPI_UNDEFINED;
  int completed = 1;
  if (any) {
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
  } else {
    int indices[2];
    MPI_Waitsome(2, requests, &completed, indices, MPI_STATUSES_IGNORE);
    index = indices[0];
  }
  expect(completed == 1 && index == 1, "a message is waited for whose proxy stands still");
  expect(requests[0] != MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL, "handles are lost");
}

// A call that only asks for a message does not wait until it has come: here its proxy stands still.
void is_tested(pid_t proxy, bool is_persistent) {
  const DeviceBuffer buffer = on_device(numbers(rank));
  int tokens[3] = {};
  if (rank == 1) stop(proxy);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(buffer.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD, &request);
    for (int& token : tokens)  // behind the header
      MPI_Send(&token, 1, MPI_INT, 1, kTag + 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return;
  }
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Request& request = requests[0];
  if (is_persistent) {
    MPI_Recv_init(buffer.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
  } else {
    MPI_Irecv(buffer.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, &request);
  }
  MPI_Recv(&tokens[0], 1, MPI_INT, 0, kTag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (const bool any : {true, false}) {
    MPI_Irecv(&tokens[1], 1, MPI_INT, 0, kTag + 1, MPI_COMM_WORLD, &requests[1]);
    comes_beside(requests, any);
  }
  const pid_t waker = ::fork();
  if (waker == 0) {
    ::sleep(1);
    if (proxy > 0) ::kill(proxy, SIGCONT);
    ::_exit(0);
  }
  int looks = 0;
  bool is_there = false;
  MPI_Status status;
  for (const auto end = std::chrono::steady_clock::now() + kPatience;
       !is_there && std::chrono::steady_clock::now() < end; ++looks)
    is_there = is_complete(looks, &request, &status);
  ::waitpid(waker, nullptr, 0);
  expect(is_there, "the message does not come");
  expect(looks > 10, "of " + std::to_string(looks) + " looks one waits");
  expect(accord_last_path() == path_of_design(), "it goes another way");
  expect(contents(buffer) == numbers(0), "wrong data");
  int received = 0;
  MPI_Get_count(&status, MPI_INT, &received);
  expect(received == kCount && status.MPI_SOURCE == 0 && status.MPI_TAG == kTag, "wrong status");
  if (is_persistent) MPI_Request_free(&request);
}

void wait_for_end_of(pid_t proxy) {
  expect(accord::test::wait_until_ended(proxy), "the proxy does not end");
}

void goes_another_way(pid_t proxy) {
  const DeviceBuffer buffer = on_device(numbers(rank));
  if (rank == 0) {
    wait_for_end_of(proxy);
    const int code = MPI_Send(buffer.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD);
    expect(code == MPI_SUCCESS, "the next message is an error: " + text_of(code));
    expect(accord_last_path() != path_of_design(), "the next message goes by the proxy");
    return;
  }
  const int code =
      MPI_Recv(buffer.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  expect(code == MPI_SUCCESS, "the next message is an error: " + text_of(code));
  expect(contents(buffer) == numbers(0), "the next message is wrong");
}

void goes(pid_t proxy) {
  if (rank != 0) return;
  wait_for_end_of(proxy);
  expect(proxy_of_this_rank() < 0, "the proxy is still there after MPI_Finalize");
}

}  // namespace

int main(int argc, char** argv) {
  ::setenv("PROXY_TEST_OF", std::to_string(::getpid()).c_str(), 1);
  const std::string test = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const pid_t proxy = warm_up();
  const bool has_died = test.rfind("dies", 0) == 0;
  if (test == "dies") dies(proxy);
  if (test == "dies") goes_another_way(proxy);
  if (test == "dies_there") dies_there(proxy_of_this_rank());
  if (has_died && failures == 0) std::printf("rank %d is told\n", rank);
  if (test == "is_tested")
    for (const bool is_persistent : {false, true}) is_tested(proxy_of_this_rank(), is_persistent);
  if (!has_died) MPI_Finalize();
  if (test == "goes") goes(proxy);
  if (has_died) {
    std::fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    // What is left of the message is nothing that MPI_Finalize could wait for.
    ::_exit(failures == 0 ? 0 : 1);
  }
  return failures == 0 ? 0 : 1;
}
