// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What happens when the host MPI has completed a message: its bytes go where the user wants them,
// and the status tells what has come.
#pragma once

#include <mpi.h>

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "coll/select/reasons.h"
#include "p2p/loan.h"
#include "shim/completion.h"
#include "shim/held_messages.h"
#include "shim/messages.h"
#include "shim/posted_receives.h"
#include "shim/story.h"

namespace accord::shim {

// An error of a message that stands for another one is raised where that came from.
inline int raise_for(const std::shared_ptr<Substitute>& substitute, int code) {
  if (code != MPI_SUCCESS && substitute) raise_code(substitute->comm, code);
  return code;
}

inline void correct(MPI_Status& status, const core::MessageInfo& facts) {
  if (facts.has_origin) {
    status.MPI_SOURCE = facts.source;
    status.MPI_TAG = facts.tag;
  }
  (void)host::Status_set_elements_x(&status, MPI_BYTE,
                                    static_cast<MPI_Count>(facts.received_bytes));
  if (facts.is_cancelled) (void)host::Status_set_cancelled(&status, 1);
}

// How much of a receive buffer is copied out: what the status tells, or all of it (with its old
// content before).
enum class Amount { by_status, whole };

// Where a thread that completes many receives at once collects what the one that it tests has got,
// or the message that a header stands for, to bring them together before it returns to the program;
// null: it brings each at once. Taken by that receive, not by those of functions of the program's
// called meanwhile.
struct Collected {
  p2p::FetchBatch* of_node = nullptr;
  p2p::NetBatch* of_others = nullptr;
  core::CopyOuts* of_host = nullptr;
};
inline thread_local Collected collected_fetches;

// What comes of a receive that the host MPI has completed: brings what a header stands for, and
// tells what the status shall say.
inline Status finish_receive(Description& d, const core::Completion& completion,
                             std::optional<core::MessageInfo>& facts,
                             const stages::Story& story = nullptr,
                             const Collected& collected = {}) {
  if (d.substitute) {
    facts = {d.substitute->source, d.substitute->tag, completion.received_bytes, true};
    d.substitute->conclude();
    d.substitute.reset();
  }
  const std::size_t received_bytes = completion.received_bytes;
  node::MessageHeader header;
  core::Segment segment;
  if (messaging.joined && d.landing.may_hold_header(received_bytes)) segment = d.landing.segment();
  const node::Lender* const lender =
      segment.type == nullptr ? nullptr
                              : find_lender(segment, d.recv.host(), received_bytes, header);
  if (lender == nullptr && collected.of_host != nullptr &&
      collected.of_host->add(d.recv, received_bytes))
    return {};
  if (lender == nullptr) return d.recv.copy_out(received_bytes);
  d.recv.was_bypassed();
  if (!facts) facts.emplace().has_origin = false;
  facts->received_bytes = header.size_bytes;
  const char* const path = path_of(header);
  const Status status =
      messaging.net_joined && lender == &net_messages()
          ? net_messages().fetch(segment, d.recv, header, collected.of_others)
          : p2p::fetch_message(outbox(), segment, d.recv, header, collected.of_node);
  coll::set_last_path(path);
  if (story) story->took(path, coll::reason::kByHeader);
  return status;
}

// A receive (or a staged send: then nothing is copied out) that the user holds as a request of the
// host MPI.
class TrackedMessage : public core::Tracked {
 public:
  // Whether it is posted already, if it is a receive.
  enum class Posted { yes, no };
  TrackedMessage(MPI_Comm comm, Description d, Amount amount, Posted posted = Posted::yes)
      : description_(std::move(d)), amount_(amount) {
    context = to_bits(comm);
    if (posted == Posted::yes) begin_posted();
  }
  Status start() override {
    ACCORD_TRY(description_.send.copy_in());
    return description_.recv.copy_in();
  }
  Status finish(const core::Completion& completion) override {
    posted_.reset();
    if (completion.failed) give_up_cut_off(description_.landing, description_.recv.host());
    if (completion.failed && description_.substitute) description_.substitute->conclude();
    if (completion.failed || completion.cancelled) return {};
    const Collected collected = std::exchange(collected_fetches, Collected());
    if (early_fetch_) return end_early_fetch();
    core::Completion known = completion;
    if (amount_ == Amount::whole) known.received_bytes = core::StagedBuffer::kAll;
    return finish_receive(description_, known, facts, nullptr, collected);
  }

