// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Streams, events, graphs and copies of the stand-in: a thread a stream does its work in order,
// late.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>

#include "library.h"

// NOLINTBEGIN(readability-identifier-naming): HIP's names
using namespace accord::test::hip;
using namespace accord::device::cuda;
using accord::device::hip::CopyKind;

namespace accord::device::cuda {

struct StreamHandle {
  int device = 0;
  std::deque<Work> pending;
  std::uint64_t enqueued = 0;
  std::uint64_t completed = 0;
  bool destroyed = false;
  bool capturing = false;
  std::vector<Work> captured;
};

struct EventHandle {
  int device = 0;
  Stream stream = nullptr;
  std::uint64_t mark = 0;
};

struct GraphHandle {
  std::vector<Work> works;
};
struct GraphProgramHandle : GraphHandle {};

}  // namespace accord::device::cuda

namespace {

thread_local CaptureMode capture_mode = CaptureMode::global;

void serve(Stream stream) {
  static const auto delay_us = [] {
    const char* text = std::getenv("ACCORD_TEST_HIP_DELAY_US");
    return static_cast<useconds_t>(text == nullptr ? 0 : std::strtol(text, nullptr, 10));
  }();
  std::unique_lock lock(state().mutex);
  for (;;) {
    state().changed.wait(lock, [&] { return !stream->pending.empty() || stream->destroyed; });
    if (stream->pending.empty()) break;
    Work work = std::move(stream->pending.front());
    stream->pending.pop_front();
    lock.unlock();
    if (delay_us != 0) ::usleep(delay_us);
    work();
    work = nullptr;  // with what it holds
    lock.lock();
    ++stream->completed;
    --state().jobs;
    state().changed.notify_all();
  }
  delete stream;
}

// Handles of streams that are always there.
constexpr Stream kDefaultStream = nullptr;
const Stream kStreamPerThread = reinterpret_cast<Stream>(std::uintptr_t{2});  // idle here

// With the state's mutex held.
void land() {
  for (const Work& work : state().late[current_device]) work();
  state().late[current_device].clear();
  state().late_polls = 0;
}

bool usable(Stream stream) { return stream != nullptr && stream->device == current_device; }

Result make_stream(Stream* stream) {
  const std::lock_guard lock(state().mutex);
  *stream = new StreamHandle;
  (*stream)->device = current_device;
  ++state().objects;
  std::thread(serve, *stream).detach();
  return Result::success;
}

Result copy_rows(void* dst, std::size_t dst_pitch_bytes, const void* src,
                 std::size_t src_pitch_bytes, std::size_t row_bytes, std::size_t rows,
                 Stream stream) {
  const std::lock_guard lock(state().mutex);
  if (rows == 0 || row_bytes == 0) return Result::success;
  std::vector<std::shared_ptr<Allocation>> held;
  std::byte* const to = reach(dst, (rows - 1) * dst_pitch_bytes + row_bytes, held);
  const std::byte* const from = reach(src, (rows - 1) * src_pitch_bytes + row_bytes, held);
  return enqueue(stream, [=, kept = std::move(held)] {
    for (std::size_t row = 0; row < rows; ++row)
      std::memcpy(to + row * dst_pitch_bytes, from + row * src_pitch_bytes, row_bytes);
  });
}

}  // namespace

namespace accord::test::hip {

Result enqueue(Stream stream, Work work) {
  if (!usable(stream)) return kInvalidHandle;
  if (stream->capturing) {
    stream->captured.push_back(std::move(work));
    return Result::success;
  }
  stream->pending.push_back(std::move(work));
  ++stream->enqueued;
  ++state().jobs;
  state().changed.notify_all();
  return Result::success;
}

}  // namespace accord::test::hip

