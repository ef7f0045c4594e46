// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Active proxy, one hop: the proxy of the sender's node reads the sender's device memory, chunk by
// chunk, and puts it into the receiver's memory. The programs' processes only look, and the adapter
// of the sender's node reads host memory.
#include "net/active.h"

namespace accord::net {
namespace {

class Active1 final : public Design {
 public:
  const char* name() const noexcept override { return "active1"; }
  const char* path() const noexcept override { return "net-active1"; }
  bool takes(const Worker&, const device::PointerInfo& where) const override {
    return is_for_active(where);
  }
  bool is_ready(const device::PointerInfo& where) const override {
    return is_ready_for_active(where);
  }
  Status receive(const Line& line, const Memory& to, std::vector<std::byte>& ask,
                 std::unique_ptr<Transfer>& made) const override {
    auto transfer = std::make_unique<ActiveReceive>(line, to, nullptr);
    ACCORD_TRY(transfer->begin(ask));
    made = std::move(transfer);
    return {};
  }
  Status send(const Line& line, const Memory& from, Bytes ask,
              std::unique_ptr<Transfer>& made) const override {
    return send_actively(line, from, ask, made);
  }
};

}  // namespace

const Design& active1_design() {
  static const Active1& instance = *new Active1;
  return instance;
}

}  // namespace accord::net
