// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/cuda/inbox.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>

#include "base/config.h"
#include "base/log.h"
#include "device/cuda/inbox_commands.h"
#include "device/cuda/inbox_kernel.h"
#include "device/device_claim.h"
#include "device/device_runtime.h"

namespace accord::device::cuda {
namespace {

// How many blocks move a message: more take longer to come back once they have left, and all of
// them have to (32 KiB, 100 us after the last call, 4 H200: 24, 27 and 36 us with 4, 8 and 32
// blocks; without a pause 10.7, 10.6 and 10.5).
struct Width {
  unsigned blocks;
  std::size_t bytes_max;
};
// A kernel of as many blocks as a device has multiprocessors fills it: they take turns then, and a
// call takes 120 us instead of 13 (128 KiB, 8 ranks on an H100 under MPS, 32 blocks each).
constexpr Width kWidths[] = {{1, kNarrowBytes}, {8, 8 * kNarrowBytes}, {32, SIZE_MAX}};

// Where the driver does not say: as if there were room for the widest of one process.
constexpr int kMultiprocessorsLeast = 32;

// Polls between two looks whether the kernel still runs.
constexpr unsigned kPollsPerLook = 1 << 14;

// Where this many calls in a row came after the kernel had left, it does not linger but for a trial
// now and then: a program that waits for its device after each call would only wait for us.
constexpr unsigned kMissesMax = 4;
constexpr unsigned kCallsPerTrial = 32;

std::uint64_t load(const std::uint64_t& word) {
  return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}

// Where host and kernel meet, never freed: in pages of our own, which stay when the program resets
// its device, whereas memory of the driver would go with the context. In the entered context.
Status make_control(const Driver& driver, InboxControl*& control) {
  constexpr std::size_t kPageBytes = 4096;
  constexpr std::size_t kBytes = (sizeof(InboxControl) + kPageBytes - 1) / kPageBytes * kPageBytes;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Status(StatusCode::no_memory, "inbox: no host memory");
  DevicePointer on_device = 0;
  Result result = driver.host_memory_register(memory, kBytes, kHostRegisterPortable);
  if (result == Result::success)
    result = driver.pointer_get_attribute(&on_device, PointerAttribute::device_pointer,
                                          address_of(memory));
  if (result != Result::success || on_device != address_of(memory)) {
    (void)driver.host_memory_unregister(memory);
    munmap(memory, kBytes);
    ACCORD_TRY(status_of(driver,
                         driver.host_memory_allocate(&memory, sizeof(InboxControl),
                                                     kHostAllocatePortable | kHostAllocateMapped),
                         symbol::host_memory_allocate));
  }
  control = new (memory) InboxControl{};
  return Status();
}

// One resident kernel of a number of blocks.
class Kernel {
 public:
  explicit Kernel(unsigned blocks) : blocks_(blocks) {}

  // In the entered context. Runs it once, so that nothing is left to load when it is in a hurry.
  Status open(const KnownContext& context, Function function) {
    const Driver& driver = context.driver;
    driver_ = &driver;
    context_.emplace(context);
    function_ = function;
    ACCORD_TRY(make_control(driver, control_));
    int least = 0;
    int greatest = 0;
    ACCORD_TRY(status_of(driver, driver.stream_priority_range(&least, &greatest),
                         symbol::stream_priority_range));
    ACCORD_TRY(status_of(driver,
                         driver.stream_create_with_priority(&stream_, kStreamNonBlocking, greatest),
                         symbol::stream_create_with_priority));
    ACCORD_TRY(launch());
    return status_of(driver, driver.stream_synchronize(stream_), symbol::stream_synchronize);
  }

  Status post(InboxTicket& ticket) {
    const std::lock_guard lock(mutex_);
    ACCORD_TRY(failure_);
    if (current_ != nullptr) return {};
    // Of a context that was destroyed not even the handles may be used.
    if (const Result there = context_->still_there(); there != Result::success)
      return give_up_on_error(ticket, status_of(*driver_, there, "inbox: context"));
    current_ = &ticket;
    ticket.state = InboxTicket::State::running;
    ticket.number = ++number_;
    answered_ = 0;
    const bool resident = !has_left();
    linger_us_ = linger_us(resident);
    const InboxCommand command = command_of(ticket, linger_us_);
    const std::size_t count = write_pieces(ticket, control_->pieces[0]);
    for (unsigned block = 0; block < blocks_; ++block) {
      if (block != 0) std::copy_n(control_->pieces[0], count, control_->pieces[block]);
      ring(control_->doorbells[block], command);
    }
    return resident ? Status() : give_up_on_error(ticket, start());
  }