  bool copies_out() const noexcept override { return description_.recv.is_staged(); }
  bool may_fetch_early() const noexcept override {
    return amount_ == Amount::by_status && description_.landing.is_present() && !early_fetch_;
  }
  void fetch_early(core::HostRequest request,
                   const std::shared_ptr<p2p::SharedBatch>& batch) override {
    MPI_Status status;
    int flag = 0;
    const int code = host::Request_get_status(from_bits<MPI_Request>(request), &flag, &status);
    if (code == MPI_SUCCESS && flag != 0) bring(completion_of(status), batch);
  }

  // A message of another node.
  void begin_fetch(core::HostRequest request) override {
    MPI_Status status;
    int flag = 0;
    if (!messaging.net_joined || !may_fetch_early() ||
        host::Request_get_status(from_bits<MPI_Request>(request), &flag, &status) != MPI_SUCCESS ||
        flag == 0)
      return;
    bring_from_afar(completion_of(status));
  }

  bool is_being_fetched() override {
    return (batch_ && !batch_->poll()) || (far_ && !far_->poll());
  }

 protected:
  void begin_posted() {
    if (amount_ == Amount::by_status && description_.landing.is_present() &&
        description_.recv.is_staged())
      posted_.emplace();
  }
  void end_posted() { posted_.reset(); }
  void forget_early() {
    early_fetch_.reset();
    batch_.reset();
    far_.reset();
  }
  bool is_brought() const noexcept { return early_fetch_.has_value(); }
  // Only of a rank of this node, and by a copy of ours: nothing else is brought without waiting.
  void bring(const core::Completion& completion, const std::shared_ptr<p2p::SharedBatch>& batch) {
    if (!has_header_of(outbox(), completion)) return;
    const std::size_t size = batch->fetches.size();
    bring(completion, {.of_node = &batch->fetches});
    if (batch->fetches.size() != size) batch_ = batch;
  }
  // Begins to.
  void bring_from_afar(const core::Completion& completion) {
    if (!has_header_of(net_messages(), completion)) return;
    far_.emplace(net_mail());
    bring(completion, {.of_others = &*far_});
  }
  Status end_early_fetch() {
    coll::set_last_path(early_path_);
    while (batch_ && !batch_->poll()) engine().port().pause();
    if (batch_) keep_first(*early_fetch_, batch_->status());
    if (far_)
      for (const Status& status : far_->run()) keep_first(*early_fetch_, status);
    return *early_fetch_;
  }

  Description description_;

 private:
  bool has_header_of(const node::Lender& lender, const core::Completion& completion) {
    node::MessageHeader header;
    if (completion.cancelled || !description_.landing.may_hold_header(completion.received_bytes))
      return false;
    const core::Segment segment = description_.landing.segment();
    return segment.type != nullptr && p2p::find_header(lender, segment, description_.recv.host(),
                                                       completion.received_bytes, header);
  }
  void bring(const core::Completion& completion, const Collected& collected) {
    const char* const path = coll::last_path();
    early_fetch_ = finish_receive(description_, completion, facts, nullptr, collected);
    early_path_ = coll::last_path();
    coll::set_last_path(path);
    posted_.reset();
  }

  Amount amount_;
  std::optional<PostedReceive> posted_;
  std::optional<Status> early_fetch_;  // what has come of it so far
  const char* early_path_ = "";
  std::shared_ptr<p2p::SharedBatch> batch_;  // or comes with that
  std::optional<p2p::NetBatch> far_;         // or with this
};

// A persistent receive. One whose message is held already when it is started gets it by a request
// of its own, while the user's one stays inactive for the host MPI. The communicator may be gone by
// then: errors are raised where the request's own are.
class PersistentReceive final : public TrackedMessage {
 public:
  using Receive = std::function<int(void* recv, MPI_Message* message, MPI_Request* request)>;

  PersistentReceive(MPI_Comm comm, Description d, int source, int tag, Receive receive)
      : TrackedMessage(comm, std::move(d), Amount::by_status, Posted::no),
        held_(held_messages(comm)),
        source_(source),
        tag_(tag),
        receive_(std::move(receive)) {}

