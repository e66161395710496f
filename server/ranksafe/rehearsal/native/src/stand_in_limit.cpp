// Called by the stand-ins for torch's CUDA libraries (stand_ins/called.cpp), which know nothing of torch's errors.
#include "simulation_limit.h"

extern "C" __attribute__((visibility("default"))) void ranksafe_raise_limit(const char* message) {
  ranksafe::raise_limit(message);
}