  // `answered`: all blocks have done their part; `complete`: and all data had come. The ticket is
  // then no longer the kernel's.
  Status poll(InboxTicket& ticket, bool& answered, bool& complete) {
    const std::lock_guard lock(mutex_);
    answered = false;
    while (answered_ < blocks_ && load(control_->answers[answered_]) >> 1 == number_) ++answered_;
    if (answered_ < blocks_) {
      if (load(control_->left[answered_]) == launch_ &&
          load(control_->answers[answered_]) >> 1 != number_)
        return give_up_on_error(ticket, start());
      return ++polls_ % kPollsPerLook == 0 ? give_up_on_error(ticket, check()) : Status();
    }
    answered = true;
    complete = true;
    for (unsigned block = 0; block < blocks_; ++block)
      complete = complete && (load(control_->answers[block]) & 1) == 0;
    current_ = nullptr;
    return {};
  }

 private:
  bool has_left() const {
    for (unsigned block = 0; block < blocks_; ++block) {
      if (load(control_->left[block]) == launch_) return true;
    }
    return false;
  }

  std::uint16_t linger_us(bool resident) {
    misses_ = resident ? 0 : misses_ + 1;
    const bool trial = misses_ % kCallsPerTrial == 0;
    // There a launch returns when the kernel has left.
    static const bool blocking = [] {
      const char* text = std::getenv("CUDA_LAUNCH_BLOCKING");
      return text != nullptr && *text != '0';
    }();
    if (blocking || (misses_ > kMissesMax && !trial)) return 0;
    return static_cast<std::uint16_t>(std::clamp<Count>(config().linger_us, 0, UINT16_MAX));
  }

  void ring(InboxDoorbell& doorbell, const InboxCommand& command) const {
    std::uint32_t words[kInboxCommandWords];
    std::memcpy(words, &command, sizeof words);
    for (unsigned i = 0; i < kInboxCommandWords; ++i) {
      std::atomic_ref(doorbell.words[i]).store(number_ << 32 | words[i], std::memory_order_release);
    }
  }

  Status start() {
    ContextScope scope(*driver_);
    ACCORD_TRY(status_of(*driver_, context_->enter(scope), "inbox: context"));
    return launch();
  }

  Status launch() {
    InboxLaunch arguments{control_, ++launch_, linger_us_};
    for (unsigned block = 0; block < blocks_; ++block)
      std::atomic_ref(control_->doorbells[block].newest_launch)
          .store(launch_, std::memory_order_release);
    void* parameters[] = {&arguments};
    return status_of(*driver_,
                     driver_->launch_kernel(function_, blocks_, 1, 1, kInboxThreads, 1, 1, 0,
                                            stream_, parameters, nullptr),
                     symbol::launch_kernel);
  }

  // The kernel, or the context, may have died of somebody's fault.
  Status check() {
    ContextScope scope(*driver_);
    ACCORD_TRY(status_of(*driver_, context_->enter(scope), "inbox: context"));
    const Result result = driver_->stream_query(stream_);
    return result == Result::not_ready ? Status()
                                       : status_of(*driver_, result, symbol::stream_query);
  }

  // For good: what the blocks have seen of the last command is not known any more.
  Status give_up_on_error(InboxTicket& ticket, Status status) {
    if (!status.ok()) {
      failure_ = status;
      current_ = nullptr;
      ticket.state = InboxTicket::State::idle;
    }
    return status;
  }

