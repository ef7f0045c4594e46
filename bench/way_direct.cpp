// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The MPI call on the program's own buffers: ours, when it goes through Accord, by the algorithm
// that it would take or by a named one, and the peer "mpi", when it goes straight to the MPI
// library.
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <stdexcept>

#include "bench/buffer.h"
#include "bench/way.h"

namespace accord::bench {
namespace {

class DirectWay : public Way {
 public:
  DirectWay(const Session& session, std::string name, Reach reach, MPI_Comm comm)
      : session_(session), name_(std::move(name)), reach_(reach), comm_(comm) {}

  std::string name() const override { return name_; }

  std::string why_not(const Operation&) override {
    if (reach_ == Reach::program && session_.intercepted()) return "";
    const Options& options = session_.options;
    if (cpu_may_touch(options.send_memory) && cpu_may_touch(options.recv_memory)) return "";
    if (session_.cuda == nullptr) return "no MPI takes memory of the host runtime by itself";
    if (session_.host.cuda_support) return "";
    return "this MPI has no support for CUDA memory (MPIX_Query_cuda_support)";
  }

  std::string prepare(const Trial& trial) override {
    const MpiTable& table = reach_ == Reach::library ? session_.host.table : session_.program;
    call_ = make_call(*trial.operation, {.shape = &trial.shape,
                                         .send = trial.buffers.send,
                                         .recv = trial.buffers.recv,
                                         .type = session_.mpi_type,
                                         .element_bytes = session_.element->size_bytes,
                                         .op = session_.mpi_op,
                                         .comm = comm_});
    auto steps = trial.operation->bind(table, session_.options.form, *call_);
    if (!steps) {
      return fmt::format("the MPI has no {} form of this operation",
                         to_text(session_.options.form));
    }
    steps_ = std::move(*steps);
    return "";
  }

  void run() override {
    for (const Step& step : steps_) {
      if (step.invocation->run() != MPI_SUCCESS) throw std::runtime_error("an MPI call failed");
    }
  }

  void release() override {
    steps_.clear();
    call_.reset();
  }

  bool is_accord() const override { return reach_ == Reach::program && session_.intercepted(); }
  std::string algorithm() const override {
    const char* const setting = std::getenv("ACCORD_ALGORITHM");
    if (!is_accord()) return "";
    return setting == nullptr || *setting == '\0' ? "auto" : setting;
  }

 protected:
  MPI_Comm comm() const { return comm_; }

 private:
  const Session& session_;
  std::string name_;
  Reach reach_;
  MPI_Comm comm_;
  std::unique_ptr<Call> call_;
  Steps steps_;
};

// As the program would ask for it: these calls are Accord's.
MPI_Comm duplicate_for(MPI_Comm comm, const std::string& algorithm) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "accord_algorithm", algorithm.c_str());
  MPI_Comm_dup_with_info(comm, info, &made);
  MPI_Info_free(&info);
  return made;
}

class AlgorithmWay final : public DirectWay {
 public:
  AlgorithmWay(const Session& session, const std::string& algorithm)
      : DirectWay(session, algorithm, Reach::program, duplicate_for(session.comm, algorithm)) {}
  ~AlgorithmWay() override {
    MPI_Comm mine = comm();
    MPI_Comm_free(&mine);
  }

  std::string why_not(const Operation& operation) override {
    if (!is_accord()) return "Accord does not intercept MPI here";
    // A call of a hopeless way may take seconds.
    if (times_left_[&operation] >= kTimesLeftMax) return "took too long for shorter messages";
    return DirectWay::why_not(operation);
  }
  // What is slow for short messages may well be the fastest for long ones, but not the other way.
  void note_left(const Operation& operation, std::size_t size_bytes) override {
    if (size_bytes >= kLongBytes) ++times_left_[&operation];
  }
  std::string algorithm() const override { return name(); }

 private:
  static constexpr std::size_t kLongBytes = std::size_t{1} << 20;
  static constexpr int kTimesLeftMax = 2;
  std::map<const Operation*, int> times_left_;
};

}  // namespace

std::unique_ptr<Way> make_direct(const Session& session, std::string name, Reach reach) {
  return std::make_unique<DirectWay>(session, std::move(name), reach, session.comm);
}

std::unique_ptr<Way> make_algorithm(const Session& session, const std::string& algorithm) {
  return std::make_unique<AlgorithmWay>(session, algorithm);
}

std::unique_ptr<Way> make_host_mpi(const Session& session) {
  return make_direct(session, "mpi", Reach::library);
}

}  // namespace accord::bench
