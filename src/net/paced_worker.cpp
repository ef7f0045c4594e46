// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "net/paced_worker.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <map>
#include <set>
#include <utility>

namespace accord::net {
namespace {

using device::AdapterModel;
using Moment = AdapterModel::Moment;
using Clock = std::chrono::steady_clock;

// A transfer: begun at its moment, and over not before another one.
struct Paced {
  std::function<Ticket()> begin;            // empty: it has begun
  std::function<Moment()> end;              // empty: once the network says so
  std::multiset<Moment>::iterator waiting;  // among the worker's moments
  bool waits = false;
  bool is_cancelled = false;
  bool has_arrived = false;
  Status status;
  Ticket ticket;
};

// The last byte of a key says whether adapters reach that memory as a device's.
class PacedRegion final : public Region {
 public:
  PacedRegion(std::unique_ptr<Region> region, bool is_on_device) : region_(std::move(region)) {
    key_.assign(region_->key().begin(), region_->key().end());
    key_.push_back(std::byte{is_on_device});
  }

 private:
  std::unique_ptr<Region> region_;
};

struct PacedRemoteRegion final : RemoteRegion {
  std::unique_ptr<RemoteRegion> region;
  bool is_on_device = false;
};

class PacedWorker final : public Worker {
 public:
  PacedWorker(std::unique_ptr<Worker> worker, AdapterModel& model)
      : worker_(std::move(worker)), model_(model) {
    watch(worker_->descriptor());
    watch(timer_);
  }
  ~PacedWorker() override {
    worker_.reset();
    (void)::close(timer_);
    (void)::close(descriptor_);
  }

  Bytes address() const noexcept override { return worker_->address(); }
  Status connect(Bytes address, Peer*& peer) override { return worker_->connect(address, peer); }
  Status check(const Peer& peer) override { return worker_->check(peer); }
  Status await(Peer& peer) override { return worker_->await(peer); }
  void note_coming(Peer& peer, std::ptrdiff_t change_bytes) noexcept override {
    worker_->note_coming(peer, change_bytes);
  }
  Status post(Peer& peer, unsigned kind, Bytes message) override {
    return worker_->post(peer, kind, message);
  }
  void listen(unsigned kind, Handler handler) override {
    worker_->listen(kind, std::move(handler));
  }
  bool reaches(const Where& where) const noexcept override { return worker_->reaches(where); }

  Ticket send(Peer& peer, std::uint64_t tag, const void* memory, std::size_t size_bytes,
              const Where& where) override {
    return leave(where, size_bytes,
                 [=, this, &peer] { return worker_->send(peer, tag, memory, size_bytes, where); });
  }
  Ticket receive(Peer& peer, std::uint64_t tag, void* memory, std::size_t size_bytes,
                 const Where& where) override {
    // As a rule it comes out of device memory: nobody here knows.
    return come(where, size_bytes, AdapterModel::From::device,
                worker_->receive(peer, tag, memory, size_bytes, where));
  }
  Status share(void* memory, std::size_t size_bytes, std::unique_ptr<Region>& made,
               const Where& where) override {
    std::unique_ptr<Region> region;
    ACCORD_TRY(worker_->share(memory, size_bytes, region, where));
    made = std::make_unique<PacedRegion>(std::move(region), is_on_device(where));
    return {};
  }
  Status reach(Peer& peer, Bytes key, std::unique_ptr<RemoteRegion>& made) override {
    if (key.empty()) return {StatusCode::network, "net: a key without a byte"};
    auto region = std::make_unique<PacedRemoteRegion>();
    region->is_on_device = key.back() != std::byte{0};
    ACCORD_TRY(worker_->reach(peer, key.first(key.size() - 1), region->region));
    made = std::move(region);
    return {};
  }
  Ticket put(Peer& peer, const void* from, std::size_t size_bytes, std::uint64_t to,
             RemoteRegion& region, const Where& where) override;
  // Nobody gets from a device's memory: regions that are read are a proxy's.
  Ticket get(Peer& peer, void* to, std::size_t size_bytes, std::uint64_t from, RemoteRegion& region,
             const Where& where) override {
    return come(where, size_bytes, AdapterModel::From::host,
                worker_->get(peer, to, size_bytes, from, inner(region), where));
  }

  Status poll(Ticket& ticket, bool& done) override;
  void cancel(Ticket& ticket) noexcept override;
  bool progress() override {
    const std::unique_lock locked(mutex_, std::try_to_lock);
    return locked.owns_lock() && worker_->progress();
  }
  int descriptor() const noexcept override { return descriptor_; }
  bool arm() override;
  void wake() noexcept override { worker_->wake(); }
  void close() noexcept override { worker_->close(); }
  std::uint64_t strange_messages() const noexcept override { return worker_->strange_messages(); }