  const unsigned blocks_;
  const Driver* driver_ = nullptr;
  std::optional<KnownContext> context_;
  Function function_ = nullptr;
  Stream stream_ = nullptr;
  InboxControl* control_ = nullptr;  // never freed: the kernel may still look at it
  std::mutex mutex_;
  InboxTicket* current_ = nullptr;
  Status failure_;            // of the driver; what comes later fails as well, instead of waiting
  std::uint64_t number_ = 0;  // of the last command
  std::uint64_t launch_ = 0;  // number of the last launch
  unsigned answered_ = 0;     // blocks that have answered the last command, as far as is known
  unsigned polls_ = 0;
  std::uint16_t linger_us_ = 0;  // after the last command
  unsigned misses_ = 0;          // calls in a row that came after the kernel had left
};

class CudaInboxServer final : public InboxServer {
 public:
  Status open(const KnownContext& context, const KernelPlace& place) {
    const Driver& driver = context.driver;
    if (place.server == 0) ACCORD_TRY(claim_device(place.device));
    place_ = place;
    context_ = context.context;
    known_.emplace(context);
    Function in_words = nullptr;
    Function in_packets = nullptr;
    ACCORD_TRY(status_of(driver, driver.module_load_data(&module_, driver.images.inbox),
                         symbol::module_load_data));
    ACCORD_TRY(status_of(driver, driver.module_get_function(&in_words, module_, "accord_inbox"),
                         symbol::module_get_function));
    Device device = 0;
    if (driver.context_get_device(&device) != Result::success ||
        driver.device_get_attribute(&multiprocessors_, DeviceAttribute::multiprocessors, device) !=
            Result::success)
      multiprocessors_ = kMultiprocessorsLeast;
    for (std::size_t width = 0; width < kWidthCount; ++width)
      ACCORD_TRY(kernels_[width].open(context, in_words));
    // nvcc before 12.4 cannot make it.
    const PacketReach reach = reach_of_packets(driver, device);
    if (reach.own == 0 ||
        driver.module_get_function(&in_packets, module_, "accord_inbox_packets") != Result::success)
      return {};
    for (std::size_t width = 0; width < kWidthCount; ++width)
      ACCORD_TRY(kernels_[kWidthCount + width].open(context, in_packets));
    packet_reach_ = reach;
    return {};
  }

  KernelPlace kernel_place() const override { return place_; }
  PacketReach packet_reach() const override { return packet_reach_; }
  // Memory of another context would make the kernel fault, and take the program's context with it.
  bool reaches(const PointerInfo& memory) const override {
    return memory.context == nullptr || memory.context == context_;
  }

  void share_with(int processes) override {
    int known = processes_.load(std::memory_order_relaxed);
    while (known < processes &&
           !processes_.compare_exchange_weak(known, processes, std::memory_order_relaxed)) {
    }
  }

  bool does_direct_work() const override { return true; }

  Status begin(InboxTicket& ticket) override {
    if (ticket.direct != nullptr) ACCORD_TRY(open_direct());
    ticket.state = InboxTicket::State::waiting;
    ticket.width = width_for(ticket);
    return kernel_for(ticket).post(ticket);
  }

  Status poll(InboxTicket& ticket, bool& done) override {
    done = ticket.state == InboxTicket::State::idle;
    if (done) return {};
    if (ticket.state == InboxTicket::State::waiting) return kernel_for(ticket).post(ticket);
    bool answered = false;
    bool complete = false;
    ACCORD_TRY(kernel_for(ticket).poll(ticket, answered, complete));
    if (!answered) return {};
    ticket.sent = true;
    ticket.state = complete ? InboxTicket::State::idle : InboxTicket::State::late;
    done = complete;
    return {};
  }

  void stop(InboxTicket& ticket, bool& done) override {
    bool complete = false;
    done = ticket.state != InboxTicket::State::running;
    if (!done && !kernel_for(ticket).poll(ticket, done, complete).ok()) done = true;
    if (done) ticket.state = InboxTicket::State::idle;
  }

 private:
  // Once there is such work: to have a kernel ready takes a launch.
  Status open_direct() {
    std::call_once(direct_flag_, [this] {
      const Driver& driver = known_->driver;
      const auto open = [&]() -> Status {
        ContextScope scope(driver);
        ACCORD_TRY(status_of(driver, known_->enter(scope), "inbox: context"));
        Function function = nullptr;
        ACCORD_TRY(status_of(driver,
                             driver.module_get_function(&function, module_, "accord_direct"),
                             symbol::module_get_function));
        for (std::size_t width = 0; width < kWidthCount; ++width)
          ACCORD_TRY(kernels_[2 * kWidthCount + width].open(*known_, function));
        return {};
      };
      direct_opened_ = open();
    });
    return direct_opened_;
  }

