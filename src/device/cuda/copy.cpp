// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/cuda/copy.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace accord::device::cuda {
namespace {

// More streams than this gain nothing: a device has a handful of copy engines.
constexpr std::size_t kLanesMax = 32;

// Limit of a 2D copy's pitch: the driver's attribute MAX_PITCH, which is this on every device.
constexpr std::size_t kPitchBytesMax = 0x7fffffff;

// A stream of our own. Batches share one only when there are more of them in flight than lanes.
struct Lane {
  Stream stream = nullptr;
  int users = 0;
};

// Streams and idle events of one context. A context that was destroyed took its streams and events
// along, and its handle may come back for a new one: hence the id, which is never used twice.
class ContextState {
 public:
  ContextState(Context context, unsigned long long id) : context_(context), id_(id) {}

  Context context() const noexcept { return context_; }
  unsigned long long id() const noexcept { return id_; }

  Result borrow(const Driver& driver, Lane*& lane) {
    const std::lock_guard lock(mutex_);
    lane = nullptr;
    for (Lane& next : lanes_) {
      if (lane == nullptr || next.users < lane->users) lane = &next;
      if (lane->users == 0) break;
    }
    if (lane == nullptr || (lane->users > 0 && lanes_.size() < kLanesMax)) {
      Lane fresh;
      const Result result = driver.stream_create(&fresh.stream, kStreamNonBlocking);
      if (result != Result::success) return result;
      lane = &lanes_.emplace_back(fresh);
    }
    ++lane->users;
    return Result::success;
  }

  void give_back(Lane& lane) {
    const std::lock_guard lock(mutex_);
    --lane.users;
  }

  Result take_event(const Driver& driver, Event& event) {
    const std::lock_guard lock(mutex_);
    if (events_.empty()) return driver.event_create(&event, kEventDisableTiming);
    event = events_.back();
    events_.pop_back();
    return Result::success;
  }

  void keep_event(Event event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
  }

