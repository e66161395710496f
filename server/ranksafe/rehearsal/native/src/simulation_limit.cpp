#include "simulation_limit.h"

#include <c10/util/Exception.h>

#include <mutex>

namespace ranksafe {
namespace {

std::mutex last_limit_mutex;

// Never destroyed: a thread may still ask while the process exits. One text per raise, so that a pointer given away
// stays good.
const std::string*& last_limit_text() {
  static const std::string* text = new std::string();
  return text;
}

} // namespace

void raise_limit(const std::string& message) {
  auto* text = new std::string(kLimitPrefix + message);
  {
    std::lock_guard<std::mutex> lock(last_limit_mutex);
    last_limit_text() = text;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(false, *text);
}

const char* last_limit() {
  std::lock_guard<std::mutex> lock(last_limit_mutex);
  return last_limit_text()->c_str();
}

} // namespace ranksafe
