#include "device_check_table.h"

#include <fstream>
#include <mutex>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#ifndef _WIN32
#include <dlfcn.h>
#endif

namespace ranksafe {
namespace {

struct DeviceCheckTable {
  std::mutex mutex;
  std::unordered_set<std::string> unchecked;
  std::unordered_set<std::string> absent;
  std::unordered_set<std::string> only_on_cuda;
  std::unordered_map<std::string, std::string> wrappers;
};

DeviceCheckTable& device_check_table() {
  static auto* table = new DeviceCheckTable();
  return *table;
}

std::string path_beside_this_library(const char* name) {
#ifndef _WIN32
  Dl_info library;
  if (dladdr(reinterpret_cast<const void*>(&path_beside_this_library), &library) != 0 && library.dli_fname != nullptr) {
    const std::string path = library.dli_fname;
    return path.substr(0, path.rfind('/') + 1) + name;
  }
#endif
  return name;
}

// The table, read when it is first asked and nobody has filled it.
DeviceCheckTable& loaded_table() {
  static std::once_flag once;
  std::call_once(once, [] {
    bool empty = false;
    {
      std::lock_guard<std::mutex> lock(device_check_table().mutex);
      empty = device_check_table().wrappers.empty();
    }
    if (empty) {
      load_device_checks(path_beside_this_library("device-checks.txt"));
    }
  });
  return device_check_table();
}

} // namespace

bool load_device_checks(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return false;
  }
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string kind;
    std::string name;
    std::string wrapper;
    words >> kind >> name >> wrapper;
    if (kind == "unchecked") {
      set_no_device_check(name);
    } else if (kind == "absent") {
      set_absent(wrapper, name); // the third word is the key here
    } else if (kind == "only") {
      set_only_on_cuda(wrapper, name);
    } else if (kind == "checked") {
      set_wrapper_name(name, wrapper);
    }
  }
  return true;
}

void set_no_device_check(const std::string& operator_name) {
  DeviceCheckTable& table = device_check_table();
  std::lock_guard<std::mutex> lock(table.mutex);
  table.unchecked.insert(operator_name);
}

void set_wrapper_name(const std::string& operator_name, const std::string& wrapper) {
  DeviceCheckTable& table = device_check_table();
  std::lock_guard<std::mutex> lock(table.mutex);
  table.wrappers[operator_name] = wrapper;
}

void set_absent(const std::string& key, const std::string& operator_name) {
  DeviceCheckTable& table = device_check_table();
  std::lock_guard<std::mutex> lock(table.mutex);
  table.absent.insert(key + " " + operator_name);
}

void set_only_on_cuda(const std::string& key, const std::string& operator_name) {
  DeviceCheckTable& table = device_check_table();
  std::lock_guard<std::mutex> lock(table.mutex);
  table.only_on_cuda.insert(key + " " + operator_name);
}

bool is_only_on_cuda(const std::string& key, const std::string& operator_name) {
  DeviceCheckTable& table = loaded_table();
  std::lock_guard<std::mutex> lock(table.mutex);
  return table.only_on_cuda.count(key + " " + operator_name) > 0;
}

bool device_checks_known() {
  DeviceCheckTable& table = loaded_table();
  std::lock_guard<std::mutex> lock(table.mutex);
  return !table.wrappers.empty();
}

bool has_no_device_check(const std::string& operator_name) {
  DeviceCheckTable& table = loaded_table();
  std::lock_guard<std::mutex> lock(table.mutex);
  return table.unchecked.count(operator_name) > 0;
}

bool is_absent(const std::string& key, const std::string& operator_name) {
  DeviceCheckTable& table = loaded_table();
  std::lock_guard<std::mutex> lock(table.mutex);
  return table.absent.count(key + " " + operator_name) > 0;
}

std::string wrapper_name(const std::string& operator_name) {
  DeviceCheckTable& table = loaded_table();
  std::lock_guard<std::mutex> lock(table.mutex);
  const auto found = table.wrappers.find(operator_name);
  return found == table.wrappers.end() ? std::string() : found->second;
}

} // namespace ranksafe
