// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/cuda/launched_inbox.h"

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <new>

#include "device/cuda/modules.h"
#include "device/launched_inbox.h"

namespace accord::device::cuda {
namespace {

Kernels& launched_kernels() {
  static Kernels& all = *new Kernels(&KernelImages::launched_inbox, "kernels for inboxes");
  return all;
}

class LaunchedLane final : public launched::Lane {
 public:
  LaunchedLane(const Driver& driver, Context context) : driver_(driver), context_(context) {}
  ~LaunchedLane() override {
    ContextScope scope(driver_);
    if (parameters_ != nullptr && scope.enter(context_) == Result::success)
      driver_.host_memory_free(parameters_);
  }

  Status open() override {
    ContextScope scope(driver_);
    ACCORD_TRY(enter(scope));
    void* memory = nullptr;
    ACCORD_TRY(status_of(driver_,
                         driver_.host_memory_allocate(&memory, sizeof *parameters_,
                                                      kHostAllocatePortable | kHostAllocateMapped),
                         symbol::host_memory_allocate));
    parameters_ = new (memory) launched::InboxParameters{};
    return Status();
  }

  Status begin(const InboxTicket& ticket) override {
    ContextScope scope(driver_);
    ACCORD_TRY(enter(scope));
    Function send = nullptr;
    Function receive = nullptr;
    ACCORD_TRY(launched_kernels().find(driver_, context_, launched::kSend, send));
    ACCORD_TRY(launched_kernels().find(
        driver_, context_, launched::receiving_kernel(ticket.exchange).kernel, receive));
    launched::write_parameters(ticket, *parameters_);
    Status status = begin_work(
        driver_, scope,
        [&](Stream stream) {
          ACCORD_TRY(launch(send, stream));
          return launch(receive, stream);
        },
        work_);
    usable_ = status.ok();
    return status;
  }

  Status poll(bool& ended, bool& complete) override {
    complete = false;
    Status status = copy_done(driver_, work_, ended);
    usable_ = usable_ && status.ok();
    if (status.ok() && ended)
      complete = std::atomic_ref(parameters_->late).load(std::memory_order_acquire) == 0;
    return status;
  }

  bool usable() const noexcept override { return usable_; }

 private:
  Status enter(ContextScope& scope) const {
    return status_of(driver_, scope.enter(context_), "inbox: context");
  }
  Status launch(Function kernel, Stream stream) {
    void* arguments[] = {&parameters_};
    return status_of(
        driver_,
        driver_.launch_kernel(kernel, launched::groups_of(parameters_->call), 1, 1,
                              launched::kInboxGroupThreads, 1, 1, 0, stream, arguments, nullptr),
        symbol::launch_kernel);
  }

  const Driver& driver_;
  const Context context_;
  launched::InboxParameters* parameters_ = nullptr;
  CopyTicket work_;
  bool usable_ = true;
};

// Never destroyed: at exit the driver may be gone before us. By the id of the context, since a new
// one may have the handle of one that was destroyed.
struct LaunchedServers {
  std::mutex mutex;
  std::map<unsigned long long, std::unique_ptr<launched::Server>> by_context;
};

}  // namespace

Status launched_inbox_server(const Driver& driver, const ContextScope& scope,
                             DeviceRuntime& runtime, Device device, InboxServer*& server) {
  static LaunchedServers& servers = *new LaunchedServers;
  const Context context = scope.context();
  Function kernel = nullptr;
  for (const char* name : {launched::kSend, launched::receiving_kernel({}).kernel})
    ACCORD_TRY(launched_kernels().find(driver, context, name, kernel));
  unsigned long long id = 0;
  ACCORD_TRY(status_of(driver, driver.context_get_id(context, &id), symbol::context_get_id));
  const std::lock_guard lock(servers.mutex);
  std::unique_ptr<launched::Server>& known = servers.by_context[id];
  if (known == nullptr) {
    const auto make_lane = [&driver, context](std::uint32_t) {
      return std::make_unique<LaunchedLane>(driver, context);
    };
    auto made = std::make_unique<launched::Server>(runtime, device, context, make_lane);
    ACCORD_TRY(made->open());
    known = std::move(made);
  }
  server = known.get();
  return Status();
}

}  // namespace accord::device::cuda
