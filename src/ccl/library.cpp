// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "ccl/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>

#include "base/config.h"
#include "ccl/plugins.h"

namespace accord::ccl {

int fail(accord_ccl_error& error, std::string_view text) noexcept {
  const std::size_t length = std::min(text.size(), sizeof error.text - 1);
  std::copy_n(text.data(), length, error.text);
  error.text[length] = '\0';
  return 1;
}

namespace {

// A plug-in may have forgotten where a text ends.
template <std::size_t kBytes>
std::string_view text_of(const char (&text)[kBytes]) {
  return {text, ::strnlen(text, kBytes)};
}

Status status_of(const accord_ccl_plugin& plugin, int code, const accord_ccl_error& error) {
  if (code == 0) return {};
  return {StatusCode::device_error, fmt::format("{}: {}", plugin.name, text_of(error.text))};
}

Status given_up() { return {StatusCode::device_error, "a collective library was given up"}; }

}  // namespace

Status Communicator::usable() const { return given_up_ ? given_up() : Status(); }

Status Communicator::enqueue(std::span<const Work> works, void* stream) {
  if (works.empty()) return {};
  ACCORD_TRY(usable());
  accord_ccl_error error;
  error.text[0] = '\0';
  const int code = plugin_.enqueue(made_, works.data(), works.size(), stream, &error);
  return status_of(plugin_, code, error);
}

Status Communicator::check() {
  ACCORD_TRY(usable());
  accord_ccl_error error;
  error.text[0] = '\0';
  return status_of(plugin_, plugin_.check(made_, &error), error);
}

void Communicator::abort() noexcept {
  given_up_ = true;
  if (made_ != nullptr) plugin_.abort(made_);
  made_ = nullptr;
}

bool Library::takes(std::string_view runtime_name) const noexcept {
  return runtime_name == runtime() || (runtime_name == "host" && source_.named_by_user);
}

Status Library::open() {
  std::call_once(once_, [this] { opened_ = load(); });
  return opened_;
}

Status Library::load() {
  const accord_ccl_plugin& plugin = *source_.plugin;
  accord_ccl_error error{};
  int code = 1;
  for (const char* path : source_.paths) {
    code = plugin.open(path, &library_, &error);
    if (code == 0) break;
  }
  if (code != 0)
    return {StatusCode::unsupported, fmt::format("{}: {}", name(), text_of(error.text))};
  plugin.describe(library_, &description_);
  std::end(description_.path)[-1] = '\0';
  std::end(description_.found)[-1] = '\0';
  if (description_.version >= source_.version_min) return {};
  return {StatusCode::unsupported,
          fmt::format("{}: {} is version {}, older than {}", name(), description_.path,
                      description_.version, source_.version_min)};
}

bool Library::supports(accord_ccl_call call, accord_ccl_type type,
                       accord_ccl_op op) const noexcept {
  return library_ != nullptr && source_.plugin->supports(library_, call, type, op) != 0;
}

bool Library::can_be_recorded() const noexcept {
  const accord_ccl_plugin& plugin = *source_.plugin;
  return library_ != nullptr && plugin.can_be_recorded != nullptr &&
         plugin.can_be_recorded(library_) != 0;
}

Status Library::make_id(Id& id) {
  accord_ccl_error error{};
  return status_of(*source_.plugin, source_.plugin->make_id(library_, &id, &error), error);
}

Status Library::join(const Id& id, int rank, int size, std::unique_ptr<Communicator>& joined) {
  accord_ccl_error error{};
  void* made = nullptr;
  int code = source_.plugin->join(library_, &id, rank, size, &made, &error);
  if (code == 0 && made == nullptr) code = fail(error, "it has made no communicator");
  if (code == 0) joined = std::make_unique<Communicator>(*source_.plugin, made);
  return status_of(*source_.plugin, code, error);
}

namespace {

#define PLUGIN(name, abi, runtime, version_min, ...) \
  constexpr const char* name##_files[] = {__VA_ARGS__};
#include "ccl/plugins.def"
#undef PLUGIN

// Where the first version of the structure ends.
constexpr std::size_t kLeastPluginBytes = offsetof(accord_ccl_plugin, can_be_recorded);

// Of the process's settings. Never destroyed: libraries are used until the very end.
class Registry {
 public:
  Registry() {
    read_paths(config().ccl_libraries);
#define PLUGIN(name, abi, runtime, version_min, ...) \
  add({#name, runtime, version_min, name##_files}, abi##_plugin);
#include "ccl/plugins.def"
#undef PLUGIN
    if (config().ccl_plugin != "none") add_object(config().ccl_plugin.c_str());
    for (const auto& [name, path] : paths_)
      complain(fmt::format("ACCORD_CCL_LIBRARIES: there is no plug-in \"{}\"", name));
  }

  std::span<Library* const> libraries() const noexcept { return libraries_; }
  const std::string& problem() const noexcept { return problem_; }

 private:
  void read_paths(std::string_view list) {
    if (list == "none") return;
    while (!list.empty()) {
      const std::string_view item = list.substr(0, list.find(','));
      list.remove_prefix(std::min(list.size(), item.size() + 1));
      const std::size_t colon = item.find(':');
      if (colon == std::string_view::npos) {
        complain(fmt::format("ACCORD_CCL_LIBRARIES: \"{}\" is no name:path", item));
      } else {
        paths_[std::string(item.substr(0, colon))] = item.substr(colon + 1);
      }
    }
  }

  void add(const BuiltIn& line, accord_ccl_plugin (*make)(const BuiltIn&)) {
    plugins_.push_back(make(line));
    Library::Source source{.plugin = &plugins_.back(),
                           .paths = {line.files.begin(), line.files.end()},
                           .version_min = line.version_min};
    enter(std::move(source));
  }

  // Takes over the user's path for this name.
  void enter(Library::Source source) {
    if (const auto path = paths_.find(source.plugin->name); path != paths_.end()) {
      source.paths = {kept_.emplace_back(path->second).c_str()};
      source.named_by_user = true;
      paths_.erase(path);
    }
    libraries_.push_back(new Library(std::move(source)));
  }

  void add_object(const char* path) {
    void* const object = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == nullptr) return complain(fmt::format("ACCORD_CCL_PLUGIN: {}", ::dlerror()));
    const auto get =
        reinterpret_cast<accord_ccl_plugin_function*>(::dlsym(object, ACCORD_CCL_PLUGIN_SYMBOL));
    const accord_ccl_plugin* const plugin = get != nullptr ? get() : nullptr;
    if (plugin == nullptr)
      return complain(
          fmt::format("ACCORD_CCL_PLUGIN: {} has no {}", path, ACCORD_CCL_PLUGIN_SYMBOL));
    if (plugin->abi != ACCORD_CCL_ABI || plugin->size_bytes < kLeastPluginBytes)
      return complain(fmt::format("ACCORD_CCL_PLUGIN: {} is for version {} of accord/ccl.h, not {}",
                                  path, plugin->abi, ACCORD_CCL_ABI));
    if (std::ranges::any_of(libraries_, [&](const Library* known) {
          return std::string_view(known->name()) == plugin->name;
        }))
      return complain(
          fmt::format("ACCORD_CCL_PLUGIN: {} has the name of another, {}", path, plugin->name));
    // Members that it does not know yet are null.
    accord_ccl_plugin& whole = plugins_.emplace_back();
    std::memcpy(&whole, plugin, std::min<std::size_t>(plugin->size_bytes, sizeof whole));
    enter({.plugin = &whole, .paths = {nullptr}});
  }

  void complain(std::string_view text) {
    problem_ += fmt::format("{}{}; it is ignored", problem_.empty() ? "" : ". ", text);
  }

  std::map<std::string, std::string> paths_;  // as the user gives them, until they are taken
  std::deque<std::string> kept_;
  std::deque<accord_ccl_plugin> plugins_;
  std::vector<Library*> libraries_;
  std::string problem_;
};

const Registry& registry() {
  static const Registry& made = *new Registry;
  return made;
}

}  // namespace

std::span<Library* const> libraries() { return registry().libraries(); }

Library* find(std::string_view name) noexcept {
  const auto all = libraries();
  const auto found =
      std::ranges::find_if(all, [&](const Library* one) { return name == one->name(); });
  return found == all.end() ? nullptr : *found;
}

const std::string& problem() { return registry().problem(); }

}  // namespace accord::ccl
