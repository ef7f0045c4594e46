// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "model_shim.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "fake_device.h"

namespace accord::model {
namespace {

using core::StagedBuffer;

StagedBuffer describe_buffer(const Buffer& buffer) {
  const device::PointerInfo where = FakeDevice::classify_any(buffer.data);
  return device::needs_staging(where) ? StagedBuffer::staged(buffer.data, where)
                                      : StagedBuffer::untouched(buffer.data);
}

core::Segment segment_of(const Buffer& buffer) {
  const core::Run block{0, buffer.type.block_bytes, 0};
  return {std::make_shared<const core::Typemap>(
              std::vector<core::Run>{block}, static_cast<std::ptrdiff_t>(buffer.type.stride_bytes)),
          buffer.count, 0};
}

Buffer with_pointer(Buffer buffer, const void* pointer) {
  buffer.data = const_cast<void*>(pointer);
  return buffer;
}

core::Completion completion_of(const MessageStatus& status) {
  core::Completion completion;
  completion.received_bytes = status.size_bytes;
  completion.cancelled = status.cancelled;
  return completion;
}

// The ranks of the running job, for the one callback of the core that has no context.
constexpr std::size_t kRanksMax = 16;
std::array<std::atomic<FakeRank*>, kRanksMax> g_ranks{};

void release_orphan(core::HostRequest orphan) {
  g_ranks.at(FakeRank::rank_of_handle(orphan)).load()->request_free(orphan);
}

// A staged receive (or send: then nothing is copied out) that the user holds as a request of the
// host MPI.
class TrackedMessage final : public core::Tracked {
 public:
  TrackedMessage(StagedBuffer send, StagedBuffer recv)
      : send_(std::move(send)), recv_(std::move(recv)) {}
  Status start() override {
    ACCORD_TRY(send_.copy_in());
    return recv_.copy_in();
  }
  Status finish(const core::Completion& completion) override {
    if (completion.failed || completion.cancelled) return {};
    return recv_.copy_out(completion.received_bytes);
  }