 private:
  const Context context_;
  const unsigned long long id_;
  std::mutex mutex_;
  std::deque<Lane> lanes_;  // addresses stay
  std::vector<Event> events_;
};

// Never destroyed, nor is what it holds: at exit the driver may be gone before us.
struct ContextStates {
  std::mutex mutex;
  std::vector<std::unique_ptr<ContextState>> entries;
};

Result state_of(const Driver& driver, Context context, ContextState*& state) {
  static ContextStates& states = *new ContextStates;
  unsigned long long id = 0;
  const Result result = driver.context_get_id(context, &id);
  if (result != Result::success) return result;
  const std::lock_guard lock(states.mutex);
  for (const auto& entry : states.entries) {
    if (entry->context() == context && entry->id() == id) {
      state = entry.get();
      return Result::success;
    }
  }
  states.entries.push_back(std::make_unique<ContextState>(context, id));
  state = states.entries.back().get();
  return Result::success;
}

struct Ticket {
  ContextState* state;
  Lane* lane;
  Event event;
};

// Copies of a batch that are asked whose context they are in: all are on one device.
constexpr std::size_t kCopiesAsked = 2;

// A side of the batch that is memory of the device; null: none was found.
const void* device_side(const Driver& driver, Device device, std::span<const Copy> copies) {
  for (const Copy& copy : copies.first(std::min(copies.size(), kCopiesAsked))) {
    for (const void* pointer : {copy.src, static_cast<const void*>(copy.dst)}) {
      auto type = MemoryType::none;
      int ordinal = -1;
      if (driver.pointer_get_attribute(&type, PointerAttribute::memory_type, address_of(pointer)) ==
              Result::success &&
          type == MemoryType::device &&
          driver.pointer_get_attribute(&ordinal, PointerAttribute::device_ordinal,
                                       address_of(pointer)) == Result::success &&
          ordinal == device) {
        return pointer;
      }
    }
  }
  return nullptr;
}

Result enqueue_rows(const Driver& driver, const Copy& copy, Stream stream) {
  DevicePointer dst = address_of(copy.dst);
  DevicePointer src = address_of(copy.src);
  Result result = Result::success;
  for (std::size_t row = 0; row < copy.rows && result == Result::success; ++row) {
    result = driver.copy_async(dst, src, copy.row_bytes, stream);
    dst += copy.dst_pitch_bytes;
    src += copy.src_pitch_bytes;
  }
  return result;
}

bool contiguous(const Copy& copy) {
  return copy.rows == 1 ||
         (copy.dst_pitch_bytes == copy.row_bytes && copy.src_pitch_bytes == copy.row_bytes);
}

Result enqueue(const Driver& driver, const Copy& copy, Stream stream) {
  if (copy.rows == 0 || copy.row_bytes == 0) return Result::success;
  if (contiguous(copy)) {
    return driver.copy_async(address_of(copy.dst), address_of(copy.src), copy.rows * copy.row_bytes,
                             stream);
  }
  const auto fits = [&](std::size_t pitch_bytes) {
    return pitch_bytes >= copy.row_bytes && pitch_bytes <= kPitchBytesMax;
  };
  if (!fits(copy.dst_pitch_bytes) || !fits(copy.src_pitch_bytes)) {
    return enqueue_rows(driver, copy, stream);  // rows that overlap (reading), or lie far apart
  }
  Copy2d rectangle{};
  rectangle.src_type = MemoryType::unified;
  rectangle.src_device = address_of(copy.src);
  rectangle.src_pitch_bytes = copy.src_pitch_bytes;
  rectangle.dst_type = MemoryType::unified;
  rectangle.dst_device = address_of(copy.dst);
  rectangle.dst_pitch_bytes = copy.dst_pitch_bytes;
  rectangle.width_bytes = copy.row_bytes;
  rectangle.height = copy.rows;
  return driver.copy_2d_async(&rectangle, stream);
}

Result enqueue_all(const Driver& driver, std::span<const Copy> copies, Stream stream) {
  for (const Copy& copy : copies) {
    if (const Result result = enqueue(driver, copy, stream); result != Result::success) {
      return result;
    }
  }
  return Result::success;
}

Result wait(const Driver& driver, Stream stream, CopyMode mode) {
  if (mode == CopyMode::stream_poll) {
    Result result = Result::not_ready;
    while (result == Result::not_ready) result = driver.stream_query(stream);
    return result;
  }
  return driver.stream_synchronize(stream);
}

// The caller's context costs no query, and with unified addressing any context can copy any memory;
// so the buffer's own one is asked for only where the thread has none on the device.
Result enter_for_copies(const Driver& driver, Device device, std::span<const Copy> copies,
                        ContextScope& scope) {
  Result result = Result::success;
  if (scope.enter_current(device, result)) return result;
  return scope.enter_owner(device, device_side(driver, device, copies));
}

// Borrows a lane of the context that was entered.
Status borrow_lane(const Driver& driver, ContextScope& scope, ContextState*& state, Lane*& lane) {
  ACCORD_TRY(status_of(driver, state_of(driver, scope.context(), state), symbol::context_get_id));
  return status_of(driver, state->borrow(driver, lane), symbol::stream_create);
}

}  // namespace

Result ContextScope::relax(Context context) noexcept {
  context_ = context;
  outer_mode_ = CaptureMode::relaxed;
  const Result result = driver_.exchange_capture_mode(&outer_mode_);
  relaxed_ = result == Result::success;
  return result;
}

Result ContextScope::enter(Context context) noexcept {
  Context current = nullptr;
  Result result = driver_.context_get_current(&current);
  if (result != Result::success || current != context) {
    result = driver_.context_push(context);
    pushed_ = result == Result::success;
  }
  return result == Result::success ? relax(context) : result;
}

bool ContextScope::enter_current(Device device, Result& result) noexcept {
  Context current = nullptr;
  Device current_device = -1;
  if (driver_.context_get_current(&current) != Result::success || current == nullptr ||
      driver_.context_get_device(&current_device) != Result::success || current_device != device) {
    return false;
  }
  result = relax(current);
  return true;
}

Result ContextScope::enter_owner(Device device, const void* pointer) noexcept {
  Context context = nullptr;
  if (pointer != nullptr &&
      driver_.pointer_get_attribute(&context, PointerAttribute::context, address_of(pointer)) ==
          Result::success &&
      context != nullptr) {
    return enter(context);
  }
  const Result result = driver_.primary_context_retain(&context, device);
  if (result != Result::success) return result;
  held_primary_ = device;
  return enter(context);
}

bool ContextScope::enter_any() noexcept {
  Context current = nullptr;
  if (driver_.context_get_current(&current) == Result::success && current != nullptr) {
    return enter(current) == Result::success;
  }
  int count = 0;
  if (driver_.device_get_count(&count) != Result::success) return false;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    Device device = 0;
    unsigned flags = 0;
    int is_active = 0;
    if (driver_.device_get(&device, ordinal) == Result::success &&
        driver_.primary_context_get_state(device, &flags, &is_active) == Result::success &&
        is_active != 0) {
      return enter_owner(device, nullptr) == Result::success;
    }
  }
  return false;
}

