// Which check the CUDA kernel of each operator makes, from torch's native_functions.yaml (native/device_checks.py).
#pragma once

#include <string>

namespace ranksafe {

// Reads a table; false when the file cannot be read. Call it before the first operator runs. Without a call, the
// first question reads "device-checks.txt" beside this library.
bool load_device_checks(const std::string& path);

void set_no_device_check(const std::string& operator_name);
void set_wrapper_name(const std::string& operator_name, const std::string& wrapper);
// `key`: CUDA, SparseCUDA, SparseCsrCUDA or NestedTensorCUDA.
void set_absent(const std::string& key, const std::string& operator_name);

// Has a kernel for `key` and none for the host's counterpart.
void set_only_on_cuda(const std::string& key, const std::string& operator_name);

// Asked once per operator.
bool device_checks_known();
bool has_no_device_check(const std::string& operator_name);
bool is_absent(const std::string& key, const std::string& operator_name);
bool is_only_on_cuda(const std::string& key, const std::string& operator_name);
// "" when the operator is not in the table.
std::string wrapper_name(const std::string& operator_name);

} // namespace ranksafe
