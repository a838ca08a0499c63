// library_store.h: the shared libraries of this process, found by the hash of their content.
//
// Programs name a library by hash, never by path: they stay equal across machines, and a program
// from elsewhere cannot open a file that this process did not build, load or register.
#ifndef MSOPS_LIBRARY_STORE_H_
#define MSOPS_LIBRARY_STORE_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace msops {

// An opened library. It stays open for the life of the process: compiled programs point into it.
class Library {
 public:
  Library(std::string name, std::string hash);

  // Base name of the file it came from, for messages.
  const std::string& name() const { return name_; }

  // "<name> (<first 12 digits of the hash>)", for messages.
  std::string Label() const;

  // Returns the address of the function `symbol`, or null if the library itself does not define
  // one: a variable is none, and neither is a function of a library that this one is linked with,
  // such as libc's system().
  void* FindFunction(const std::string& symbol) const;

  // Returns whether its std::string is the one from before C++11 (_GLIBCXX_USE_CXX11_ABI=0).
  bool has_old_string_abi() const { return has_old_string_abi_; }

  // From the first op on that calls the library not reentrant, calls of any of its kernels hold
  // this mutex. The flag is never taken back.
  void Serialise() { is_serialised_ = true; }
  bool is_serialised() const { return is_serialised_.load(std::memory_order_relaxed); }
  std::mutex& call_mutex() { return call_mutex_; }

 private:
  friend class LibraryStore;

  const std::string name_;
  const std::string hash_;
  std::string path_;
  std::vector<std::string> origins_;
  void* handle_ = nullptr;
  std::atomic<bool> has_old_string_abi_{false};
  std::atomic<bool> is_serialised_{false};
  std::mutex call_mutex_;
};

class LibraryStore {
 public:
  // The store of the process; never destroyed, as libraries are never closed.
  static LibraryStore& Get();

  // Makes a library known. `path` is a private copy that nobody rewrites; `origin` is the file the
  // user named, which the allow-list is checked against; it is empty for a library that msops wrote
  // the source of, which is always allowed. A library registered from several files may be opened
  // if the allow-list covers one of them.
  void Register(const std::string& hash, const std::string& path, const std::string& origin,
                bool has_old_string_abi);

  // Opens a library, or returns the one opened before; one that is not known is looked for in the
  // cache. `name` is what the caller knows it by, for the message if it is unknown here. Throws
  // std::runtime_error with what to do about it.
  Library& Open(const std::string& hash, std::string_view name);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<Library>> libraries_;
};

}  // namespace msops

#endif  // MSOPS_LIBRARY_STORE_H_
