// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Latency, bandwidth and bidirectional bandwidth between ranks 0 and 1. The other ranks take no
// part.
#include "bench/operation.h"

namespace accord::bench {
namespace {

constexpr int kTag = 1;
constexpr int kAnswerTag = 2;

bool takes_part(const Shape& shape) { return shape.rank < 2; }
int partner(const Shape& shape) { return 1 - shape.rank; }
std::size_t window(const Shape& shape) { return static_cast<std::size_t>(shape.window); }

enum class Direction { send, receive };

// One message in one direction, in one of the three forms.
class Message : public Invocation {
 public:
  Message(const MpiTable& mpi, const Call& call, Direction direction)
      : mpi_(mpi), call_(call), direction_(direction) {}

 protected:
  int blocking() {
    if (direction_ == Direction::send) {
      return mpi_.Send(call_.send, count(), call_.type, partner(call_.shape), kTag, call_.comm);
    }
    return mpi_.Recv(call_.recv, count(), call_.type, partner(call_.shape), kTag, call_.comm,
                     MPI_STATUS_IGNORE);
  }
  int begin(MPI_Request* request) {
    if (direction_ == Direction::send) {
      return mpi_.Isend(call_.send, count(), call_.type, partner(call_.shape), kTag, call_.comm,
                        request);
    }
    return mpi_.Irecv(call_.recv, count(), call_.type, partner(call_.shape), kTag, call_.comm,
                      request);
  }
  int prepare(MPI_Request* request) {
    if (direction_ == Direction::send) {
      return mpi_.Send_init(call_.send, count(), call_.type, partner(call_.shape), kTag, call_.comm,
                            request);
    }
    return mpi_.Recv_init(call_.recv, count(), call_.type, partner(call_.shape), kTag, call_.comm,
                          request);
  }
  int wait(MPI_Request* request) { return mpi_.Wait(request, MPI_STATUS_IGNORE); }

  const MpiTable& mpi_;

 private:
  int count() const { return call_.shape.counts[0]; }

  const Call& call_;
  Direction direction_;
};

class BlockingMessage : public Message {
 public:
  using Message::Message;
  int run() override { return blocking(); }
};

class NonblockingMessage : public Message {
 public:
  using Message::Message;
  int run() override {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = begin(&request);
    return code != MPI_SUCCESS ? code : wait(&request);
  }
};

class PersistentMessage : public Message {
 public:
  PersistentMessage(const MpiTable& mpi, const Call& call, Direction direction)
      : Message(mpi, call, direction) {
    prepare(&request_);
  }
  ~PersistentMessage() override { mpi_.Request_free(&request_); }
  int run() override {
    const int code = mpi_.Start(&request_);
    return code != MPI_SUCCESS ? code : wait(&request_);
  }

 private:
  MPI_Request request_ = MPI_REQUEST_NULL;
};

std::unique_ptr<Invocation> make_message(const MpiTable& mpi, Form form, const Call& call,
                                         Direction direction) {
  switch (form) {
    case Form::blocking:
      return std::make_unique<BlockingMessage>(mpi, call, direction);
    case Form::nonblocking:
      return std::make_unique<NonblockingMessage>(mpi, call, direction);
    case Form::persistent:
      return std::make_unique<PersistentMessage>(mpi, call, direction);
  }
  return nullptr;
}

// Ping and pong: rank 1 sends only after it has received.
std::optional<Steps> bind_latency(const MpiTable& mpi, Form form, const Call& call) {
  Steps steps;
  if (!takes_part(call.shape)) return steps;
  Step send{.invocation = make_message(mpi, form, call, Direction::send), .writes_recv = false};
  Step receive{.invocation = make_message(mpi, form, call, Direction::receive),
               .reads_send = false};
  if (call.shape.rank == 0) {
    steps.push_back(std::move(send));
    steps.push_back(std::move(receive));
  } else {
    steps.push_back(std::move(receive));
    steps.push_back(std::move(send));
  }
  return steps;
}

// A window of messages, each in its own part of the buffers; then an empty answer in one direction,
// so that the sender's clock stops only when all have arrived.
class Window : public Invocation {
 public:
  struct Roles {
    bool sends;
    bool receives;
    bool answers;
  };
  Window(const MpiTable& mpi, const Call& call, Roles roles)
      : mpi_(mpi), call_(call), roles_(roles), requests_(2 * window(call.shape)) {}

