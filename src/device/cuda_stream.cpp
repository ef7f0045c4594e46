// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/cuda_stream.h"

namespace accord::device::cuda {
namespace {

class CudaStream final : public LibraryStream {
 public:
  CudaStream(const Driver& driver, Context context, unsigned long long id, Stream stream)
      : driver_(driver), context_(context), id_(id), stream_(stream) {}
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  Status enqueue(const std::function<Status(void*)>& work) override;
  Status poll(bool& done) override;

 private:
  Result enter(ContextScope& scope) const;

  const Driver& driver_;
  const Context context_;
  const unsigned long long id_;  // of the context, never used twice
  const Stream stream_;
  bool is_busy_ = false;
};

// A program that resets its device takes the stream along, and the context's handle comes back.
Result CudaStream::enter(ContextScope& scope) const {
  unsigned long long id = 0;
  const Result result = driver_.context_get_id(context_, &id);
  if (result == Result::success && id != id_) return Result::context_is_destroyed;
  return result == Result::success ? scope.enter(context_) : result;
}

// What is still on the stream goes on.
CudaStream::~CudaStream() {
  ContextScope scope(driver_);
  if (enter(scope) == Result::success) (void)driver_.stream_destroy(stream_);
}

Status CudaStream::enqueue(const std::function<Status(void*)>& work) {
  ContextScope scope(driver_);
  ACCORD_TRY(status_of(driver_, enter(scope), "library: context"));
  Status status = work(stream_);
  is_busy_ = status.ok();
  // Nobody asks after it, so nothing may be left in flight.
  if (!is_busy_)
    keep_first(status,
               status_of(driver_, driver_.stream_synchronize(stream_), symbol::stream_synchronize));
  return status;
}

Status CudaStream::poll(bool& done) {
  done = !is_busy_;
  if (done) return Status();
  ContextScope scope(driver_);
  Result result = enter(scope);
  if (result == Result::success) result = driver_.stream_query(stream_);
  if (result == Result::not_ready) return Status();
  is_busy_ = false;
  done = true;
  return status_of(driver_, result, symbol::stream_query);
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
  stream = std::make_unique<CudaStream>(driver, context, id, made);
  return Status();
}

}  // namespace accord::device::cuda
