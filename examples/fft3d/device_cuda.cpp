// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// CUDA's runtime and cuFFT, declared here as their documents describe them: no CUDA is needed to
// compile this.
#include <stdexcept>

#include "device.h"
#include "library.h"

namespace fft3d {
namespace {

using Stream = void*;
using EventHandle = void*;

struct Cuda {
  int (*get_device_count)(int*);
  int (*set_device)(int);
  int (*allocate)(void**, std::size_t);
  int (*release)(void*);
  int (*allocate_pinned)(void**, std::size_t);
  int (*release_pinned)(void*);
  int (*copy)(void*, const void*, std::size_t, int kind, Stream);
  int (*copy_rows)(void*, std::size_t, const void*, std::size_t, std::size_t, std::size_t, int kind,
                   Stream);
  int (*create_stream)(Stream*, unsigned flags);
  int (*synchronise)(Stream);
  int (*create_event)(EventHandle*, unsigned flags);
  int (*record_event)(EventHandle, Stream);
  int (*wait_for_event)(EventHandle);
  int (*destroy_event)(EventHandle);
  const char* (*error_text)(int);

  explicit Cuda(const Library& library) {
    library.find(get_device_count, "cudaGetDeviceCount");
    library.find(set_device, "cudaSetDevice");
    library.find(allocate, "cudaMalloc");
    library.find(release, "cudaFree");
    library.find(allocate_pinned, "cudaMallocHost");
    library.find(release_pinned, "cudaFreeHost");
    library.find(copy, "cudaMemcpyAsync");
    library.find(copy_rows, "cudaMemcpy2DAsync");
    library.find(create_stream, "cudaStreamCreateWithFlags");
    library.find(synchronise, "cudaStreamSynchronize");
    library.find(create_event, "cudaEventCreateWithFlags");
    library.find(record_event, "cudaEventRecord");
    library.find(wait_for_event, "cudaEventSynchronize");
    library.find(destroy_event, "cudaEventDestroy");
    library.find(error_text, "cudaGetErrorString");
  }
  void check(int error, const char* call) const {
    if (error != 0) throw std::runtime_error(std::string(call) + ": " + error_text(error));
  }
};
constexpr int kFindKind = 4;            // cudaMemcpyDefault
constexpr unsigned kOfItsOwnOrder = 1;  // cudaStreamNonBlocking
constexpr unsigned kWithoutTime = 2;    // cudaEventDisableTiming

struct Cufft {
  using Plan = int;
  int (*plan_many)(Plan*, int rank, int* n, int* in_embed, int in_stride, int in_distance,
                   int* out_embed, int out_stride, int out_distance, int type, int count);
  int (*set_stream)(Plan, Stream);
  int (*complex_to_complex)(Plan, void* from, void* to, int direction);
  int (*real_to_complex)(Plan, void* from, void* to);
  int (*complex_to_real)(Plan, void* from, void* to);
  int (*destroy)(Plan);

  explicit Cufft(const Library& library) {
    library.find(plan_many, "cufftPlanMany");
    library.find(set_stream, "cufftSetStream");
    library.find(complex_to_complex, "cufftExecZ2Z");
    library.find(real_to_complex, "cufftExecD2Z");
    library.find(complex_to_real, "cufftExecZ2D");
    library.find(destroy, "cufftDestroy");
  }
};
constexpr int kComplexToComplex = 0x69;
constexpr int kRealToComplex = 0x6a;
constexpr int kComplexToReal = 0x6c;
constexpr int kForward = -1;
constexpr int kBackward = 1;

void check_cufft(int error, const char* call) {
  if (error != 0) throw std::runtime_error(std::string(call) + ": error " + std::to_string(error));
}

class CudaTransform : public Transform {
 public:
  CudaTransform(const Cufft& cufft, Stream stream, int length, int count, bool real)
      : cufft_(cufft), real_(real) {
    int n = length;
    int embed = length;  // of no meaning in one dimension, but without it strides have none either
    check_cufft(cufft_.plan_many(&forward_, 1, &n, &embed, 1, length, &embed, count, 1,
                                 real ? kRealToComplex : kComplexToComplex, count),
                "cufftPlanMany");
    check_cufft(cufft_.plan_many(&backward_, 1, &n, &embed, count, 1, &embed, 1, length,
                                 real ? kComplexToReal : kComplexToComplex, count),
                "cufftPlanMany");
    check_cufft(cufft_.set_stream(forward_, stream), "cufftSetStream");
    check_cufft(cufft_.set_stream(backward_, stream), "cufftSetStream");
  }
  ~CudaTransform() override {
    cufft_.destroy(forward_);
    cufft_.destroy(backward_);
  }