  Status start() override {
    is_started_.store(false);
    is_complete_.store(false);
    forget_early();
    ACCORD_TRY(TrackedMessage::start());
    HeldMessage held;
    early = held_ && take_held(source_, tag_, *held_, held);
    if (!early) return {};
    origin_ = {held.source, held.tag, 0, true};
    description_.substitute = held.substitute;
    receiving_ = MPI_REQUEST_NULL;
    is_through_ = false;
    code_ = raise_here(receive_(description_.recv.host(), &held.handle, &receiving_));
    return Status::from_host(code_);
  }
  void started() override {
    begin_posted();
    is_started_.store(true);
  }
  bool may_fetch_early() const noexcept override {
    return (is_started_.load() || is_complete_.load()) && TrackedMessage::may_fetch_early();
  }
  void fetch_early(core::HostRequest request,
                   const std::shared_ptr<p2p::SharedBatch>& batch) override {
    if (!complete_early(request)) return;
    bring(completion_of(told_), batch);
    keep_origin();
  }
  void begin_fetch(core::HostRequest request) override {
    if (!messaging.net_joined || !may_fetch_early() || !complete_early(request)) return;
    bring_from_afar(completion_of(told_));
    keep_origin();
  }
  bool early_is_through() override {
    if (is_through_) return true;
    int flag = kUntold;  // stays where the call has failed, and see has_error_function
    code_ = raise_here(host::Test(&receiving_, &flag, &told_));
    is_through_ = flag != 0 || code_ != MPI_SUCCESS;
    return is_through_;
  }
  Status finish(const core::Completion& completion) override {
    is_started_.store(false);
    is_complete_.store(false);
    if (!early) return TrackedMessage::finish(completion);
    end_posted();
    if (is_brought()) return end_early_fetch();
    facts = origin_;
    if (code_ != MPI_SUCCESS) give_up_cut_off(description_.landing, description_.recv.host());
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
    ACCORD_TRY(Status::from_host(code_));
    const core::Completion received = completion_of(told_);
    facts->received_bytes = received.received_bytes;
    facts->is_cancelled = received.cancelled;
    if (received.cancelled) return {};
    return finish_receive(description_, received, facts);
  }

 private:
  // MPICH 5.0.2 forgets the status of a persistent request when it has told it: so this completes
  // it in the host MPI, which keeps the handle. False: it is not complete, or has failed.
  bool complete_early(core::HostRequest request) {
    if (is_complete_.load()) return true;
    auto handle = from_bits<MPI_Request>(request);
    int flag = kUntold;
    int code = MPI_ERR_OTHER;
    // Whoever looks has nothing to do with it: the call that completes it gets what is thrown.
    try {
      code = host::Test(&handle, &flag, &told_);
    } catch (...) {
      thrown_ = std::current_exception();
    }
    if (flag == 0 && code == MPI_SUCCESS) return false;
    is_started_.store(false);
    early = is_through_ = true;
    code_ = code == MPI_SUCCESS && flag == kUntold ? MPI_ERR_OTHER : code;
    origin_ = {told_.MPI_SOURCE, told_.MPI_TAG, 0, true};
    is_complete_.store(code_ == MPI_SUCCESS);
    return is_complete_.load();
  }
  void keep_origin() {
    if (!is_brought()) return;
    origin_.received_bytes = facts->received_bytes;
    facts = origin_;
  }
  int raise_here(int code) const {
    if (code != MPI_SUCCESS && description_.substitute)
      raise_code(from_bits<MPI_Comm>(context), code);
    return code;
  }

  std::shared_ptr<HeldMessages> held_;
  int source_;
  int tag_;
  Receive receive_;
  core::MessageInfo origin_;
  MPI_Request receiving_ = MPI_REQUEST_NULL;
  MPI_Status told_{};
  int code_ = MPI_SUCCESS;
  std::exception_ptr thrown_;  // by its error handler, when it was completed in the host MPI
  bool is_through_ = false;
  std::atomic<bool> is_started_{false};   // in the host MPI, and not complete there
  std::atomic<bool> is_complete_{false};  // there, and not yet for the user
};

// A send of a header that the user holds as a request.
class TrackedHeader final : public core::Tracked {
 public:
  TrackedHeader(MPI_Comm comm, const node::MessageHeader& sent) : header(sent) {
    context = to_bits(comm);
  }
  Status finish(const core::Completion& completion) override {
    if (messaging.joined && (completion.failed || completion.cancelled))
      lender_of(header).withdraw(header);
    return {};
  }

  const node::MessageHeader header;
};

}  // namespace accord::shim
