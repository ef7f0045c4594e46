// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/held_messages.h"

#include <algorithm>
#include <unordered_map>

#include "shim/messages.h"

namespace accord::shim {
namespace {

// Substitutes whose handle the program has.
struct Claims {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, std::shared_ptr<Substitute>> by_handle;
  std::atomic<std::size_t> count{0};
};
Claims& claims() {
  static Claims& instance = *new Claims;
  return instance;
}

MPI_Count length_of(const MPI_Status& status) {
  MPI_Count size = 0;
  (void)host::Get_elements_x(&status, MPI_BYTE, &size);
  return size;
}

void tell(const HeldMessage& message, MPI_Status* status) {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = message.source;
  status->MPI_TAG = message.tag;
  (void)host::Status_set_elements_x(status, MPI_BYTE, message.size_bytes);
  (void)host::Status_set_cancelled(status, 0);
}

// While a message of this rank of the node is read; -1: of none.
class Reading {
 public:
  explicit Reading(int sender) : sender_(sender) {
    if (sender_ >= 0) outbox().begin_reading(sender_);
  }
  ~Reading() {
    if (sender_ >= 0) outbox().end_reading(sender_);
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  int sender_;
};

// Takes the message's bytes out of the host MPI, which tells its sender that it is received.
int read_bytes(MPI_Comm comm, HeldMessage& message, Substitute& substitute) {
  const Reading reading(node_rank(comm, message.source));
  substitute.size_bytes = static_cast<int>(message.size_bytes);
  const int code = host::Mrecv(substitute.bytes.data(), substitute.size_bytes, MPI_BYTE,
                               &message.handle, MPI_STATUS_IGNORE);
  if (code != MPI_SUCCESS) return code;
  node::MessageHeader header;
  const std::span bytes(substitute.bytes.data(), static_cast<std::size_t>(message.size_bytes));
  if (!find_header(bytes, header)) return MPI_SUCCESS;
  message.size_bytes = static_cast<MPI_Count>(header.size_bytes);
  if (!messaging.node_joined || !outbox().recognises(header)) return MPI_SUCCESS;
  substitute.header = header;
  outbox().is_probed(header);
  return MPI_SUCCESS;
}

// Reads a message that may be a header, and puts a substitute into its place. It has arrived whole,
// or is about to: messages this short do not wait for their receiver.
int read(MPI_Comm comm, HeldMessage& message) {
  static std::mutex& one_message = *new std::mutex;  // two threads' substitutes must not cross
  auto substitute = std::make_shared<Substitute>();
  auto& bytes = substitute->bytes;
  if (const int code = read_bytes(comm, message, *substitute)) return code;
  substitute->comm = comm;
  substitute->source = message.source;
  substitute->tag = message.tag;
  const std::lock_guard<std::mutex> locked(one_message);
  if (const int code = host::Isend(bytes.data(), substitute->size_bytes, MPI_BYTE, 0,
                                   kSubstituteTag, private_comm(), &substitute->sending))
    return code;
  message.substitute = substitute;
  return host::Mprobe(0, kSubstituteTag, private_comm(), &message.handle, MPI_STATUS_IGNORE);
}

auto find(std::deque<HeldMessage>& messages, int source, int tag) {
  return std::find_if(messages.begin(), messages.end(), [&](const HeldMessage& message) {
    return (source == MPI_ANY_SOURCE || source == message.source) &&
           (tag == MPI_ANY_TAG || tag == message.tag);
  });
}

// Takes messages of `source` out of the host MPI's queue, up to the first one with that tag.
int hold(int source, int tag, MPI_Comm comm, HeldMessages& held) {
  for (;;) {
    HeldMessage message;
    MPI_Status status;
    int flag = 0;
    if (const int code = host::Improbe(source, MPI_ANY_TAG, comm, &flag, &message.handle, &status))
      return code;
    if (flag == 0) return MPI_SUCCESS;  // another thread has received it
    message.source = status.MPI_SOURCE;
    message.tag = status.MPI_TAG;
    message.size_bytes = length_of(status);
    if (may_be_header(comm, message.source, message.size_bytes)) {
      if (const int code = read(comm, message)) return code;
    }
    held.messages.push_back(std::move(message));
    messaging.held_count.fetch_add(1);
    if (status.MPI_TAG == tag) return MPI_SUCCESS;
  }
}

HeldMessages* held_of(MPI_Comm comm) {
  CommState* const state = may_listen() ? comm_state(comm) : nullptr;
  return state == nullptr ? nullptr : state->held.get();
}

void take(HeldMessages& held, std::deque<HeldMessage>::iterator at, HeldMessage& found) {
  found = std::move(*at);
  held.messages.erase(at);
  messaging.held_count.fetch_sub(1);
}

// One that shall become the caller's: a probe leaves its MPI_ERROR as it is (MPI 4.1, 3.2.5).
MPI_Status begun(const MPI_Status* status) {
  return status == MPI_STATUS_IGNORE ? MPI_Status() : *status;
}

// For a probe.
std::unique_lock<std::recursive_mutex> lock_after_receives(HeldMessages& held) {
  while (held.receives_waiting.load() != 0) engine().port().pause();
  return std::unique_lock<std::recursive_mutex>(held.mutex);
}

}  // namespace

void Substitute::begin_receive() {
  if (header && messaging.node_joined) outbox().is_received(*header);
}

std::shared_ptr<HeldMessages> make_held_messages() { return std::make_shared<HeldMessages>(); }

int iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  HeldMessages* const held = held_of(comm);
  if (held == nullptr || flag == nullptr) return host::Iprobe(source, tag, comm, flag, status);
  const auto locked = lock_after_receives(*held);
  for (;;) {
    if (const auto at = find(held->messages, source, tag); at != held->messages.end()) {
      tell(*at, status);
      *flag = 1;
      return MPI_SUCCESS;
    }
    MPI_Status found = begun(status);
    int present = kUntold;
    const int code = host::Iprobe(source, tag, comm, &present, &found);
    if (code != MPI_SUCCESS || present == kUntold) return code;
    *flag = present;
    if (present == 0) return MPI_SUCCESS;
    if (!may_be_header(comm, found.MPI_SOURCE, length_of(found))) {
      if (status != MPI_STATUS_IGNORE) *status = found;
      return MPI_SUCCESS;
    }
    if (const int failed = hold(found.MPI_SOURCE, found.MPI_TAG, comm, *held)) return failed;
  }
}

int improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
            MPI_Status* status) {
  HeldMessages* const held = held_of(comm);
  if (held == nullptr || flag == nullptr || message == nullptr)
    return host::Improbe(source, tag, comm, flag, message, status);
  const auto locked = lock_after_receives(*held);
  HeldMessage found;
  if (const auto at = find(held->messages, source, tag); at != held->messages.end()) {
    take(*held, at, found);
    *flag = 1;
  } else {
    MPI_Status probed = begun(status);
    int present = kUntold;
    const int code = host::Improbe(source, tag, comm, &present, message, &probed);
    if (code != MPI_SUCCESS || present == kUntold) return code;
    *flag = present;
    if (present == 0) return MPI_SUCCESS;
    const MPI_Count size = length_of(probed);
    if (!may_be_header(comm, probed.MPI_SOURCE, size)) {
      if (status != MPI_STATUS_IGNORE) *status = probed;
      return MPI_SUCCESS;
    }
    found = {*message, probed.MPI_SOURCE, probed.MPI_TAG, size, nullptr};
    if (const int failed = read(comm, found)) return failed;
  }
  tell(found, status);
  if (found.substitute) give_out(found.handle, found.substitute);
  *message = found.handle;
  return MPI_SUCCESS;
}