 private:
  StagedBuffer send_;
  StagedBuffer recv_;
};

}  // namespace

Status ModelPort::test(core::HostRequest& request, bool& done) {
  done = host_.test(request);
  return {};
}
Status ModelPort::test_message(core::HostRequest& request, bool& done,
                               core::Completion& completion) {
  MessageStatus status;
  done = host_.test(request, &status);
  if (done) completion = completion_of(status);
  return {};
}
Status ModelPort::peek(core::HostRequest request, bool& done) {
  done = host_.peek(request);
  return {};
}
Status ModelPort::grequest_start(core::HostRequest& request) {
  request = host_.grequest_start();
  return {};
}
void ModelPort::grequest_complete(core::HostRequest request) { host_.grequest_complete(request); }
Status ModelPort::placeholder_init(core::HostRequest& request, int& number) {
  {
    const std::lock_guard<std::mutex> locked(placeholders_mutex_);
    if (free_placeholders_.empty()) free_placeholders_.push_back(placeholders_++);
    number = free_placeholders_.back();
    free_placeholders_.pop_back();
  }
  request = host_.recv_init(host_.own_comm(), 0, number, Buffer{});
  return {};
}
void ModelPort::placeholder_complete(int number) {
  Request sent = host_.isend(host_.own_comm(), 0, number, Buffer{}, FakeRank::Send::standard);
  host_.request_free(sent);
}
void ModelPort::placeholder_release(int number) {
  const std::lock_guard<std::mutex> locked(placeholders_mutex_);
  free_placeholders_.push_back(number);
}

bool ModelPort::progress_elsewhere() {
  awake_ = true;
  return scheduler_.mode() == Scheduler::Mode::baton;
}

void ModelPort::lock(std::recursive_mutex& mutex) {
  if (scheduler_.mode() == Scheduler::Mode::free) {
    mutex.lock();
    return;
  }
  while (!mutex.try_lock()) scheduler_.yield();
}

void ModelPort::background(core::Engine& engine) {
  if (engine.idle() || !engine.in_blocking_call()) awake_ = false;
  if (awake_) engine.progress();
}

ModelShim::ModelShim(Scheduler& scheduler, FakeRank& host, const ShimOptions& options)
    : scheduler_(scheduler),
      host_(host),
      options_(options),
      port_(scheduler, host),
      engine_(port_) {
  g_ranks.at(static_cast<std::size_t>(host.world_rank())) = &host;
  engine_.allow_threads(options.threads_allowed);
  if (scheduler.mode() != Scheduler::Mode::baton) return;
  if (is(Mutation::block_without_progress) || is(Mutation::no_progress_thread)) return;
  host_.background = [this] { port_.background(engine_); };
}

ModelShim::~ModelShim() { host_.background = nullptr; }

void ModelShim::check(const Status& status) {
  if (status.ok()) return;
  if (failure_.kind != Failing::Kind::none) throw RankStopped();
  if (keep_errors) {
    last_error = status;
  } else {
    scheduler_.fail("rank " + std::to_string(host_.world_rank()) + ": " + status.message());
  }
}

void ModelShim::set_failure(const Failing& failure) {
  failure_ = failure;
  if (failure.kind == Failing::Kind::host_call && failure.rank_of == host_.world_rank())
    host_calls_left_ = failure.after;
}

int ModelShim::host_code() {
  constexpr int kError = 15;
  if (host_calls_left_ < 0) return 0;
  return host_calls_left_.fetch_sub(1) == 0 ? kError : 0;
}

std::shared_ptr<core::CommQueue> ModelShim::queue_of(Comm comm) {
  const std::lock_guard<std::mutex> locked(queues_mutex_);
  auto& queue = queues_[comm];
  if (queue) return queue;
  queue = std::make_shared<core::CommQueue>();
  if (boards_ != nullptr) attach(queue->watch, comm);
  return queue;
}

void ModelShim::watch_calls(std::vector<node::CallBoard>& boards, FakeMpi& mpi) {
  boards_ = &boards;
  mpi_ = &mpi;
}

void ModelShim::attach(core::CallWatch& watch, Comm comm) {
  const std::vector<int> members = mpi_->members(comm);
  std::vector<const node::CallBoard*> peers;
  for (const int member : members)
    peers.push_back(member == host_.world_rank() ? nullptr
                                                 : &(*boards_)[static_cast<std::size_t>(member)]);
  watch.attach(static_cast<std::uint64_t>(comm) + 1,
               (*boards_)[static_cast<std::size_t>(host_.world_rank())], std::move(peers),
               [members](std::size_t rank) { return is_dead(members[rank]); });
}

// As the host MPI calls us back when a communicator is freed.
void ModelShim::end_queue(Comm comm) {
  const std::lock_guard<std::mutex> locked(queues_mutex_);
  queues_.erase(comm);
}

// --- point to point ---

Request ModelShim::hand_over(Request request, StagedBuffer send, StagedBuffer recv) {
  auto work = std::make_shared<TrackedMessage>(std::move(send), std::move(recv));
  MessageStatus status;
  if (host_.peek(request, &status)) {
    check(work->finish(completion_of(status)));
  } else {
    requests_.track(request, std::move(work));
  }
  return request;
}

Request ModelShim::hand_over_persistent(Request request, StagedBuffer send, StagedBuffer recv) {
  auto work = std::make_shared<TrackedMessage>(std::move(send), std::move(recv));
  work->persistent = true;
  work->active = false;
  requests_.track(request, std::move(work));
  return request;
}

Request ModelShim::isend(Comm comm, int dst, int tag, const Buffer& buffer, Send mode) {
  StagedBuffer staged = describe_buffer(buffer);
  if (!staged.is_staged()) {
    if (!engine_.idle()) engine_.progress();
    return host_.isend(comm, dst, tag, buffer, mode);
  }
  staged.reads(segment_of(buffer));
  check(staged.open());
  check(staged.copy_in());
  const Request request = host_.isend(comm, dst, tag, with_pointer(buffer, staged.host()), mode);
  return hand_over(request, std::move(staged), {});
}

Request ModelShim::irecv(Comm comm, int src, int tag, const Buffer& buffer) {
  StagedBuffer staged = describe_buffer(buffer);
  if (!staged.is_staged()) {
    if (!engine_.idle()) engine_.progress();
    return host_.irecv(comm, src, tag, buffer);
  }
  staged.writes(segment_of(buffer));
  check(staged.open());
  const Request request = host_.irecv(comm, src, tag, with_pointer(buffer, staged.host()));
  return hand_over(request, {}, std::move(staged));
}

Request ModelShim::send_init(Comm comm, int dst, int tag, const Buffer& buffer, Send mode) {
  StagedBuffer staged = describe_buffer(buffer);
  if (!staged.is_staged()) return host_.send_init(comm, dst, tag, buffer, mode);
  staged.reads(segment_of(buffer));
  check(staged.open());
  const Request request =
      host_.send_init(comm, dst, tag, with_pointer(buffer, staged.host()), mode);
  return hand_over_persistent(request, std::move(staged), {});
}

Request ModelShim::recv_init(Comm comm, int src, int tag, const Buffer& buffer) {
  StagedBuffer staged = describe_buffer(buffer);
  if (!staged.is_staged()) return host_.recv_init(comm, src, tag, buffer);
  staged.writes(segment_of(buffer));
  check(staged.open());
  const Request request = host_.recv_init(comm, src, tag, with_pointer(buffer, staged.host()));
  return hand_over_persistent(request, {}, std::move(staged));
}

// Blocks in the host MPI when nothing of ours needs progress, else polls the testing form.
template <class Native, class Poll>
void ModelShim::complete(Native native, Poll poll) {
  if (engine_.idle() || is(Mutation::block_without_progress)) {
    const core::Engine::BlockingRegion region(engine_);
    native();
    return;
  }
  engine_.wait_until(poll);
}

void ModelShim::send(Comm comm, int dst, int tag, const Buffer& buffer, Send mode) {
  StagedBuffer staged = describe_buffer(buffer);
  if (staged.is_staged()) staged.reads(segment_of(buffer));
  check(staged.open());
  check(staged.copy_in());
  const Buffer shadow = with_pointer(buffer, staged.host());
  Request request = kNoRequest;
  bool issued = false;
  complete([&] { host_.send(comm, dst, tag, shadow, mode); },
           [&] {
             if (!issued) request = host_.isend(comm, dst, tag, shadow, mode);
             issued = true;
             return host_.test(request);
           });
}

MessageStatus ModelShim::recv(Comm comm, int src, int tag, const Buffer& buffer) {
  StagedBuffer staged = describe_buffer(buffer);
  if (staged.is_staged()) staged.writes(segment_of(buffer));
  check(staged.open());
  const Buffer shadow = with_pointer(buffer, staged.host());
  MessageStatus status;
  Request request = kNoRequest;
  bool issued = false;
  complete([&] { status = host_.recv(comm, src, tag, shadow); },
           [&] {
             if (!issued) request = host_.irecv(comm, src, tag, shadow);
             issued = true;
             return host_.test(request, &status);
           });
  if (!is(Mutation::no_finish)) check(staged.copy_out(status.size_bytes));
  return status;
}

MessageStatus ModelShim::probe(Comm comm, int src, int tag) {
  MessageStatus status;
  complete([&] { status = host_.probe(comm, src, tag); },
           [&] { return host_.iprobe(comm, src, tag, status); });
  return status;
}

bool ModelShim::iprobe(Comm comm, int src, int tag, MessageStatus& status) {
  engine_.progress();
  return host_.iprobe(comm, src, tag, status);
}

void ModelShim::cancel(Request request) {
  engine_.progress();
  host_.cancel(request);
}

// --- completion ---

std::vector<ModelShim::Watched> ModelShim::watch(const std::vector<Request>& requests) {
  std::vector<Watched> watched;
  if (requests_.empty()) return watched;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    auto work = requests_.claim(requests[i]);
    if (!work) continue;
    if (work->active) {
      watched.push_back({i, requests[i], std::move(work)});
    } else {
      requests_.unclaim(work);
    }
  }
  return watched;
}

