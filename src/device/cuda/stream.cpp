// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/cuda/stream.h"

namespace accord::device::cuda {
namespace {

class CudaRecording final : public Recording {
 public:
  CudaRecording(const KnownContext& context, GraphProgram program)
      : context_(context), program_(program) {}
  // One that is under way ends first; nobody waits for it here.
  ~CudaRecording() override {
    ContextScope scope(context_.driver);
    if (context_.enter(scope) == Result::success)
      (void)context_.driver.graph_program_destroy(program_);
  }
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;

  Status put(void* stream) override {
    const Driver& driver = context_.driver;
    return status_of(driver, driver.graph_launch(program_, static_cast<Stream>(stream)),
                     symbol::graph_launch);
  }

 private:
  const KnownContext context_;
  const GraphProgram program_;
};

class CudaStream final : public LibraryStream {
 public:
  CudaStream(const KnownContext& context, Stream stream)
      : driver_(context.driver), context_(context), stream_(stream) {}
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  Status enqueue(const std::function<Status(void*)>& work) override;
  Status poll(bool& done) override;
  Status record(const std::function<Status(void*)>& work,
                std::unique_ptr<Recording>& made) override;

 private:
  Status capture(const std::function<Status(void*)>& work, Graph& graph);

  const Driver& driver_;
  const KnownContext context_;
  const Stream stream_;
  bool is_busy_ = false;
};

// What is still on the stream goes on.
CudaStream::~CudaStream() {
  ContextScope scope(driver_);
  if (context_.enter(scope) == Result::success) (void)driver_.stream_destroy(stream_);
}

Status CudaStream::enqueue(const std::function<Status(void*)>& work) {
  ContextScope scope(driver_);
  ACCORD_TRY(status_of(driver_, context_.enter(scope), "library: context"));
  is_busy_ = true;
  return work(stream_);
}

Status CudaStream::poll(bool& done) {
  done = !is_busy_;
  if (done) return Status();
  ContextScope scope(driver_);
  Result result = context_.enter(scope);
  if (result == Result::success) result = driver_.stream_query(stream_);
  if (result == Result::not_ready) return Status();
  is_busy_ = false;
  done = true;
  return status_of(driver_, result, symbol::stream_query);
}

// In relaxed mode, so that neither the library nor another thread is kept from anything meanwhile.
// A capture that has begun is ended in any case.
Status CudaStream::capture(const std::function<Status(void*)>& work, Graph& graph) {
  ACCORD_TRY(status_of(driver_, driver_.stream_begin_capture(stream_, CaptureMode::relaxed),
                       symbol::stream_begin_capture));
  Status status = work(stream_);
  keep_first(status, status_of(driver_, driver_.stream_end_capture(stream_, &graph),
                               symbol::stream_end_capture));
  return status;
}

Status CudaStream::record(const std::function<Status(void*)>& work,
                          std::unique_ptr<Recording>& made) {
  ContextScope scope(driver_);
  ACCORD_TRY(status_of(driver_, context_.enter(scope), "library: context"));
  Graph graph = nullptr;
  Status status = capture(work, graph);
  GraphProgram program = nullptr;
  if (status.ok())
    status = status_of(driver_, driver_.graph_instantiate(&program, graph, 0),
                       symbol::graph_instantiate);
  if (graph != nullptr) (void)driver_.graph_destroy(graph);
  if (status.ok()) made = std::make_unique<CudaRecording>(context_, program);
  return status;
}

}  // namespace

Status make_stream(const Driver& driver, const ContextScope& scope,
                   std::unique_ptr<LibraryStream>& stream) {
  const Context context = scope.context();
  unsigned long long id = 0;
  ACCORD_TRY(status_of(driver, driver.context_get_id(context, &id), symbol::context_get_id));
  Stream made = nullptr;
  ACCORD_TRY(
      status_of(driver, driver.stream_create(&made, kStreamNonBlocking), symbol::stream_create));
  stream = std::make_unique<CudaStream>(KnownContext{driver, context, id}, made);
  return Status();
}

// To ask the legacy stream whether it is done would spoil a capture of a blocking stream; whether
// there is one may be asked.
Status default_stream_busy(const Driver& driver, const PointerInfo& memory, bool& busy) {
  constexpr Stream kLegacy = nullptr;
  ContextScope scope(driver);
  ACCORD_TRY(status_of(driver, scope.enter_current_or_owner(memory.device, memory.base),
                       "default stream: context"));
  auto capture = CaptureStatus::active;
  busy = driver.stream_is_capturing(kLegacy, &capture) == Result::success &&
         capture == CaptureStatus::none && driver.stream_query(kLegacy) == Result::not_ready;
  return Status();
}

}  // namespace accord::device::cuda