  int run() override {
    int used = 0;
    for (std::size_t slot = 0; roles_.receives && slot < window(call_.shape); ++slot) {
      if (const int code = mpi_.Irecv(part(call_.recv, slot), count(), call_.type,
                                      partner(call_.shape), kTag, call_.comm, next(used))) {
        return code;
      }
    }
    for (std::size_t slot = 0; roles_.sends && slot < window(call_.shape); ++slot) {
      if (call_.hooks != nullptr) call_.hooks->before_send(slot);
      if (const int code = mpi_.Isend(part(call_.send, slot), count(), call_.type,
                                      partner(call_.shape), kTag, call_.comm, next(used))) {
        return code;
      }
    }
    if (const int code = complete(used)) return code;
    return roles_.answers ? answer() : MPI_SUCCESS;
  }

 private:
  int complete(int used) {
    // The receives are the first requests; with hooks each is finished as soon as it and those
    // before it are there.
    for (std::size_t slot = 0;
         call_.hooks != nullptr && roles_.receives && slot < window(call_.shape); ++slot) {
      if (const int code = mpi_.Wait(&requests_[slot], MPI_STATUS_IGNORE)) return code;
      call_.hooks->after_receive(slot);
    }
    return mpi_.Waitall(used, requests_.data(), MPI_STATUSES_IGNORE);
  }
  int answer() {
    char nothing = 0;
    if (roles_.sends) {
      return mpi_.Recv(&nothing, 0, MPI_CHAR, partner(call_.shape), kAnswerTag, call_.comm,
                       MPI_STATUS_IGNORE);
    }
    return mpi_.Send(&nothing, 0, MPI_CHAR, partner(call_.shape), kAnswerTag, call_.comm);
  }
  int count() const { return call_.shape.counts[0]; }
  void* part(void* buffer, std::size_t slot) const {
    return static_cast<char*>(buffer) + slot * call_.shape.count() * call_.element_bytes;
  }
  MPI_Request* next(int& used) { return &requests_[static_cast<std::size_t>(used++)]; }

  const MpiTable& mpi_;
  const Call& call_;
  Roles roles_;
  std::vector<MPI_Request> requests_;
};

std::optional<Steps> bind_window(const MpiTable& mpi, const Call& call, Window::Roles roles) {
  Steps steps;
  if (takes_part(call.shape)) {
    steps.push_back({.invocation = std::make_unique<Window>(mpi, call, roles),
                     .reads_send = roles.sends,
                     .writes_recv = roles.receives,
                     .by_message = true});
  }
  return steps;
}

}  // namespace

std::vector<Operation> point_to_point_operations() {
  return {
      {.name = "latency",
       .synchronises = true,
       .ranks_min = 2,
       .ranks_timed = 1,
       .parts = [](const Shape&) { return 2; },
       .extent =
           [](const Shape& s) {
             return takes_part(s) ? Extent{s.count(), s.count()} : Extent{};
           },
       .expected =
           [](const Shape& s) {
             if (!takes_part(s)) return std::vector<Segment>{};
             return std::vector<Segment>{{0, s.count(), partner(s), partner(s) + 1, 0}};
           },
       .bind = bind_latency},
      {.name = "bandwidth",
       .synchronises = true,
       .has_form = false,
       .ranks_min = 2,
       .ranks_timed = 1,
       .parts = [](const Shape& s) { return s.window; },
       .extent =
           [](const Shape& s) {
             const std::size_t all = window(s) * s.count();
             return Extent{s.rank == 0 ? all : 0, s.rank == 1 ? all : 0};
           },
       .expected =
           [](const Shape& s) {
             if (s.rank != 1) return std::vector<Segment>{};
             return std::vector<Segment>{{0, window(s) * s.count(), 0, 1, 0}};
           },
       .bind =
           [](const MpiTable& mpi, Form, const Call& c) {
             return bind_window(mpi, c, {c.shape.rank == 0, c.shape.rank == 1, true});
           }},
      {.name = "bibandwidth",
       .synchronises = true,
       .has_form = false,
       .ranks_min = 2,
       .ranks_timed = 2,
       .bandwidth = Bandwidth::both_directions,
       .parts = [](const Shape& s) { return s.window; },
       .extent =
           [](const Shape& s) {
             const std::size_t all = takes_part(s) ? window(s) * s.count() : 0;
             return Extent{all, all};
           },
       .expected =
           [](const Shape& s) {
             if (!takes_part(s)) return std::vector<Segment>{};
             return std::vector<Segment>{{0, window(s) * s.count(), partner(s), partner(s) + 1, 0}};
           },
       .bind =
           [](const MpiTable& mpi, Form, const Call& c) {
             return bind_window(mpi, c, {true, true, false});
           }},
  };
}

}  // namespace accord::bench
