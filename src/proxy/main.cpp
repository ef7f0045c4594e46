// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// accord_proxy: the process of a node that carries messages of large size for the ranks of a job.
// Ranks start it (launch.h); by hand it does nothing. It writes nothing anywhere: what goes wrong
// it tells the ranks.
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/config.h"
#include "proxy/door.h"
#include "proxy/launch.h"
#include "proxy/server.h"

namespace accord::proxy {
namespace {

bool is_started_by_a_rank() {
  int listens = 0;
  socklen_t size_bytes = sizeof listens;
  return ::getsockopt(kListener, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size_bytes) == 0 &&
         listens != 0;
}

// What the rank had open and not marked is none of ours: a launcher waits for its pipes to close.
void close_inherited() {
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (int standard = 0; standard < kListener; ++standard) (void)::dup2(nowhere, standard);
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return;
  std::vector<int> inherited;
  while (const dirent* const entry = ::readdir(folder)) {
    int number = -1;
    const char* const name = entry->d_name;
    std::from_chars(name, name + std::strlen(name), number);
    if (number > kListener && number != ::dirfd(folder)) inherited.push_back(number);
  }
  ::closedir(folder);
  for (const int number : inherited) ::close(number);
}

// A launcher binds a rank to a core, where the proxy would be in its way.
void leave_core_of_rank() {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int core = 0; core < CPU_SETSIZE; ++core) CPU_SET(core, &all);
  (void)::sched_setaffinity(0, sizeof all, &all);
}

std::string or_nothing(const std::string& setting) { return setting == "none" ? "" : setting; }

net::JobKey key_of_job() {
  const char* const text = std::getenv(net::kJobKeyVariable);
  return text != nullptr ? net::job_key_in(text) : net::JobKey{};
}

// One of so many, which share the bounds.
std::unique_ptr<Server> make_server(std::size_t threads, const std::string& node) {
  std::unique_ptr<net::Worker> worker;
  Status opened = net::Worker::open({.net_devices = or_nothing(config().ucx_host_net),
                                     .transports = or_nothing(config().ucx_tls),
                                     .key = key_of_job(),
                                     .patience = std::chrono::seconds(config().peer_timeout_s)},
                                    worker);
  const std::size_t bytes_max = config().proxy_bytes / threads;
  return std::make_unique<Server>(
      std::move(worker), std::move(opened),
      Server::Bounds{.pool_bytes_max = bytes_max,
                     .freight = {.piece_bytes = config().proxy_chunk_bytes,
                                 .pieces_of_one = static_cast<std::size_t>(config().proxy_chunks),
                                 .bytes_max = bytes_max}},
      node);
}

int run(const std::string& node) {
  if (!is_started_by_a_rank()) {
    std::fputs("accord_proxy is started by the ranks of an MPI job; see docs/multi-node.md\n",
               stderr);
    return 2;
  }
  close_inherited();
  leave_core_of_rank();
  if (::chdir("/") != 0) return 2;
  ::signal(SIGPIPE, SIG_IGN);
  node::Descriptor listener(kListener);
  (void)::fcntl(kListener, F_SETFD, FD_CLOEXEC);
  const auto threads = static_cast<std::size_t>(std::max<std::int64_t>(1, config().proxy_threads));
  std::vector<std::unique_ptr<Server>> servers;
  while (servers.size() < threads) servers.push_back(make_server(threads, node));
  Door(std::move(listener), std::move(servers)).run();
  return 0;
}

}  // namespace
}  // namespace accord::proxy

int main(int count, char** arguments) { return accord::proxy::run(count > 1 ? arguments[1] : ""); }