bool take_held(int source, int tag, MPI_Comm comm, HeldMessage& found) {
  HeldMessages* const held = holds_messages() ? held_of(comm) : nullptr;
  return held != nullptr && take_held(source, tag, *held, found);
}

bool take_held(int source, int tag, HeldMessages& held, HeldMessage& found) {
  if (!holds_messages()) return false;
  const std::lock_guard<std::recursive_mutex> locked(held.mutex);
  const auto at = find(held.messages, source, tag);
  if (at == held.messages.end()) return false;
  take(held, at, found);
  if (found.substitute) found.substitute->begin_receive();
  return true;
}

std::shared_ptr<HeldMessages> held_messages(MPI_Comm comm) {
  CommState* const state = messaging.joined ? comm_state(comm) : nullptr;
  return state == nullptr ? nullptr : state->held;
}

bool must_post_receives() { return messaging.joined && job.has_threads && may_be_sent_headers(); }

ReceiveOrder::ReceiveOrder(MPI_Comm comm) {
  if (!must_post_receives()) return;
  HeldMessages* const held = held_of(comm);
  if (held == nullptr) return;
  held->receives_waiting.fetch_add(1);
  locked_ = std::unique_lock<std::recursive_mutex>(held->mutex);
  held->receives_waiting.fetch_sub(1);
}

void give_out(MPI_Message message, std::shared_ptr<Substitute> substitute) {
  Claims& all = claims();
  if (substitute->header && messaging.node_joined) outbox().is_probed(*substitute->header);
  const std::lock_guard<std::mutex> locked(all.mutex);
  all.by_handle[to_bits(message)] = std::move(substitute);
  all.count.store(all.by_handle.size(), std::memory_order_release);
}

std::shared_ptr<Substitute> claim_substitute(const MPI_Message* message) {
  Claims& all = claims();
  if (message == nullptr || all.count.load(std::memory_order_acquire) == 0) return nullptr;
  const std::lock_guard<std::mutex> locked(all.mutex);
  const auto found = all.by_handle.find(to_bits(*message));
  if (found == all.by_handle.end()) return nullptr;
  auto substitute = std::move(found->second);
  all.by_handle.erase(found);
  all.count.store(all.by_handle.size(), std::memory_order_release);
  substitute->begin_receive();
  return substitute;
}

}  // namespace accord::shim