 private:
  static bool is_on_device(const Where& where) noexcept { return device::needs_staging(where); }
  static RemoteRegion& inner(RemoteRegion& region) {
    return *static_cast<PacedRemoteRegion&>(region).region;
  }
  void watch(int descriptor) const {
    epoll_event event{};
    event.events = EPOLLIN;
    (void)::epoll_ctl(descriptor_, EPOLL_CTL_ADD, descriptor, &event);
  }
  Ticket leave(const Where& where, std::size_t size_bytes, std::function<Ticket()> begin);
  Ticket come(const Where& where, std::size_t size_bytes, AdapterModel::From from, Ticket begun);
  Ticket keep(std::unique_ptr<Paced> paced);
  void wait(Paced& paced, Moment until);
  bool is_time(Paced& paced);

  std::unique_ptr<Worker> worker_;
  AdapterModel& model_;
  const int timer_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  const int descriptor_ = ::epoll_create1(EPOLL_CLOEXEC);
  std::multiset<Moment> moments_;        // that transfers wait for
  std::map<const Peer*, Moment> peers_;  // when what was put into devices there is in their memory
};

void PacedWorker::wait(Paced& paced, Moment until) {
  paced.waiting = moments_.insert(until);
  paced.waits = true;
}

// Once it is, it waits no more.
bool PacedWorker::is_time(Paced& paced) {
  if (!paced.waits) return true;
  if (!paced.is_cancelled && Clock::now() < *paced.waiting) return false;
  moments_.erase(paced.waiting);
  paced.waits = false;
  return true;
}

Ticket PacedWorker::keep(std::unique_ptr<Paced> paced) {
  Peer* const peer = paced->ticket.peer;
  return {.request = paced.release(), .status = {}, .peer = peer};
}

Ticket PacedWorker::leave(const Where& where, std::size_t size_bytes,
                          std::function<Ticket()> begin) {
  const std::lock_guard locked(mutex_);
  auto paced = std::make_unique<Paced>();
  if (is_on_device(where)) {
    paced->begin = std::move(begin);
    wait(*paced, model_.begin_read(where.device, size_bytes));
  } else {
    paced->ticket = begin();
  }
  return keep(std::move(paced));
}

Ticket PacedWorker::come(const Where& where, std::size_t size_bytes, AdapterModel::From from,
                         Ticket begun) {
  const std::lock_guard locked(mutex_);
  auto paced = std::make_unique<Paced>();
  paced->ticket = std::move(begun);
  if (is_on_device(where))
    paced->end = [this, device = where.device, size_bytes, from] {
      return model_.end_write(device, size_bytes, from);
    };
  return keep(std::move(paced));
}

Ticket PacedWorker::put(Peer& peer, const void* from, std::size_t size_bytes, std::uint64_t to,
                        RemoteRegion& region, const Where& where) {
  const std::lock_guard locked(mutex_);
  Ticket ticket = leave(where, size_bytes, [=, this, &peer, &region] {
    return worker_->put(peer, from, size_bytes, to, inner(region), where);
  });
  if (static_cast<PacedRemoteRegion&>(region).is_on_device)
    static_cast<Paced*>(ticket.request)->end = [this, &peer, size_bytes] {
      return model_.end_write_at_peer(peers_[&peer], size_bytes);
    };
  return ticket;
}

Status PacedWorker::poll(Ticket& ticket, bool& done) {
  const std::lock_guard locked(mutex_);
  done = true;
  auto* const paced = static_cast<Paced*>(ticket.request);
  if (paced == nullptr) return std::exchange(ticket.status, {});
  done = is_time(*paced);
  if (!done) return {};
  if (paced->begin && paced->is_cancelled) {
    paced->status = {StatusCode::network, "net: cancelled"};
    paced->has_arrived = true;
  } else if (paced->begin) {
    paced->ticket = std::exchange(paced->begin, {})();
  }
  if (!paced->has_arrived) {
    paced->status = worker_->poll(paced->ticket, paced->has_arrived);
    done = paced->has_arrived;
    if (!done) return {};
    if (paced->end && paced->status.ok()) wait(*paced, paced->end());
    done = is_time(*paced);
    if (!done) return {};
  }
  const std::unique_ptr<Paced> ended(paced);
  ticket.request = nullptr;
  return std::move(ended->status);
}

void PacedWorker::cancel(Ticket& ticket) noexcept {
  const std::lock_guard locked(mutex_);
  auto* const paced = static_cast<Paced*>(ticket.request);
  if (paced == nullptr) return;
  paced->is_cancelled = true;
  (void)is_time(*paced);  // nobody need poll it any more
  worker_->cancel(paced->ticket);
}

// A sleeper wakes at the next moment that a transfer waits for.
bool PacedWorker::arm() {
  const std::lock_guard locked(mutex_);
  itimerspec timer{};
  if (!moments_.empty()) {
    const std::int64_t ns = std::chrono::nanoseconds(moments_.begin()->time_since_epoch()).count();
    if (Clock::now() >= *moments_.begin()) return false;
    timer.it_value = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  }
  (void)::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &timer, nullptr);
  return worker_->arm();
}

}  // namespace

std::unique_ptr<Worker> make_paced(std::unique_ptr<Worker> worker, device::AdapterModel& model) {
  return std::make_unique<PacedWorker>(std::move(worker), model);
}

}  // namespace accord::net
