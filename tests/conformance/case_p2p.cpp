// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "case_p2p.h"

#include <sched.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "cases.h"
#include "exclusions.h"
#include "requests.h"

namespace accord::conformance {
namespace {

constexpr int kNeverSentTag = 999;
constexpr int kBsendSlackBytes = 32;  // MPICH aligns and needs a little more than the standard says

// What this rank holds for one message, as its sender or its receiver.
struct Part {
  const Message* message;
  Blocks blocks;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status{};
  MPI_Status probed{};
  bool has_probed = false;
};

class P2p {
 public:
  P2p(Run& run, const Comm& comm, const Pattern& pattern)
      : run_(run), api_(run.api()), comm_(comm), pattern_(pattern) {}

  void execute() {
    make_parts();
    attach();
    init_persistent();
    for (int round = 0; round < pattern_.rounds; ++round) {
      if (round > 0) next_round(round);
      post_receives();
      if (pattern_.ready) barrier();
      for (Part& part : sends_) run_.check(send(part), "send");
      for (Part& part : receives_)
        if (!is_posted(part.message->receive_form)) receive_late(part);
      finish_round();
      if (pattern_.freed) barrier();  // only now may buffers of freed sends be touched
    }
    for (Part& part : sends_) release(part);
    for (Part& part : receives_) release(part);
    detach();
  }

 private:
  void barrier() { run_.check(api_.Barrier.blocking(false, comm_.handle), "Barrier"); }

  Endpoint me() const { return {comm_.inter ? comm_.group : 0, comm_.rank}; }

  // One line a message of this rank, with --verbose.
  void note(const Message& m) const {
    run_.note("message from " + std::to_string(m.source.rank) + " to " +
              std::to_string(m.destination.rank) + " tag " + std::to_string(m.tag) + " mode " +
              std::to_string(static_cast<int>(m.mode)) + " send form " +
              std::to_string(static_cast<int>(m.send_form)) + " receive form " +
              std::to_string(static_cast<int>(m.receive_form)) + " wild " +
              std::to_string(static_cast<int>(m.wild)) + (m.freed ? " freed" : ""));
  }

  void make_parts() {
    for (const Message& message : pattern_.messages) {
      if (message.source == me() || message.destination == me()) note(message);
      if (message.source == me())
        sends_.push_back({.message = &message, .blocks = send_blocks(message)});
      if (message.destination == me())
        receives_.push_back({.message = &message, .blocks = receive_blocks(message)});
    }
  }

  Blocks send_blocks(const Message& message) {
    const auto length = static_cast<std::int64_t>(pattern_.payload.signature.size());
    if (message.loose_elements == 0)
      return make_blocks(run_, "send", pattern_.payload, std::vector{message.units}, Spread::one);
    Payload single = pattern_.payload;  // not a whole number of units: count elements
    single.signature.resize(1);
    return make_blocks(run_, "send", single,
                       std::vector{message.units * length + message.loose_elements}, Spread::one);
  }

  Blocks receive_blocks(const Message& message) {
    if (!is_unordered(message.wild))
      return make_blocks(run_, "receive", pattern_.payload, std::vector{message.capacity},
                         Spread::one);
    // All buffers of the group have one layout and one background, so that they can be compared as
    // a set.
    const Rng before = run_.local;
    if (!wild_layout_.has_value()) wild_layout_ = before;
    run_.local = *wild_layout_;
    const Blocks blocks =
        make_blocks(run_, "receive", pattern_.payload, std::vector{message.capacity}, Spread::one);
    run_.local = before;
    blocks.buffer->unordered_group = 0;
    run_.fill(*blocks.buffer, 0);
    return blocks;
  }

  // Room for every buffered send of every round: nobody says when space is given back.
  void attach() {
    std::int64_t need = 0;
    for (const Part& part : sends_) {
      if (part.message->mode != Mode::buffered) continue;
      int size = 0;
      run_.check(api_.Pack_size(part.blocks.count, part.blocks.type, comm_.handle, &size),
                 "Pack_size");
      need += size + MPI_BSEND_OVERHEAD + kBsendSlackBytes;
    }
    if (need == 0) return;
    attached_bytes_ = need * pattern_.rounds;
    attached_ = &run_.buffer("attached", Span{0, attached_bytes_}, 16);
    run_.set_loose(*attached_, 0, attached_bytes_);
    run_.check(api_.Buffer_attach(attached_->pointer(), static_cast<int>(attached_bytes_)),
               "Buffer_attach");
  }

  void detach() {
    if (attached_ == nullptr) return;
    void* pointer = nullptr;
    int size = 0;
    run_.check(api_.Buffer_detach(static_cast<void*>(&pointer), &size), "Buffer_detach");
    run_.log("Buffer_detach gives the buffer back", pointer == attached_->pointer());
    run_.log("Buffer_detach size", size);
  }

  int source_of(const Message& message) const {
    return is_unordered(message.wild) ? MPI_ANY_SOURCE : message.source.rank;
  }
  static int tag_of(const Message& message) {
    const bool any = message.wild == Wild::any_tag || message.wild == Wild::any_source_any_tag;
    return any ? MPI_ANY_TAG : message.tag;
  }

