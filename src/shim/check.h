// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// ACCORD_CHECK, for developers of programs: says on stderr, once a call site, what a program does
// with device buffers that MPI or the device does not allow (docs/checking.md). Calls tell it what
// they touch (Call), what they start (start) and what they complete (Completion). While it is off
// each of these is a load and a branch. Host buffers are the host MPI's business.
#pragma once

#include <mpi.h>

#include <memory>

#include "shim/shim.h"

namespace accord::shim {
class Description;
}

namespace accord::shim::check {

inline bool on = false;

// Reads the setting.
void open();

// How MPI calls the arguments that a Description has as `send` and `recv`.
struct Names {
  const char* send = "buf";
  const char* recv = "buf";
};
inline constexpr Names kBoth{.send = "sendbuf", .recv = "recvbuf"};

enum class Lifetime { call, persistent };

struct Record;

// One MPI call, and the request that it makes, if it makes one: what is at `request` when this goes
// and was not there before.
class Call {
 public:
  Call(const char* name, MPI_Comm comm, Names names, const MPI_Request* request = nullptr,
       Lifetime lifetime = Lifetime::call)
      : name_(name), comm_(comm), names_(names), request_(request), lifetime_(lifetime) {}
  ~Call() {
    if (record_) [[unlikely]]
      conclude();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Before anything is done with the buffers.
  void look(const Description& d) {
    if (on) [[unlikely]]
      examine(d);
  }

 private:
  void examine(const Description& d);
  void conclude();

  const char* name_;
  MPI_Comm comm_;
  Names names_;
  const MPI_Request* request_;
  Lifetime lifetime_;
  MPI_Request before_ = MPI_REQUEST_NULL;
  std::shared_ptr<Record> record_;
};

// Persistent requests are about to be started.
void look_at_start(const char* name, int count, const MPI_Request requests[]);
inline void start(const char* name, int count, const MPI_Request requests[]) {
  if (on) [[unlikely]]
    look_at_start(name, count, requests);
}

// The request is freed: nobody will hear of its completion.
void forget_request(MPI_Request request);
inline void forget(MPI_Request request) {
  if (on) [[unlikely]]
    forget_request(request);
}

// A call that may complete requests of an array, for as long as this lives.
class Completion {
 public:
  Completion(const char* name, int count, const MPI_Request requests[]) {
    if (on) [[unlikely]]
      begin(name, count, requests);
  }
  ~Completion() {
    if (watched_) [[unlikely]]
      end();
  }
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

 private:
  struct Watched;

  void begin(const char* name, int count, const MPI_Request requests[]);
  void end();

  std::shared_ptr<Watched> watched_;
};

}  // namespace accord::shim::check