ContextScope::~ContextScope() {
  if (relaxed_) driver_.exchange_capture_mode(&outer_mode_);
  Context popped = nullptr;
  if (pushed_) driver_.context_pop(&popped);
  if (held_primary_ >= 0) driver_.primary_context_release(held_primary_);
}

Status copy(const Driver& driver, Device device, std::span<const Copy> copies) {
  if (copies.empty()) return Status();
  const bool single = copies.size() == 1 && contiguous(copies[0]);
  const CopyMode mode = single ? copy_mode.load(std::memory_order_relaxed)  //
                               : CopyMode::stream_synchronize;
  ContextScope scope(driver);
  ACCORD_TRY(status_of(driver, enter_for_copies(driver, device, copies, scope), "copy: context"));
  if (mode == CopyMode::legacy_stream) {
    const std::size_t size_bytes = copies[0].rows * copies[0].row_bytes;
    const Result result =
        driver.copy(address_of(copies[0].dst), address_of(copies[0].src), size_bytes);
    return status_of(driver, result, symbol::copy);
  }
  ContextState* state = nullptr;
  Lane* lane = nullptr;
  ACCORD_TRY(borrow_lane(driver, scope, state, lane));
  const Result enqueued = enqueue_all(driver, copies, lane->stream);
  // Also after an error: what was enqueued before it still uses the caller's memory.
  const Result waited = wait(driver, lane->stream, mode);
  state->give_back(*lane);
  Status status = status_of(driver, enqueued, symbol::copy_async);
  keep_first(status, status_of(driver, waited, symbol::stream_synchronize));
  return status;
}

Status begin_work(const Driver& driver, ContextScope& scope,
                  const std::function<Status(Stream)>& enqueue, CopyTicket& ticket) {
  ticket.handle = nullptr;
  ContextState* state = nullptr;
  Lane* lane = nullptr;
  ACCORD_TRY(borrow_lane(driver, scope, state, lane));
  Event event = nullptr;
  Status status = status_of(driver, state->take_event(driver, event), symbol::event_create);
  if (!status.ok()) {
    state->give_back(*lane);
    return status;
  }
  status = enqueue(lane->stream);
  keep_first(status,
             status_of(driver, driver.event_record(event, lane->stream), symbol::event_record));
  if (!status.ok()) {  // no ticket, so nothing may be left in flight
    keep_first(status, status_of(driver, driver.stream_synchronize(lane->stream),
                                 symbol::stream_synchronize));
    state->keep_event(event);
    state->give_back(*lane);
    return status;
  }
  ticket.handle = new Ticket{state, lane, event};
  return status;
}

Status enqueue_copies(const Driver& driver, std::span<const Copy> copies, Stream stream) {
  return status_of(driver, enqueue_all(driver, copies, stream), symbol::copy_async);
}

Status begin_copies(const Driver& driver, Device device, std::span<const Copy> copies,
                    const std::function<Status(Stream)>& enqueue, CopyTicket& ticket) {
  ticket.handle = nullptr;
  if (copies.empty()) return Status();
  ContextScope scope(driver);
  ACCORD_TRY(status_of(driver, enter_for_copies(driver, device, copies, scope), "copy: context"));
  return begin_work(driver, scope, enqueue, ticket);
}

Status copy_begin(const Driver& driver, Device device, std::span<const Copy> copies,
                  CopyTicket& ticket) {
  const auto enqueue = [&](Stream stream) { return enqueue_copies(driver, copies, stream); };
  return begin_copies(driver, device, copies, enqueue, ticket);
}

Status copy_done(const Driver& driver, CopyTicket& ticket, bool& done) {
  auto* pending = static_cast<Ticket*>(ticket.handle);
  done = true;
  if (pending == nullptr) return Status();
  ContextScope scope(driver);
  Result result = scope.enter(pending->state->context());
  if (result == Result::success) result = driver.event_query(pending->event);
  if (result == Result::not_ready) {
    done = false;
    return Status();
  }
  pending->state->keep_event(pending->event);
  pending->state->give_back(*pending->lane);
  delete pending;
  ticket.handle = nullptr;
  return status_of(driver, result, symbol::event_query);
}

}  // namespace accord::device::cuda