  void init_persistent() {
    for (Part& part : sends_)
      if (part.message->send_form == SendForm::persistent) run_.check(send_init(part), "send_init");
    for (Part& part : receives_) {
      const Message& m = *part.message;
      if (m.receive_form != ReceiveForm::persistent) continue;
      run_.check(api_.Recv_init(m.large, part.blocks.pointer, part.blocks.count, part.blocks.type,
                                source_of(m), tag_of(m), comm_.handle, &part.request),
                 "Recv_init");
    }
  }

  int send_init(Part& part) {
    const auto go = [&](const auto& function) {
      return function(part.message->large, constant(part), part.blocks.count, part.blocks.type,
                      part.message->destination.rank, part.message->tag, comm_.handle,
                      &part.request);
    };
    switch (part.message->mode) {
      case Mode::buffered:
        return go(api_.Bsend_init);
      case Mode::synchronous:
        return go(api_.Ssend_init);
      case Mode::ready:
        return go(api_.Rsend_init);
      default:
        return go(api_.Send_init);
    }
  }

  int send(Part& part) {
    const Message& m = *part.message;
    if (m.send_form == SendForm::persistent) return api_.Start(&part.request);
    const auto blocking = [&](const auto& function) {
      return function(m.large, constant(part), part.blocks.count, part.blocks.type,
                      m.destination.rank, m.tag, comm_.handle);
    };
    const auto nonblocking = [&](const auto& function) {
      const int code = function(m.large, constant(part), part.blocks.count, part.blocks.type,
                                m.destination.rank, m.tag, comm_.handle, &part.request);
      return code == MPI_SUCCESS && m.freed ? api_.Request_free(&part.request) : code;
    };
    const bool blocks = m.send_form == SendForm::blocking;
    switch (m.mode) {
      case Mode::buffered:
        return blocks ? blocking(api_.Bsend) : nonblocking(api_.Ibsend);
      case Mode::synchronous:
        return blocks ? blocking(api_.Ssend) : nonblocking(api_.Issend);
      case Mode::ready:
        return blocks ? blocking(api_.Rsend) : nonblocking(api_.Irsend);
      default:
        return blocks ? blocking(api_.Send) : nonblocking(api_.Isend);
    }
  }

  void post_receives() {
    std::vector<MPI_Request> starts;  // tags of these are their own, so they may start in any order
    std::vector<Part*> started;
    for (Part& part : receives_) {
      const Message& m = *part.message;
      if (m.receive_form == ReceiveForm::irecv)
        run_.check(api_.Irecv(m.large, part.blocks.pointer, part.blocks.count, part.blocks.type,
                              source_of(m), tag_of(m), comm_.handle, &part.request),
                   "Irecv");
      if (m.receive_form != ReceiveForm::persistent) continue;
      starts.push_back(part.request);
      started.push_back(&part);
    }
    if (run_.local.chance(50) && !starts.empty()) {
      run_.check(api_.Startall(static_cast<int>(starts.size()), starts.data()), "Startall");
      for (std::size_t i = 0; i < starts.size(); ++i) started[i]->request = starts[i];
    } else {
      for (Part* part : started) run_.check(api_.Start(&part->request), "Start");
    }
  }

  void receive_late(Part& part) {
    const Message& m = *part.message;
    int source = source_of(m);
    int tag = tag_of(m);
    MPI_Message matched = MPI_MESSAGE_NULL;
    int flag = 0;
    if (m.receive_form == ReceiveForm::probe) {
      run_.check(api_.Probe(source, tag, comm_.handle, &part.probed), "Probe");
    } else if (m.receive_form == ReceiveForm::iprobe) {
      for (; flag == 0; sched_yield())
        if (!run_.check(api_.Iprobe(source, tag, comm_.handle, &flag, &part.probed), "Iprobe"))
          return;
    } else if (m.receive_form == ReceiveForm::mprobe) {
      run_.check(api_.Mprobe(source, tag, comm_.handle, &matched, &part.probed), "Mprobe");
    } else if (m.receive_form == ReceiveForm::improbe) {
      for (; flag == 0; sched_yield())
        if (!run_.check(api_.Improbe(source, tag, comm_.handle, &flag, &matched, &part.probed),
                        "Improbe"))
          return;
    }
    part.has_probed = m.receive_form != ReceiveForm::recv;
    if (matched != MPI_MESSAGE_NULL) {
      receive_matched(part, matched);
      return;
    }
    if (part.has_probed) {
      source = part.probed.MPI_SOURCE;
      tag = part.probed.MPI_TAG;
    }
    run_.check(api_.Recv(m.large, part.blocks.pointer, part.blocks.count, part.blocks.type, source,
                         tag, comm_.handle, &part.status),
               "Recv");
  }

