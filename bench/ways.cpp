// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/way.h"

namespace accord::bench {

#define PEER(name, make) std::unique_ptr<Way> make(const Session& session);
#include "bench/ways.def"
#undef PEER

std::vector<std::string> peer_names() {
  return {
#define PEER(name, make) name,
#include "bench/ways.def"
#undef PEER
  };
}

std::unique_ptr<Way> make_peer(const Session& session, const std::string& name) {
#define PEER(known, make) \
  if (name == known) return make(session);
#include "bench/ways.def"
#undef PEER
  return nullptr;
}

}  // namespace accord::bench