// None of them has completed.
void ModelShim::unwatch(const std::vector<Watched>& watched) {
  for (const Watched& one : watched) requests_.unclaim(one.work);
}

void ModelShim::settle(const Watched& one, const MessageStatus& status) {
  core::Completion completion = completion_of(status);
  if (is(Mutation::no_finish)) completion.cancelled = completion.failed = true;
  check(requests_.finish(one.handle, one.work, completion));
}

void ModelShim::wait(Request& request, MessageStatus& status) {
  const auto watched = watch({request});
  complete([&] { host_.wait(request, &status); }, [&] { return host_.test(request, &status); });
  if (!watched.empty()) settle(watched.front(), status);
}

bool ModelShim::test(Request& request, MessageStatus& status) {
  engine_.progress();
  const auto watched = watch({request});
  if (!host_.test(request, &status)) {
    unwatch(watched);
    return false;
  }
  if (!watched.empty()) settle(watched.front(), status);
  return true;
}

void ModelShim::wait_all(std::vector<Request>& requests, std::vector<MessageStatus>& statuses) {
  const auto watched = watch(requests);
  complete([&] { host_.wait_all(requests, statuses); },
           [&] { return host_.test_all(requests, statuses); });
  for (const Watched& one : watched) settle(one, statuses[one.index]);
}

