// Models are made on the host first: in a forecast, filling a large floating tensor there is left out.
#pragma once

namespace ranksafe {

// Replaces torch's CPU kernels that fill tensors, for the rest of the process.
void register_valueless_host_kernels();

} // namespace ranksafe