  Kernel& kernel_for(const InboxTicket& ticket) { return kernels_[ticket.width]; }

  std::size_t width_for(const InboxTicket& ticket) const {
    const auto blocks_max =
        static_cast<unsigned>(multiprocessors_ / processes_.load(std::memory_order_relaxed));
    const std::size_t size_bytes = width_bytes(ticket);
    // Direct work that is longer than what one block does has one width, whatever its length: what
    // comes in a row is of any length, and of several kernels most would have left (2 x H200,
    // windows of four messages of 64 KiB both ways: up to 12.9 us each instead of 7).
    const bool widest = ticket.direct != nullptr && size_bytes > kWidths[0].bytes_max;
    std::size_t width = 0;
    while ((widest ? width + 1 < kWidthCount : size_bytes > kWidths[width].bytes_max) &&
           kWidths[width + 1].blocks <= blocks_max)
      ++width;
    const std::size_t family = ticket.direct != nullptr ? 2 : ticket.exchange.in_packets ? 1 : 0;
    return family * kWidthCount + width;
  }

  KernelPlace place_;
  int multiprocessors_ = 0;
  std::atomic<int> processes_{1};
  Context context_ = nullptr;
  PacketReach packet_reach_;
  // By width, for words; then those for packets, and for direct work.
  static constexpr std::size_t kWidthCount = std::size(kWidths);
  static_assert(kWidthCount == 3);
  std::array<Kernel, 3 * kWidthCount> kernels_{
      {Kernel(kWidths[0].blocks), Kernel(kWidths[1].blocks), Kernel(kWidths[2].blocks),
       Kernel(kWidths[0].blocks), Kernel(kWidths[1].blocks), Kernel(kWidths[2].blocks),
       Kernel(kWidths[0].blocks), Kernel(kWidths[1].blocks), Kernel(kWidths[2].blocks)}};
  std::optional<KnownContext> known_;
  Module module_ = nullptr;
  std::once_flag direct_flag_;
  Status direct_opened_;
};

// Never destroyed: at exit the driver may be gone before us. By the id of the context, since a new
// one may have the handle of one that was destroyed.
struct Servers {
  struct Entry {
    CudaInboxServer server;
    Status opened;
  };
  std::mutex mutex;
  std::map<unsigned long long, Entry> by_context;
};

}  // namespace

std::uint64_t device_number(const Driver& driver, int device) {
  Uuid uuid{};
  if (driver.device_get_uuid(&uuid, device) != Result::success) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(uuid.bytes), sizeof uuid.bytes);
  return std::hash<std::string_view>{}(bytes) | 1;
}

PacketReach reach_of_packets(const Driver& driver, Device device) {
  constexpr int kGenerationLeast = 9;
  int generation = 0;
  int count = 0;
  if (driver.device_get_attribute(&generation, DeviceAttribute::compute_capability_major, device) !=
          Result::success ||
      generation < kGenerationLeast || driver.device_get_count(&count) != Result::success)
    return {};
  PacketReach reach{.own = device_number(driver, device)};
  std::size_t found = 0;
  for (Device peer = 0; peer < count && found < reach.peers.size(); ++peer) {
    int atomics = 0;
    if (peer != device &&
        driver.device_get_p2p_attribute(&atomics, P2pAttribute::native_atomics, device, peer) ==
            Result::success &&
        atomics != 0)
      reach.peers[found++] = device_number(driver, peer);
  }
  return reach;
}

Status inbox_server(const Driver& driver, const ContextScope& scope, const KernelPlace& place,
                    InboxServer*& server) {
  static Servers& servers = *new Servers;
  if (driver.images.inbox == nullptr)
    return Status(StatusCode::unsupported, "no kernel for inbox exchanges in this library");
  unsigned long long id = 0;
  ACCORD_TRY(
      status_of(driver, driver.context_get_id(scope.context(), &id), symbol::context_get_id));
  const std::lock_guard lock(servers.mutex);
  const auto [found, is_new] = servers.by_context.try_emplace(id);
  Servers::Entry& entry = found->second;
  if (is_new) entry.opened = entry.server.open({driver, scope.context(), id}, place);
  if (!entry.opened.ok()) return Status(StatusCode::unsupported, entry.opened.message());
  server = &entry.server;
  return Status();
}

}  // namespace accord::device::cuda