  void receive_matched(Part& part, MPI_Message matched) {
    const Message& m = *part.message;
    if (m.message_request)
      run_.check(api_.Imrecv(m.large, part.blocks.pointer, part.blocks.count, part.blocks.type,
                             &matched, &part.request),
                 "Imrecv");
    else
      run_.check(api_.Mrecv(m.large, part.blocks.pointer, part.blocks.count, part.blocks.type,
                            &matched, &part.status),
                 "Mrecv");
    run_.log("message handle is null", matched == MPI_MESSAGE_NULL);
  }

  // Completes everything in one array, in any order, among null requests and receives from nobody.
  void finish_round() {
    std::vector<Part*> owners;
    for (std::vector<Part>* parts : {&sends_, &receives_})
      for (Part& part : *parts)
        if (part.request != MPI_REQUEST_NULL) owners.push_back(&part);
    for (int extra = run_.local.below(3); extra > 0; --extra) owners.push_back(nullptr);
    run_.local.shuffle(owners);
    std::vector<MPI_Request> requests;
    for (Part* part : owners) requests.push_back(part != nullptr ? part->request : from_nobody());
    const Completion completion = random_completion(run_.local);
    std::vector<MPI_Status> statuses;
    run_.note(std::string("completed by ") + completion_name(completion));
    run_.check(complete(run_, completion, requests, &statuses, run_.local.fork()),
               completion_name(completion));
    for (std::size_t i = 0; i < owners.size(); ++i) {
      if (owners[i] == nullptr) continue;
      owners[i]->request = requests[i];
      owners[i]->status = statuses[i];
    }
    log_statuses();
  }

  MPI_Request from_nobody() {
    MPI_Request request = MPI_REQUEST_NULL;
    if (run_.local.chance(50)) return request;
    Buffer& untouched = run_.buffer("untouched", Span{0, 8}, 8);
    run_.check(api_.Irecv(false, untouched.pointer(), Count{1}, MPI_DOUBLE, MPI_PROC_NULL,
                          kNeverSentTag, comm_.handle, &request),
               "Irecv");
    return request;
  }

  void log_statuses() {
    std::vector<Part*> order;
    for (Part& part : receives_) order.push_back(&part);
    // Which of a group's wild receives got which message is free: log them by what they got.
    // (Either all of a rank's receives are such or none.)
    std::stable_sort(order.begin(), order.end(), [this](const Part* a, const Part* b) {
      return is_unordered(a->message->wild) && key(a->status) < key(b->status);
    });
    for (Part* part : order) {
      const auto [source, tag, bytes] = key(part->status);
      run_.note("received from " + std::to_string(source) + " tag " + std::to_string(tag) +
                " bytes " + std::to_string(bytes));
      log_status(run_, part->status, part->blocks.type);
      run_.log("the probe told the truth",
               !part->has_probed || key(part->probed) == key(part->status));
      part->has_probed = false;
    }
  }

  // Source, tag and size in bytes.
  std::tuple<int, int, MPI_Count> key(const MPI_Status& status) const {
    MPI_Count bytes = 0;
    run_.check(api_.Get_elements_x(&status, MPI_BYTE, &bytes), "Get_elements_x");
    return {status.MPI_SOURCE, status.MPI_TAG, bytes};
  }

  void next_round(int round) {
    barrier();  // a wild receive of the last round must not see a message of this one
    for (std::vector<Part>* parts : {&sends_, &receives_}) {
      for (Part& part : *parts) {
        if (!is_unordered(part.message->wild)) run_.snapshot(*part.blocks.buffer);
        run_.fill(*part.blocks.buffer, static_cast<std::uint64_t>(round));
      }
    }
  }

  void release(Part& part) {
    if (part.request != MPI_REQUEST_NULL)
      run_.check(api_.Request_free(&part.request), "Request_free");
  }

  static const void* constant(const Part& part) { return part.blocks.pointer; }

  Run& run_;
  const Api& api_;
  const Comm& comm_;
  const Pattern& pattern_;
  std::vector<Part> sends_;
  std::vector<Part> receives_;
  std::optional<Rng> wild_layout_;
  Buffer* attached_ = nullptr;
  std::int64_t attached_bytes_ = 0;
};

}  // namespace

void case_p2p(Run& run) {
  const int which = run.global.pick(run.comms().plain());
  const Comm& comm = run.comms().all()[static_cast<std::size_t>(which)];
  run.describe(std::string("messages on ") + comm.name);
  const Pattern pattern = draw_pattern(run, comm);
  run.describe(std::to_string(pattern.messages.size()) + " messages of " +
               pattern.payload.signature.front()->name + " x " +
               std::to_string(pattern.payload.signature.size()) +
               (pattern.wild ? ", wildcards" : "") + (pattern.ready ? ", ready sends" : "") +
               ", rounds " + std::to_string(pattern.rounds));
  if (comm.member) P2p(run, comm, pattern).execute();
  // A rank that is through must not send next case's messages to a wild receive that is still open.
  // (All ranks draw a pattern, but pairs of communicators of one name have their own.)
  run.world_barrier();
}

}  // namespace accord::conformance