bool ModelShim::test_all(std::vector<Request>& requests, std::vector<MessageStatus>& statuses) {
  engine_.progress();
  const auto watched = watch(requests);
  if (!host_.test_all(requests, statuses)) {
    unwatch(watched);
    return false;
  }
  for (const Watched& one : watched) settle(one, statuses[one.index]);
  return true;
}

int ModelShim::wait_any(std::vector<Request>& requests, MessageStatus& status) {
  const auto watched = watch(requests);
  int index = kUndefined;
  complete([&] { index = host_.wait_any(requests, status); },
           [&] { return host_.test_any(requests, index, status); });
  for (const Watched& one : watched) {
    static_cast<int>(one.index) == index ? settle(one, status) : requests_.unclaim(one.work);
  }
  return index;
}

std::vector<int> ModelShim::wait_some(std::vector<Request>& requests,
                                      std::vector<MessageStatus>& statuses) {
  const auto watched = watch(requests);
  std::vector<int> indices;
  complete([&] { indices = host_.wait_some(requests, statuses); },
           [&] {
             MessageStatus status;
             int index = kUndefined;
             if (!host_.test_any(requests, index, status)) return false;
             if (index != kUndefined) {
               indices.push_back(index);
               statuses.push_back(status);
             }
             return true;
           });
  for (const Watched& one : watched) {
    const auto done = std::find(indices.begin(), indices.end(), static_cast<int>(one.index));
    done == indices.end() ? requests_.unclaim(one.work)
                          : settle(one, statuses[static_cast<std::size_t>(done - indices.begin())]);
  }
  return indices;
}

// A request reported complete must have its data in place, though the handle stays.
bool ModelShim::get_status(Request request, MessageStatus& status) {
  engine_.progress();
  const auto watched = watch({request});
  if (!host_.peek(request, &status)) {
    unwatch(watched);
    return false;
  }
  for (const Watched& one : watched) settle(one, status);
  return true;
}

void ModelShim::start(Request request) {
  engine_.progress();
  check(requests_.start(request));
  host_.start(request);
  requests_.started(request);
}

void ModelShim::request_free(Request& request) {
  const auto work = requests_.find(request);
  if (!work) {
    host_.request_free(request);
    return;
  }
  requests_.forget(request);
  if (!work->active) {
    host_.request_free(request);
    return;
  }
  engine_.submit(std::make_shared<core::OrphanOperation>(request, work, release_orphan), nullptr);
  request = kNoRequest;
}

void ModelShim::finalize() {
  engine_.wait_until([this] { return engine_.idle(); });
  engine_.stop_thread();
  host_.finalize();
}

}  // namespace accord::model