  void forward(const void* from, void* to) override {
    void* const in = const_cast<void*>(from);
    if (real_)
      check_cufft(cufft_.real_to_complex(forward_, in, to), "cufftExecD2Z");
    else
      check_cufft(cufft_.complex_to_complex(forward_, in, to, kForward), "cufftExecZ2Z");
  }
  void backward(const void* from, void* to) override {
    void* const in = const_cast<void*>(from);
    if (real_)
      check_cufft(cufft_.complex_to_real(backward_, in, to), "cufftExecZ2D");
    else
      check_cufft(cufft_.complex_to_complex(backward_, in, to, kBackward), "cufftExecZ2Z");
  }

 private:
  const Cufft& cufft_;
  bool real_;
  Cufft::Plan forward_ = 0;
  Cufft::Plan backward_ = 0;
};

class CudaEvent : public Event {
 public:
  CudaEvent(const Cuda& cuda, Stream stream) : cuda_(cuda), stream_(stream) {
    cuda_.check(cuda_.create_event(&event_, kWithoutTime), "cudaEventCreateWithFlags");
  }
  ~CudaEvent() override { cuda_.destroy_event(event_); }

  void record() override { cuda_.check(cuda_.record_event(event_, stream_), "cudaEventRecord"); }
  void wait() override { cuda_.check(cuda_.wait_for_event(event_), "cudaEventSynchronize"); }

 private:
  const Cuda& cuda_;
  Stream stream_;
  EventHandle event_ = nullptr;
};

class CudaDevice : public Device {
 public:
  CudaDevice(const Cuda& cuda, int number)
      : cuda_(cuda), cufft_(Library({"libcufft.so", "libcufft.so.12", "libcufft.so.11"})) {
    cuda_.check(cuda_.set_device(number), "cudaSetDevice");
    cuda_.check(cuda_.create_stream(&stream_, kOfItsOwnOrder), "cudaStreamCreateWithFlags");
  }

  std::string name() const override { return "cuda"; }
  void* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    cuda_.check(cuda_.allocate(&memory, bytes > 0 ? bytes : 1), "cudaMalloc");
    return memory;
  }
  void release(void* memory) noexcept override { cuda_.release(memory); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    begin_copy(to, from, bytes);
    synchronise();
  }
  void* allocate_pinned(std::size_t bytes) override {
    void* memory = nullptr;
    cuda_.check(cuda_.allocate_pinned(&memory, bytes > 0 ? bytes : 1), "cudaMallocHost");
    return memory;
  }
  void release_pinned(void* memory) noexcept override { cuda_.release_pinned(memory); }
  void begin_copy(void* to, const void* from, std::size_t bytes) override {
    cuda_.check(cuda_.copy(to, from, bytes, kFindKind, stream_), "cudaMemcpyAsync");
  }
  void copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                 std::size_t bytes, std::size_t rows) override {
    cuda_.check(cuda_.copy_rows(to, to_pitch, from, from_pitch, bytes, rows, kFindKind, stream_),
                "cudaMemcpy2DAsync");
  }
  void synchronise() override { cuda_.check(cuda_.synchronise(stream_), "cudaStreamSynchronize"); }
  std::unique_ptr<Event> event() override { return std::make_unique<CudaEvent>(cuda_, stream_); }
  std::unique_ptr<Transform> transform(int length, int count, bool real) override {
    return std::make_unique<CudaTransform>(cufft_, stream_, length, count, real);
  }

 private:
  Cuda cuda_;
  Cufft cufft_;
  Stream stream_ = nullptr;
};

}  // namespace

std::unique_ptr<Device> open_cuda(int rank_in_node) {
  if (!Library({"libcuda.so.1"})) return nullptr;
  const Library library({"libcudart.so", "libcudart.so.13", "libcudart.so.12"});
  if (!library) return nullptr;
  const Cuda cuda(library);
  int devices = 0;
  if (cuda.get_device_count(&devices) != 0 || devices == 0) return nullptr;
  return std::make_unique<CudaDevice>(cuda, rank_in_node % devices);
}

}  // namespace fft3d
