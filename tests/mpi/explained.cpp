// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What accord_explain_json says of a call is what the call does: a thousand random collectives of
// device memory, of random sizes, on communicators whose info asks for nothing or for each
// algorithm there is, against accord_last_path. Results are conformance's business. "nodes" as the
// argument: the ranks are on several nodes. A second argument begins the draw elsewhere.
#include <accord/accord.h>
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "device_buffer.h"

namespace {

using accord::test::DeviceBuffer;
using accord::test::on_device;

constexpr int kCalls = 1000;
constexpr int kCountMax = 200'000;  // of ints: 800 KB, so that every range of the rule is drawn
// What is told holds once the ranks know the buffers and have opened them; where one was not ready
// to join, after later votes.
constexpr int kTimes = 6;
constexpr int kTimesMax = 48;

int rank = 0;
int size = 0;

struct Call {
  const char* name;
  bool blocks;  // one for each rank
  int (*make)(const void* send, void* receive, int count, int root, MPI_Comm comm);
};
constexpr Call kKinds[] = {
    {"bcast", false,
     [](const void*, void* r, int n, int root, MPI_Comm c) {
       return MPI_Bcast(r, n, MPI_INT, root, c);
     }},
    {"reduce", false,
     [](const void* s, void* r, int n, int root, MPI_Comm c) {
       return MPI_Reduce(s, r, n, MPI_INT, MPI_SUM, root, c);
     }},
    {"allreduce", false,
     [](const void* s, void* r, int n, int, MPI_Comm c) {
       return MPI_Allreduce(s, r, n, MPI_INT, MPI_MAX, c);
     }},
    {"allgather", true,
     [](const void* s, void* r, int n, int, MPI_Comm c) {
       return MPI_Allgather(s, n, MPI_INT, r, n, MPI_INT, c);
     }},
    {"alltoall", true,
     [](const void* s, void* r, int n, int, MPI_Comm c) {
       return MPI_Alltoall(s, n, MPI_INT, r, n, MPI_INT, c);
     }},
    {"gather", true,
     [](const void* s, void* r, int n, int root, MPI_Comm c) {
       return MPI_Gather(s, n, MPI_INT, r, n, MPI_INT, root, c);
     }},
    {"scatter", true,
     [](const void* s, void* r, int n, int root, MPI_Comm c) {
       return MPI_Scatter(s, n, MPI_INT, r, n, MPI_INT, root, c);
     }},
    {"reduce_scatter_block", true,
     [](const void* s, void* r, int n, int, MPI_Comm c) {
       return MPI_Reduce_scatter_block(s, r, n, MPI_INT, MPI_SUM, c);
     }},
    {"scan", false,
     [](const void* s, void* r, int n, int, MPI_Comm c) {
       return MPI_Scan(s, r, n, MPI_INT, MPI_SUM, c);
     }},
    {"exscan", false,
     [](const void* s, void* r, int n, int, MPI_Comm c) {
       return MPI_Exscan(s, r, n, MPI_INT, MPI_SUM, c);
     }},
};

// The string that follows `key` in one of the library's JSON texts, from `from` on.
std::string after(const std::string& text, const std::string& key, std::size_t& from) {
  const std::string wanted = "\"" + key + "\":\"";
  const std::size_t start = text.find(wanted, from);
  if (start == std::string::npos) return "";
  from = text.find('"', start + wanted.size());
  return text.substr(start + wanted.size(), from - start - wanted.size());
}

// Of each algorithm, by its name: what accord_last_path says of a call that went so.
std::map<std::string, std::string> paths() {
  std::string text(accord_algorithms_json(nullptr, 0), '\0');
  accord_algorithms_json(text.data(), text.size());
  text.resize(text.find("\"collectives\""));
  std::map<std::string, std::string> found;
  for (std::size_t from = 0;;) {
    const std::string name = after(text, "name", from);
    if (name.empty()) return found;
    found[name] = after(text, "path", from);
  }
}

std::string explained(const Call& call, std::size_t size_bytes, const std::string& info,
                      const char* key) {
  const auto ask = [&](char* buffer, std::size_t capacity) {
    return accord_explain_json(call.name, size, size_bytes, info.c_str(), buffer, capacity);
  };
  std::string text(ask(nullptr, 0), '\0');
  ask(text.data(), text.size());
  std::size_t from = 0;
  return after(text, key, from);
}

bool on_all(bool here) {
  const int mine = here ? 1 : 0;
  int all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all == 1;
}

MPI_Comm comm_that_asks_for(const std::string& algorithm) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "accord_algorithm", algorithm.c_str());
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
  MPI_Info_free(&info);
  return comm;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const bool across = argc > 1 && std::string(argv[1]) == "nodes";
  std::mt19937 random(argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1U);
  const auto draw = [&](std::size_t below) { return random() % below; };

  const auto path_of = paths();
  std::vector<std::string> names;
  std::vector<MPI_Comm> comms;
  for (const auto& [name, path] : path_of) {
    names.push_back(name);
    comms.push_back(comm_that_asks_for(name));
  }
  const std::vector<int> zeros(static_cast<std::size_t>(kCountMax * size));
  const DeviceBuffer send = on_device(zeros);
  const DeviceBuffer receive = on_device(zeros);

  int failures = 0;
  std::map<std::string, int> seen;
  for (int number = 0; number < kCalls; ++number) {
    const Call& call = kKinds[draw(std::size(kKinds))];
    const bool asks = draw(2) == 0;
    const std::size_t asked = draw(names.size());
    const std::string info = asks ? names[asked] : "auto";
    MPI_Comm comm = asks ? comms[asked] : MPI_COMM_WORLD;
    const double exponent = static_cast<double>(draw(1000)) / 1000 * std::log(kCountMax);
    const int count = static_cast<int>(std::exp(exponent));
    const int root = static_cast<int>(draw(static_cast<std::size_t>(size)));
    const std::string told = explained(call, static_cast<std::size_t>(count) * sizeof(int), info,
                                       across ? "across_nodes" : "algorithm");
    ++seen[told];
    const auto path = path_of.find(told);
    std::string went;
    const auto goes_so = [&] { return path != path_of.end() && path->second == went; };
    for (int times = kTimes; times <= kTimesMax; times *= 2) {
      for (int time = 0; time < times; ++time)
        call.make(send.pointer(), receive.pointer(), count, root, comm);
      went = accord_last_path();
      if (on_all(goes_so())) break;
    }
    if (goes_so()) continue;
    std::fprintf(stderr, "rank %d: %s of %d ints, info %s: explained as %s, went by %s\n", rank,
                 call.name, count, info.c_str(), told.c_str(), went.c_str());
    ++failures;
  }
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  if (rank == 0)
    for (const auto& [name, times] : seen) std::printf("%s %d\n", name.c_str(), times);
  const bool is_varied = seen.size() >= (across ? 3U : 5U);
  if (!is_varied) std::fprintf(stderr, "rank %d: only %zu algorithms\n", rank, seen.size());
  int all = 0;
  const int mine = failures + (is_varied ? 0 : 1);
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}