extern "C" {

Result hipStreamCreateWithFlags(Stream* stream, unsigned flags) {
  return api(__func__, [&] {
    return flags == kStreamNonBlocking ? make_stream(stream) : Result::invalid_value;
  });
}
Result hipStreamCreateWithPriority(Stream* stream, unsigned, int) {
  return api(__func__, [&] { return make_stream(stream); });
}
Result hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return api(__func__, [&] {
    *least = *greatest = 0;
    return Result::success;
  });
}
// What is on it goes on.
Result hipStreamDestroy(Stream stream) {
  return api(__func__, [&] {
    const std::lock_guard lock(state().mutex);
    if (!usable(stream)) return kInvalidHandle;
    stream->destroyed = true;
    --state().objects;
    state().changed.notify_all();
    return Result::success;
  });
}
Result hipStreamSynchronize(Stream stream) {
  return api(__func__, [&] {
    std::unique_lock lock(state().mutex);
    if (stream == kDefaultStream) land();
    if (stream == kDefaultStream || stream == kStreamPerThread) return Result::success;
    if (!usable(stream)) return kInvalidHandle;
    state().changed.wait(lock, [&] { return stream->completed == stream->enqueued; });
    return Result::success;
  });
}
Result hipStreamQuery(Stream stream) {
  return api(__func__, [&] {
    const std::lock_guard lock(state().mutex);
    if (stream == kStreamPerThread) return Result::success;
    if (stream == kDefaultStream) {
      constexpr int kPollsBeforeDone = 3;
      if (!state().late[current_device].empty() && ++state().late_polls < kPollsBeforeDone)
        return Result::not_ready;
      land();
      return Result::success;
    }
    if (!usable(stream)) return kInvalidHandle;
    return stream->completed == stream->enqueued ? Result::success : Result::not_ready;
  });
}
Result hipThreadExchangeStreamCaptureMode(CaptureMode* mode) {
  return api(__func__, [&] {
    std::swap(*mode, capture_mode);
    return Result::success;
  });
}
Result hipStreamIsCapturing(Stream stream, CaptureStatus* status) {
  return api(__func__, [&] {
    const std::lock_guard lock(state().mutex);
    if (stream != nullptr && !usable(stream)) return kInvalidHandle;
    *status = stream != nullptr && stream->capturing ? CaptureStatus::active : CaptureStatus::none;
    return Result::success;
  });
}
Result hipStreamBeginCapture(Stream stream, CaptureMode mode) {
  return api(__func__, [&] {
    const std::lock_guard lock(state().mutex);
    if (!usable(stream)) return kInvalidHandle;
    if (mode != CaptureMode::relaxed || stream->capturing) return Result::invalid_value;
    stream->capturing = true;
    return Result::success;
  });
}
Result hipStreamEndCapture(Stream stream, Graph* graph) {
  return api(__func__, [&] {
    const std::lock_guard lock(state().mutex);
    if (!usable(stream) || !stream->capturing) return Result::invalid_value;
    stream->capturing = false;
    *graph = new GraphHandle{std::exchange(stream->captured, {})};
    ++state().objects;
    return Result::success;
  });
}
Result hipGraphDestroy(Graph graph) {
  return api(__func__, [&] {
    const std::lock_guard lock(state().mutex);
    delete graph;
    --state().objects;
    return Result::success;
  });
}
Result hipGraphInstantiateWithFlags(GraphProgram* program, Graph graph, unsigned long long flags) {
  return api(__func__, [&] {
    const std::lock_guard lock(state().mutex);
    if (flags != 0 || graph == nullptr) return Result::invalid_value;
    *program = new GraphProgramHandle{*graph};
    ++state().objects;
    return Result::success;
  });
}
Result hipGraphExecDestroy(GraphProgram program) {
  return api(__func__, [&] {
    const std::lock_guard lock(state().mutex);
    delete program;
    --state().objects;
    return Result::success;
  });
}
Result hipGraphLaunch(GraphProgram program, Stream stream) {
  return api(__func__, [&] {
    const std::lock_guard lock(state().mutex);
    for (const Work& work : program->works) {
      if (const Result result = enqueue(stream, work); result != Result::success) return result;
    }
    return Result::success;
  });
}

Result hipEventCreateWithFlags(Event* event, unsigned flags) {
  return api(__func__, [&] {
    if (flags != kEventDisableTiming) return Result::invalid_value;
    const std::lock_guard lock(state().mutex);
    *event = new EventHandle{.device = current_device};
    ++state().objects;
    return Result::success;
  });
}
Result hipEventRecord(Event event, Stream stream) {
  return api(__func__, [&] {
    const std::lock_guard lock(state().mutex);
    if (!usable(stream) || event->device != current_device) return kInvalidHandle;
    event->stream = stream;
    event->mark = stream->enqueued;
    return Result::success;
  });
}
Result hipEventQuery(Event event) {
  return api(__func__, [&] {
    const std::lock_guard lock(state().mutex);
    if (event->stream == nullptr) return kInvalidHandle;
    return event->stream->completed >= event->mark ? Result::success : Result::not_ready;
  });
}

Result hipMemcpy(void* dst, const void* src, std::size_t size_bytes, CopyKind kind) {
  return api(__func__, [&] {
    constexpr auto kWithinDevice = static_cast<CopyKind>(3);
    if (kind != CopyKind::by_address && kind != kWithinDevice) return Result::invalid_value;
    std::vector<std::shared_ptr<Allocation>> held;
    std::unique_lock lock(state().mutex);
    std::byte* const to = reach(dst, size_bytes, held);
    const std::byte* const from = reach(src, size_bytes, held);
    if (kind == kWithinDevice) {
      state().late[current_device].push_back(
          [=, kept = std::move(held)] { std::memcpy(to, from, size_bytes); });
      return Result::success;
    }
    lock.unlock();
    std::memcpy(to, from, size_bytes);
    return Result::success;
  });
}
Result hipMemset(void* dst, int value, std::size_t size_bytes) {
  return api(__func__, [&] {
    std::vector<std::shared_ptr<Allocation>> held;
    const std::lock_guard lock(state().mutex);
    std::byte* const to = reach(dst, size_bytes, held);
    state().late[current_device].push_back(
        [=, kept = std::move(held)] { std::memset(to, value, size_bytes); });
    return Result::success;
  });
}
Result hipMemcpyAsync(void* dst, const void* src, std::size_t size_bytes, CopyKind kind,
                      Stream stream) {
  return api(__func__, [&] {
    if (kind != CopyKind::by_address) return Result::invalid_value;
    return copy_rows(dst, 0, src, 0, size_bytes, 1, stream);
  });
}
Result hipMemcpy2DAsync(void* dst, std::size_t dst_pitch_bytes, const void* src,
                        std::size_t src_pitch_bytes, std::size_t row_bytes, std::size_t rows,
                        CopyKind kind, Stream stream) {
  return api(__func__, [&] {
    if (kind != CopyKind::by_address || row_bytes > dst_pitch_bytes || row_bytes > src_pitch_bytes)
      return Result::invalid_value;
    return copy_rows(dst, dst_pitch_bytes, src, src_pitch_bytes, row_bytes, rows, stream);
  });
}

}  // extern "C"
// NOLINTEND
